"""`eyas serve` behind HAProxy and nginx that pass TLS on by name, as docs/guide/with-other-servers.md has it."""

import contextlib
import re
import socket
import ssl
import sys

from .. import clients
from ..site import ADDRESS, CLIENT, HOST, OTHER_HOST, SECOND_CLIENT, Site, wait_for
from ..site_clients import OVER_TCP, get, is_over
from ..world import World
from .case import about

TITLES = {"nginx": "/etc/nginx/nginx.conf, passing TLS on", "haproxy": "/etc/haproxy/haproxy.cfg, passing TLS on"}
EYAS = "eyas behind, TLS passed on"
EYAS_WITH_SOCKETS = "eyas behind, TLS passed on, with the sockets of a service manager"
# What a service manager does for a unit with ListenStream=127.0.0.1:8443 and ListenDatagram=443 (sd_listen_fds(3)).
SERVICE_MANAGER = """
import os, socket, sys
stream = socket.create_server(("127.0.0.1", 8443), backlog=100)
datagram = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagram.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
datagram.bind(("::", 443))
for number, passed in enumerate([os.dup2(it.fileno(), 20 + it.type) for it in (stream, datagram)]):
    os.dup2(passed, 3 + number)
    os.close(passed)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="2")
os.execv(sys.argv[1], sys.argv[1:])
"""
# Descriptors with which eyas admits far fewer clients than the defaults.
FEW_DESCRIPTORS = 200


def passed_by(world: World, name: str) -> None:
    """The route by name, the client's address, HTTP/3 beside it, and limits."""
    with Site(world) as site:
        [arguments] = site.page.commands(EYAS)
        eyas = site.eyas(arguments)
        start_other(site, name)
        server = getattr(site, name)(TITLES[name])
        check = Report(world, name)
        names(site, check)
        directly(site, check, 8443)
        followed(site, check)
        # HAProxy has checked the server since; what it sends for that is nothing to report.
        good = "eyas: " not in eyas.output() and "DOWN" not in server.output()
        check("nothing is reported", good, f"{eyas.output()[-300:]} {server.output()[-300:] if not good else ''}")
        eyas.stop()
        limits(site, check, arguments)
        [arguments] = site.page.commands(EYAS_WITH_SOCKETS)
        site.eyas(arguments, (sys.executable, "-c", SERVICE_MANAGER))
        directly(site, check, 443)


class Report:
    """Reports checks of one server."""

    def __init__(self, world: World, peer: str) -> None:
        self.world, self.peer = world, peer

    def __call__(self, name: str, good: bool, detail: str) -> None:
        self.world.report.check(self.peer, f"passes TLS to eyas: {name}", good, detail)


def start_other(site: Site, name: str) -> None:
    """Another server for the other names, with other files."""
    files, etc = site.world.file("files"), site.directory / "etc"
    files.mkdir()
    (files / "page.txt").write_text("a file of the other\n")
    # nginx sends the PROXY protocol to both.
    more = ["--accept-proxy-protocol", "127.0.0.1"] if name == "nginx" else []
    site.eyas([
        "serve", "-l", "127.0.0.1:9443", "--no-h3", "--no-sctp", "--cert", str(etc / "chain.pem"),
        "--key", str(etc / "key.pem"), *more, str(files),
    ])


def names(site: Site, check: Report) -> None:
    """Each name has its server, and the log of eyas the client."""
    wrong = {}
    for client in OVER_TCP:
        answer, other = get(site, client, "/page.txt"), get(site, client, "/page.txt", host=OTHER_HOST)
        if not (is_over(client, answer) and is_over(client, other)) or answer.text != "a file\n":
            wrong[client] = f"{answer}; {other}"
        elif other.text != "a file of the other\n":
            wrong[client] = str(other)
    get(site, "curl h2", "/page.txt", "--interface", SECOND_CLIENT)
    check("two servers by name", not wrong, str(wrong) if wrong else ", ".join(OVER_TCP))
    expected = [CLIENT] * len(OVER_TCP) + [SECOND_CLIENT]

    def logged() -> list[str]:
        return [line.split(" ", 1)[0] for line in site.log("eyas/access.log").splitlines()]

    check("the log has the clients", wait_for(lambda: logged() == expected), str(logged()))


def directly(site: Site, check: Report, port: int) -> None:
    """What is announced, is there: HTTP/3 at this port."""
    headers = get(site, "curl h2", "/page.txt", "-i").text
    announced = re.findall(r"^alt-svc: ([^\r\n]*)", headers, re.MULTILINE | re.IGNORECASE)
    wrong = {}
    for client in ("eyas h3", "libcurl h3"):
        answer = get(site, client, "/page.txt", port=port)
        if not is_over(client, answer) or answer.text != "a file\n":
            wrong[client] = str(answer)
    good = len(announced) == 1 and announced[0].startswith(f'h3=":{port}"') and not wrong
    check(f"HTTP/3 at the announced port {port}", good, f"{announced} {wrong or ''}")


def followed(site: Site, check: Report) -> None:
    """libcurl goes to the announced port when it has heard of it."""
    addresses = " ".join(f"{HOST}:{port}:{ADDRESS}" for port in (443, 8443))
    memory, seen = site.world.file("alt-svc"), []
    for _ in range(2):
        got = clients.fetch(
            f"https://{HOST}/page.txt", addresses, str(site.world.authority.file), "any", str(memory),
        )
        seen.append((got["status"], got["version"], got["port"]))
    check("libcurl follows the announcement", seen == [(200, "h2", 443), (200, "h3", 8443)], str(seen))


def limits(site: Site, check: Report, arguments: list[str]) -> None:
    """A client that has all connections it may have leaves some to others."""
    eyas = site.eyas(arguments, ("sh", "-c", f'ulimit -n {FEW_DESCRIPTORS}; exec "$@"', "sh"))
    with contextlib.ExitStack() as open_connections:
        count = 0
        while count < FEW_DESCRIPTORS and (connection := handshake(site, CLIENT)):
            open_connections.enter_context(connection)
            count += 1
        second = handshake(site, SECOND_CLIENT)
        again = handshake(site, CLIENT)
        for connection in (second, again):
            if connection:
                connection.close()
    good = 2 < count < FEW_DESCRIPTORS and second is not None and again is None
    detail = f"the other one is served: {second is not None}; and once more the first: {again is not None}"
    check("limits are for each client", good, f"{count} connections of one; {detail}")
    eyas.stop()


def handshake(site: Site, source: str) -> ssl.SSLSocket | None:
    """Returns a connection, or nothing if it was closed instead."""
    context = ssl.create_default_context(cafile=str(site.world.authority.file))
    tcp = socket.create_connection((ADDRESS, 443), timeout=20, source_address=(source, 0))
    try:
        return context.wrap_socket(tcp, server_hostname=HOST)
    except (ssl.SSLError, ConnectionError):
        tcp.close()
        return None


@about("haproxy")
def case_with_servers_passing_haproxy(world: World) -> None:
    """HAProxy by SNI."""
    passed_by(world, "haproxy")


@about("nginx")
def case_with_servers_passing_nginx(world: World) -> None:
    """nginx by SNI."""
    passed_by(world, "nginx")


CASES = [case_with_servers_passing_haproxy, case_with_servers_passing_nginx]
