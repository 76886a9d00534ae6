"""`eyas serve --upstream` in front of Caddy, HAProxy and nginx, as docs/guide/with-other-servers.md has it."""

import json
import re
import signal
import subprocess

from ..process import Peer
from ..site import ADDRESS6, CLIENT, CLIENT6, HOST, SECOND_CLIENT, Site, wait_for
from ..site_clients import (
    OVER_TCP, REPEATED, VERSIONS, get, is_over, load, post, streamed_events, streamed_upload, websocket,
    websocket_over_h2,
)
from ..world import World
from .case import about

TITLES = {
    "nginx": "/etc/nginx/nginx.conf, behind eyas", "haproxy": "/etc/haproxy/haproxy.cfg, behind eyas",
    "caddy": "/etc/caddy/Caddyfile, behind eyas",
}
# The commands of eyas on the page.
WAYS = {
    "http": "eyas in front: HTTP/1.1 to the other, the client in fields",
    "h2c": "eyas in front: HTTP/2 in the clear",
    "proxy-protocol": "eyas in front: the client in the PROXY protocol as well",
    "https": "eyas in front: HTTP/2 or HTTP/1.1 over TLS, for another host",
}
# Those that take a WebSocket over h2c.
EXTENDED_CONNECT = {"haproxy"}
CLIENTS = [CLIENT, SECOND_CLIENT]
# What a client would be if it were believed.
FORGED = ("-H", "X-Forwarded-For: 203.0.113.9", "-H", "X-Real-IP: 203.0.113.9", "-H", "Forwarded: for=203.0.113.9")


def in_front_of(world: World, name: str) -> None:
    """Each way to reach the other server, with each version of HTTP in front."""
    with Site(world) as site:
        other = getattr(site, name)(TITLES[name])
        for port, application in ((3000, "app"), (3001, "api1"), (3002, "api2")):
            site.application(port, application)
        for way, title in WAYS.items():
            [arguments] = site.page.commands(title)
            eyas = site.eyas(arguments)
            report = Report(world, name, way)
            fields(site, report)
            bodies(site, report)
            streams(site, report)
            websockets(site, report)
            if way == "http":
                reloads(site, other, report)
            # At once: how it stops is another matter.
            eyas.process.kill()
            eyas.process.wait()
        versions(site, Report(world, name, "https"))
        report = Report(world, name, "proxy-protocol")
        site.eyas(site.page.commands(WAYS[report.way])[0])
        stopped(site, other, report)
        alone(site, report)


class Report:
    """Reports checks of one server and one way."""

    def __init__(self, world: World, peer: str, way: str) -> None:
        self.world, self.peer, self.way = world, peer, way

    def __call__(self, name: str, good: bool, detail: str) -> None:
        self.world.report.check(self.peer, f"behind eyas by {self.way}: {name}", good, detail)

    def clients(self, *names: str) -> list[str]:
        """Returns these clients: all of them for the first way, and one of each version for the others."""
        return [name for name in names if self.way == "http" or name in ("curl h1", "eyas h2", "libcurl h3", "eyas h3")]

    def of_clients(self, name: str, wrong: dict[str, str], clients: list[str]) -> None:
        """Reports a check of several clients, of which some may have failed."""
        self(name, not wrong, str(wrong) if wrong else ", ".join(clients))


def fields(site: Site, check: Report) -> None:
    """The route, the client, the name and the scheme, which no client can forge."""
    wrong, seen, clients = {}, set(), check.clients(*VERSIONS)
    for client in clients:
        more = FORGED if client != "libcurl h3" else ()
        answer = get(site, client, "/api/fields", *more)
        problem = mistaken(answer.fields, CLIENT, f"for={CLIENT};")
        if not is_over(client, answer) or problem:
            wrong[client] = f"{problem} {answer}"
        seen.add(answer.application)
    check.of_clients("routes, and tells applications the client", wrong, clients)

    def all_seen() -> bool:
        seen.add(get(site, "curl h1", "/api/fields").application)
        return seen == {"api1", "api2"}

    # Caddy chooses at random.
    check("several upstreams", wait_for(all_seen), str(sorted(seen)))
    answer = get(site, "curl h2", "/fields", address=f"[{ADDRESS6}]")
    problem = mistaken(answer.fields, CLIENT6, f'for="[{CLIENT6}]";')
    check("a client over IPv6, on the other route", answer.application == "app" and not problem, f"{problem} {answer}")


def mistaken(received: dict[str, str], client: str, forwarded: str) -> str:
    """Returns what is wrong with the fields that an application has received, or nothing."""
    expected = {
        "x-real-ip": (client,), "host": (HOST,), "x-forwarded-proto": ("https",),
        # Caddy appends eyas.
        "x-forwarded-for": (client, f"{client}, 127.0.0.1"),
    }
    for name, values in expected.items():
        if received.get(name) not in values:
            return f"{name} is {received.get(name)}"
    element = received.get("forwarded", "")
    return "" if element.startswith(forwarded) and "proto=https" in element else f"forwarded is {element}"


def bodies(site: Site, check: Report) -> None:
    """Three megabytes there and back, with a length and in chunks."""
    wrong, clients = {}, check.clients(*OVER_TCP, "eyas h3")
    for client in clients:
        answer = post(site, client, "/api/echo")
        if not is_over(client, answer) or answer.text != "same":
            wrong[client] = str(answer)
    answer = post(site, "curl h1", "/api/echo", "-H", "Transfer-Encoding: chunked")
    if answer.text != "same":
        wrong["curl h1, chunked"] = str(answer)
    check.of_clients("3 MB there and back", wrong, clients)


def streams(site: Site, check: Report) -> None:
    """Nothing waits in a buffer for more."""
    wrong, clients = {}, check.clients("curl h1", "curl h2", "eyas h3")
    for client in clients:
        events = streamed_events(site, client, "/")
        if not events.startswith("data: one data: two 200 "):
            wrong[client] = events
    check.of_clients("server-sent events, one by one", wrong, clients)
    wrong = {}
    for client in clients:
        arrived, answer = streamed_upload(site, client, "/")
        if arrived != "yes" or not is_over(client, answer) or answer.text != "2000 bytes":
            wrong[client] = f"arrived early: {arrived}; {answer}"
    check.of_clients("an upload, piece by piece", wrong, clients)


def websockets(site: Site, check: Report) -> None:
    """A frame there and back, over HTTP/1.1 and HTTP/2; and 501 where the page says so: over h2c the server has to offer
    extended CONNECT (RFC 8441)."""
    read = websocket(site, "/chat")
    received = websocket_over_h2(site, "/chat")
    detail = f"{read[:20]} {read[-7:]}, {received.status} {received.bytes} {received.end}"
    if check.way == "h2c" and check.peer not in EXTENDED_CONNECT:
        good = read.startswith(b"HTTP/1.1 501 ") and received.status == b"501"
        check("no WebSockets, but 501", good, detail)
    else:
        good = read.startswith(b"HTTP/1.1 101 ") and read.endswith(REPEATED)
        good = good and (received.status, received.bytes) == (b"200", REPEATED)
        check("WebSockets over HTTP/1.1 and HTTP/2", good, detail)


def reloads(site: Site, other: Peer, check: Report) -> None:
    """The other server loads its configuration again under load."""
    with load(site, "/api/fields") as running:
        enough = running.reaches(50)
        for _ in range(3):
            reload(site, other)
            enough = running.reaches(50) and enough
    check("no request fails while it reloads", enough and not running.failures, str(running))


def reload(site: Site, other: Peer) -> None:
    if other.name == "caddy":
        # The file is the argument behind --config. Without --force, an unchanged one is not loaded.
        command = list(other.process.args)
        file = command[command.index("--config") + 1]
        command = ["caddy", "reload", "--force", "--config", file, "--adapter", "caddyfile"]
        command[0] = str(site.world.binary("caddy"))
        subprocess.run(["ip", "netns", "exec", site.namespace, *command], capture_output=True, timeout=30, check=True)
    else:
        other.process.send_signal(signal.SIGHUP if other.name == "nginx" else signal.SIGUSR2)


def versions(site: Site, check: Report) -> None:
    """The log of the other server has the client, and HTTP/2 between it and eyas; HAProxy has none."""
    if check.peer == "haproxy":
        return

    def logged() -> set[tuple[str, str]]:
        if check.peer == "nginx":
            lines = [line.split('"') for line in site.log("nginx/access.log").splitlines() if "/api/echo" in line]
            return {(line[0].split(" ", 1)[0], line[1].rsplit(" ", 1)[-1]) for line in lines}
        requests = [json.loads(line)["request"] for line in site.log("caddy/access.log").splitlines()]
        return {(it["client_ip"], it["proto"]) for it in requests if it["uri"] == "/api/echo"}

    # Of the four ways, two are over HTTP/1.1.
    good = wait_for(lambda: logged() == {(CLIENT, "HTTP/1.1"), (CLIENT, "HTTP/2.0")})
    check("its log has the client, and HTTP/2", good, str(logged()))


def stopped(site: Site, other: Peer, check: Report) -> None:
    """Without the other server, eyas says what is wrong."""
    other.stop()
    answer = get(site, "curl h1", "/", "-i")
    good = answer.status == "502" and "error=connection_refused" in answer.text
    check("502 when it is stopped", good, str(answer))


def alone(site: Site, check: Report) -> None:
    """The PROXY protocol names the client to a server that does not believe the fields."""
    edit = {
        "nginx": lambda text: re.sub("(real_ip_header +)X-Forwarded-For", r"\1proxy_protocol", text),
        "haproxy": lambda text: re.sub(r"\n *http-request set-src .*", "", text),
        "caddy": lambda text: re.sub(r"\n\s*trusted_proxies .*", "", text),
    }[check.peer]
    getattr(site, check.peer)(TITLES[check.peer], edit)
    answers = [
        get(site, "curl h1", "/api/fields", "--interface", source).fields.get("x-real-ip") for source in CLIENTS
    ]
    check("the PROXY protocol alone names the client", answers == CLIENTS, str(answers))


@about("nginx")
def case_with_servers_behind_nginx(world: World) -> None:
    """nginx behind eyas."""
    in_front_of(world, "nginx")


@about("haproxy")
def case_with_servers_behind_haproxy(world: World) -> None:
    """HAProxy behind eyas."""
    in_front_of(world, "haproxy")


@about("caddy")
def case_with_servers_behind_caddy(world: World) -> None:
    """Caddy behind eyas."""
    in_front_of(world, "caddy")


CASES = [case_with_servers_behind_nginx, case_with_servers_behind_haproxy, case_with_servers_behind_caddy]
