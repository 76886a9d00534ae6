"""`eyas serve --plain` behind Caddy, HAProxy and nginx that terminate TLS, as docs/guide/with-other-servers.md has it."""

import re

from ..process import Peer
from ..site import CLIENT, HOST, SECOND_CLIENT, Site, wait_for
from ..site_clients import (
    OVER_TCP, REPEATED, command, get, is_over, load, post, streamed_events, streamed_upload, websocket,
    websocket_over_h2,
)
from ..world import World
from .case import about

TITLES = {
    "nginx": "/etc/nginx/nginx.conf, before eyas", "haproxy": "/etc/haproxy/haproxy.cfg, before eyas",
    "caddy": "/etc/caddy/Caddyfile, before eyas",
}
FILES = {
    "nginx": "eyas behind nginx: files", "haproxy": "eyas behind HAProxy or Caddy: files",
    "caddy": "eyas behind HAProxy or Caddy: files",
}
GATEWAYS = "eyas behind: two gateways"
# What a client would be if it were believed.
FORGED = (
    "-H", "X-Forwarded-For: 203.0.113.9", "-H", "X-Forwarded-Proto: ftp", "-H", "Forwarded: for=203.0.113.9;proto=ftp",
)


class Behind:
    """Files and two gateways of eyas behind another server, and an application behind these."""

    def __init__(self, site: Site, name: str, version: str = "HTTP/1.1") -> None:
        self.site, self.name, self.version = site, name, version
        site.application(3000, "app")
        [self.files] = site.page.commands(FILES[name])
        self.eyas = site.eyas(self.files)
        self.arguments = site.page.commands(GATEWAYS)
        self.gateways = [site.eyas(arguments) for arguments in self.arguments]
        edit = {"HTTP/1.1": str, "HTTP/2": over_http2}[version]
        self.other = getattr(site, name)(TITLES[name], edit)
        self.clients = [*OVER_TCP, *(["eyas h3", "libcurl h3"] if name == "caddy" else [])]
        wait_for(lambda: get(site, "curl h1", "/api/health").status == "200")
        wait_for(lambda: get(site, "curl h1", "/page.txt").status == "200")

    def check(self, name: str, good: bool, detail: str) -> None:
        self.site.world.report.check(self.name, f"before eyas over {self.version}: {name}", good, detail)

    def of_clients(self, name: str, wrong: dict[str, str], clients: list[str]) -> None:
        """Reports a check of several clients, of which some may have failed."""
        self.check(name, not wrong, str(wrong) if wrong else ", ".join(clients))


def over_http2(configuration: str) -> str:
    """HTTP/2 in the clear to the gateways."""
    lines = re.sub(r"^( +server api\d .*)$", r"\1 proto h2", configuration, flags=re.MULTILINE)
    return lines.replace("127.0.0.1:8082 127.0.0.1:8083", "h2c://127.0.0.1:8082 h2c://127.0.0.1:8083")


def behind(world: World, name: str) -> None:
    """Routes, fields, bodies, streams, the log, health, and gateways that stop."""
    with Site(world) as site:
        running = Behind(site, name)
        files(site, running)
        fields(site, running)
        streams(site, running)
        websockets(site, running)
        health(site, running)
        restarts(site, running)
        in_progress(site, running)


def behind_over_http2(world: World, name: str) -> None:
    """The same where HTTP/2 makes a difference."""
    with Site(world) as site:
        running = Behind(site, name, "HTTP/2")
        fields(site, running)
        streams(site, running)
        restarts(site, running)
        in_progress(site, running)


def files(site: Site, running: Behind) -> None:
    """A file of eyas, which announces no port of its own through the other server; and its log."""
    wrong = {}
    for client in running.clients:
        answer = get(site, client, "/page.txt")
        if not is_over(client, answer) or answer.text != "a file\n":
            wrong[client] = str(answer)
    running.of_clients("a file", wrong, running.clients)
    answer = get(site, "curl h2", "/page.txt", "-i", "--interface", SECOND_CLIENT)
    announced = re.findall(r"^alt-svc: ([^\r\n]*)", answer.text, re.MULTILINE | re.IGNORECASE)
    # Caddy announces itself.
    expected = ['h3=":443"; ma=2592000'] if running.name == "caddy" else []
    # nginx replaces Server.
    is_eyas = "nosniff" in answer.text and "etag" in answer.text.lower()
    running.check("Alt-Svc", is_eyas and announced == expected, f"{announced}, eyas: {is_eyas}")
    logged = ("127.0.0.1",) if running.name == "nginx" else (CLIENT, SECOND_CLIENT)

    def requests() -> list[str]:
        lines = site.log("eyas/files.log").splitlines()
        return [line.split(" ", 1)[0] for line in lines if "GET /page.txt" in line]

    # Until the other server had started, `Behind` has asked as well.
    good = wait_for(lambda: len(requests()) > len(running.clients) and sorted(set(requests())) == sorted(logged))
    running.check(f"the log has {' and '.join(logged)}", good, str(requests()))


def fields(site: Site, running: Behind) -> None:
    """What the application is told, which no client can forge."""
    wrong = {}
    for client in running.clients:
        more = FORGED if client != "libcurl h3" else ()
        answer = get(site, client, "/api/fields", *more)
        problem = mistaken(answer.fields)
        if not is_over(client, answer) or problem:
            wrong[client] = f"{problem} {answer}"
    running.of_clients("the gateways tell the application the client", wrong, running.clients)
    wrong, clients = {}, [name for name in running.clients if name != "libcurl h3"]
    for client in clients:
        answer = post(site, client, "/api/echo")
        if not is_over(client, answer) or answer.text != "same":
            wrong[client] = str(answer)
    running.of_clients("a body there and back", wrong, clients)


def mistaken(received: dict[str, str]) -> str:
    """Returns what is wrong with the fields that the application has received, or nothing."""
    expected = {
        "host": HOST, "x-forwarded-proto": "https", "x-forwarded-for": f"{CLIENT}, 127.0.0.1", "x-forwarded-host": HOST,
    }
    for name, value in expected.items():
        if received.get(name) != value:
            return f"{name} is {received.get(name)}"
    first = f'for={CLIENT};host="{HOST}";proto=https'
    forwarded = received.get("forwarded", "")
    return "" if forwarded == f'{first}, for=127.0.0.1;host="{HOST}";proto=http' else f"forwarded is {forwarded}"


def streams(site: Site, running: Behind) -> None:
    """Nothing waits in a buffer for more."""
    events = streamed_events(site, "curl h2", "/api/")
    running.check("server-sent events, one by one", events.startswith("data: one data: two 200 "), events)
    arrived, answer = streamed_upload(site, "curl h2", "/api/")
    good = arrived == "yes" and answer.status == "200" and answer.text == "2000 bytes"
    running.check("an upload, piece by piece", good, f"arrived early: {arrived}; {answer}")


def websockets(site: Site, running: Behind) -> None:
    """A frame there and back."""
    read = websocket(site, "/api/chat")
    good = read.startswith(b"HTTP/1.1 101 ") and read.endswith(REPEATED)
    running.check("a WebSocket over HTTP/1.1", good, f"{read[:40]} {read[-7:]}")
    # Of the three, only HAProxy offers them over HTTP/2.
    if running.name == "haproxy":
        received = websocket_over_h2(site, "/api/chat")
        good = (received.status, received.bytes) == (b"200", REPEATED)
        detail = f"offered: {received.is_offered}, {received.status} {received.bytes} {received.end}"
        running.check("a WebSocket over HTTP/2", good, detail)


def health(site: Site, running: Behind) -> None:
    """The other server finds out that eyas is there, gone, and there again."""
    if running.name == "haproxy":
        is_asked = wait_for(lambda: '"OPTIONS / HTTP/1.0" 204' in site.log("eyas/files.log"))
        running.check("OPTIONS is a health check", is_asked, site.log("eyas/files.log")[-200:])
    if running.name == "nginx":
        return
    down, up = {
        "haproxy": ("Server gateways/api1 is DOWN", "Server gateways/api1 is UP"),
        "caddy": ("127.0.0.1:8082", "host is up"),
    }[running.name]
    before = running.other.output()
    is_calm = down not in before
    running.gateways[0].stop()
    sees_down = wait_for(lambda: down in running.other.output()[len(before):])
    answers = [get(site, "curl h2", "/api/health") for _ in range(4)]
    running.gateways[0] = site.eyas(running.arguments[0])
    sees_up = wait_for(lambda: up in running.other.output()[len(before):])
    good = is_calm and sees_down and sees_up and all(answer.status == "200" for answer in answers)
    detail = f"calm {is_calm}, down {sees_down}, up {sees_up}; {[str(answer) for answer in answers]}"
    running.check("health checks notice a gateway that is gone", good, detail if not good else "down, and up again")


def restarts(site: Site, running: Behind) -> None:
    """Each gateway restarts under load, one after the other: no request fails."""
    statuses = []
    with load(site, "/api/fields") as requests:
        enough = requests.reaches(30)
        for number, arguments in enumerate(running.arguments):
            used = site.log(f"eyas/api{number + 1}.log").count("\n")
            statuses.append(running.gateways[number].stop())
            enough = requests.reaches(30) and enough
            running.gateways[number] = site.eyas(arguments)
            # It has to be used again before the other one stops.
            enough = wait_for(lambda: site.log(f"eyas/api{number + 1}.log").count("\n") > used + 5) and enough
    good = enough and not requests.failures and statuses == [0, 0]
    running.check("no request fails while the gateways restart", good, f"{requests}; exit statuses {statuses}")


def in_progress(site: Site, running: Behind) -> None:
    """A response that a gateway owes when it is told to stop is completed."""
    client = Peer("curl", command(site, "curl h2", "/api/held"), site.world.file("held"))
    try:
        holds = get(site, "curl h1", "/api/holds").text
        for gateway in running.gateways:
            gateway.process.terminate()
        # The application answers once both gateways accept nothing more.
        refused = wait_for(lambda: not site.listens(8082) and not site.listens(8083))
        replaced = [site.eyas(arguments) for arguments in running.arguments]
        wait_for(lambda: get(site, "curl h1", "/api/release").text == "released")
        wait_for(lambda: client.process.poll() is not None)
        statuses = [gateway.process.wait(30) for gateway in running.gateways]
    finally:
        client.stop()
    running.gateways = replaced
    output = " ".join(client.output().split())
    good = holds == "yes" and refused and output.startswith("released in time 200") and statuses == [0, 0]
    detail = f"holds {holds}, refused {refused}, exit statuses {statuses}: {output}"
    running.check("a response in progress is completed after SIGTERM", good, detail)


@about("nginx")
def case_with_servers_before_nginx(world: World) -> None:
    """nginx before eyas."""
    behind(world, "nginx")


@about("haproxy")
def case_with_servers_before_haproxy(world: World) -> None:
    """HAProxy before eyas."""
    behind(world, "haproxy")


@about("caddy")
def case_with_servers_before_caddy(world: World) -> None:
    """Caddy before eyas."""
    behind(world, "caddy")


@about("haproxy")
def case_with_servers_before_haproxy_h2(world: World) -> None:
    """HAProxy before eyas, with HTTP/2 between them."""
    behind_over_http2(world, "haproxy")


@about("caddy")
def case_with_servers_before_caddy_h2(world: World) -> None:
    """Caddy before eyas, with HTTP/2 between them."""
    behind_over_http2(world, "caddy")


CASES = [
    case_with_servers_before_nginx, case_with_servers_before_haproxy, case_with_servers_before_caddy,
    case_with_servers_before_haproxy_h2, case_with_servers_before_caddy_h2,
]
