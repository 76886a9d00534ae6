"""`eyas tunnel` between two hosts with two lines: both are used, one dies in mid-transfer, UDP is blocked."""

import hashlib
import os
import pathlib
import subprocess
import sys
import threading
import time

from ..multipath.lines import Lines
from ..network import NoNamespaces
from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

PORT, WEB = 4433, 8099
# Where the server listens for each client: it lets go of a port a moment after a client has gone.
BOTH, BLOCKED = 18091, 18092
# Mbit/s of the lines, and bytes that take some seconds on both.
RATES = [20, 10]
AMOUNT = 6_000_000
# The share of the bytes that each line has to carry at least, if it is to count as used.
SHARE = 0.15
# When the second line dies, in seconds from the start.
DIES = 0.7
# How long a download may take, in seconds.
PATIENCE = 40


class Ends:
    """Two ends of a tunnel in the namespaces of the lines, and a file at the client."""

    def __init__(self, world: World) -> None:
        self.world = world
        try:
            self.lines = Lines(RATES)
        except NoNamespaces as missing:
            raise Skip(str(missing)) from missing
        self.directory = world.file("lines")
        self.directory.mkdir()
        self.bytes = os.urandom(AMOUNT)
        (self.directory / "file").write_bytes(self.bytes)
        self.peers: list[Peer] = []

    def eyas(self, *arguments: str) -> list[str]:
        return [str(self.world.eyas_binary), "tunnel", *arguments]

    def start(self, namespace: str, name: str, command: list[str]) -> Peer:
        log: pathlib.Path = self.world.file(f"{name}.log")
        peer = Peer(name, self.lines.inside(namespace, command), log)
        self.peers.append(peer)
        return peer

    def serve(self) -> None:
        """The server, and what is served at the client."""
        key = subprocess.run(self.eyas("keygen", "--key", str(self.directory / "key.pem")),
                             capture_output=True, text=True, check=True).stdout
        (self.directory / "authorized_keys").write_text(key)
        server = self.start(self.lines.there, "server", self.eyas(
            "serve", "--listen", f"0.0.0.0:{PORT}", "--key", str(self.directory / "host.pem"), "--multipath",
            "--authorized-keys", str(self.directory / "authorized_keys")))
        server.wait_until(lambda: "listening on" in server.said())
        web = self.start(self.lines.here, "web", [
            sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", str(WEB),
            "--directory", str(self.directory)])
        web.wait_until(lambda: "Serving HTTP" in web.said())

    def connect(self, to: str, there: int) -> Peer:
        """The client, which has the server listen."""
        client = self.start(self.lines.here, "client", self.eyas(
            f"{to}{self.lines.all[0].address(2)}:{PORT}", "--memory", "none", "--multipath",
            "--key", str(self.directory / "key.pem"), "--known-hosts", str(self.directory / "known_hosts"),
            "-R", f"{there}:127.0.0.1:{WEB}"))
        client.wait_until(lambda: "leads to" in client.said())
        return client

    def fetch(self, there: int) -> tuple[bool, float]:
        """Loads the file over there; whether it came whole, and how long that took."""
        command = ["curl", "-sS", "--max-time", str(PATIENCE), f"http://localhost:{there}/file"]
        began = time.monotonic()
        ran = subprocess.run(self.lines.inside(self.lines.there, command), capture_output=True, check=False)
        is_whole = hashlib.sha256(ran.stdout).digest() == hashlib.sha256(self.bytes).digest()
        return is_whole, time.monotonic() - began

    def block_udp(self) -> None:
        rules = "table inet noudp { chain in { type filter hook prerouting priority -300; meta l4proto udp drop; }; }\n"
        subprocess.run(self.lines.inside(self.lines.there, ["nft", "-f", "-"]), input=rules, text=True,
                       capture_output=True, check=True)

    def stop(self) -> None:
        for peer in reversed(self.peers):
            peer.stop()
        self.lines.remove()


@about("tunnel")
def case_tunnel_lines(world: World) -> None:
    """One association over both lines, which is told by what has left on each."""
    ends = Ends(world)
    try:
        ends.serve()
        both(ends, world.report.check)
        blocked(ends, world.report.check)
    finally:
        ends.stop()


def both(ends: Ends, check) -> None:
    """A transfer on both lines, and one of which a line dies."""
    client = ends.connect("sctp-udp://", BOTH)
    before = ends.lines.sent()
    is_whole, took = ends.fetch(BOTH)
    sent = {number: after - before[number] for number, after in ends.lines.sent().items()}
    shares = [count / sum(sent.values()) for count in sent.values()]
    told = f"{took:.1f} s, shares of the lines {', '.join(f'{share:.0%}' for share in shares)}"
    check("tunnel", "a file over both lines", is_whole and min(shares) >= SHARE, told)
    dying = threading.Timer(DIES, lambda: ends.lines.cut(ends.lines.all[1]))
    dying.start()
    is_whole, took = ends.fetch(BOTH)
    dying.join()
    check("tunnel", "a line dies in the middle", is_whole, f"{took:.1f} s; {client.said()[-200:]}")
    client.stop()


def blocked(ends: Ends, check) -> None:
    """Where no UDP gets through, TCP does."""
    ends.block_udp()
    client = ends.connect("", BLOCKED)
    is_whole, took = ends.fetch(BLOCKED)
    good = is_whole and "connected over tcp" in client.said()
    check("tunnel", "no UDP gets through", good, f"{took:.1f} s; {client.said()[-300:]}")


CASES = [case_tunnel_lines]
