"""`eyas tunnel` between two hosts with two lines: both are used; one appears, changes its address, fails; UDP is blocked."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

from ..multipath.lines import Lines
from ..network import NoNamespaces, ip
from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

PORT, WEB, IPERF, RSYNC = 4433, 8099, 5201, 8730
# The ports at which the client listens for those.
CLIENT_PORTS = {IPERF: 15201, RSYNC: 18730}
# The server's port for each client: it releases a port a moment after its client has ended.
BOTH_LINES_PORT, BLOCKED_LINE_PORT = 18091, 18092
# Mbit/s of the lines, and an amount that takes some seconds on both.
RATES = [20, 10]
AMOUNT = 6_000_000
# The minimum share of the bytes on each line that counts as used.
SHARE = 0.15
# The minimum bytes that iperf3 must transfer, even on a slow machine.
MIN_TRANSFER = 100_000
# When the second line fails, in seconds from the start.
FAILS_AFTER = 0.7
# The time limit of a download, and of a line until it is used, in seconds.
TIMEOUT = 40
# The client's new host number on the second line.
NEW_HOST_NUMBER = 7


class Ends:
    """Both ends of a tunnel in the namespaces of the lines, and a file at the client."""

    def __init__(self, world: World, name: str = "lines") -> None:
        self.world = world
        try:
            # The second line gets its addresses later.
            self.lines = Lines(RATES, without_addresses=(1,))
        except NoNamespaces as missing:
            raise Skip(str(missing)) from missing
        self.directory = world.file(name)
        self.directory.mkdir()
        self.bytes = os.urandom(AMOUNT)
        (self.directory / "file").write_bytes(self.bytes)
        self.peers: list[Peer] = []

    def eyas(self, *arguments: str) -> list[str]:
        return [str(self.world.eyas_binary), "tunnel", *arguments]

    def start(self, namespace: str, name: str, command: list[str]) -> Peer:
        log: pathlib.Path = self.world.file(f"{name}.log")
        peer = Peer(name, self.lines.inside(namespace, command), log, env=self.environment())
        self.peers.append(peer)
        return peer

    def environment(self) -> dict[str, str]:
        """Returns an environment in which only the tunnels of this case are found."""
        return os.environ | {"XDG_RUNTIME_DIR": str(self.directory)}

    def active(self) -> list[tuple[str, str]]:
        """Returns the local and remote addresses of the client's active paths."""
        output = subprocess.run(self.eyas("status", "--json"), capture_output=True, text=True, check=True,
                              env=self.environment()).stdout
        sessions = [session for tunnel in json.loads(output)["tunnels"] if tunnel["role"] == "client"
                    for session in tunnel["sessions"]]
        return [(path["local"], path["remote"].split(":")[0]) for session in sessions for path in session["paths"]
                if path["state"] == "active"]

    def wait_for_lines(self, condition) -> tuple[bool, str]:
        """Waits until the active lines meet a condition; returns whether they do, and the lines."""
        deadline = time.monotonic() + TIMEOUT
        while not condition(active := self.active()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return condition(active), str(active)

    def serve(self, *flags: str, options: str = "") -> None:
        """Starts the server, with options for the client's key."""
        key = subprocess.run(self.eyas("keygen", "--key", str(self.directory / "key.pem")),
                             capture_output=True, text=True, check=True).stdout
        (self.directory / "authorized_keys").write_text(f"{options} {key}")
        self.start_server(*flags)

    def start_server(self, *flags: str) -> None:
        """Starts the server with the keys that are there."""
        server = self.start(self.lines.server, "server", self.eyas(
            "serve", "--listen", f"0.0.0.0:{PORT}", "--key", str(self.directory / "host.pem"), "--multipath",
            "--authorized-keys", str(self.directory / "authorized_keys"), *flags))
        server.wait_until(lambda: "listening on" in server.tail())

    def serve_web(self) -> None:
        """Starts a web server at the client."""
        web = self.start(self.lines.client, "web", [
            sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", str(WEB),
            "--directory", str(self.directory)])
        web.wait_until(lambda: "Serving HTTP" in web.tail())

    def client(self, to: str, *flags: str) -> Peer:
        return self.start(self.lines.client, "client", self.eyas(
            f"{to}{self.lines.all[0].address(2)}:{PORT}", "--memory", "none", "--multipath",
            "--key", str(self.directory / "key.pem"), "--known-hosts", str(self.directory / "known_hosts"), *flags))

    def connect(self, to: str, remote_port: int) -> Peer:
        """Starts the client, with ports at both ends."""
        client = self.client(to, "-R", f"{remote_port}:127.0.0.1:{WEB}",
                             *(word for port, local_port in CLIENT_PORTS.items()
                               for word in ("-L", f"{local_port}:127.0.0.1:{port}")))
        client.wait_until(lambda: "leads to" in client.tail())
        return client

    def fetch(self, remote_port: int) -> tuple[bool, str]:
        """Downloads the file at the server's end; returns whether it is complete, and what came in what time."""
        command = ["curl", "-sS", "--max-time", str(TIMEOUT), f"http://localhost:{remote_port}/file"]
        began = time.monotonic()
        completed = subprocess.run(self.lines.inside(self.lines.server, command), capture_output=True, check=False)
        is_whole = hashlib.sha256(completed.stdout).digest() == hashlib.sha256(self.bytes).digest()
        elapsed = time.monotonic() - began
        return is_whole, f"{len(completed.stdout)} bytes in {elapsed:.1f} s {completed.stderr.decode(errors='replace')}"

    def block_udp(self) -> None:
        rules = "table inet noudp { chain in { type filter hook prerouting priority -300; meta l4proto udp drop; }; }\n"
        subprocess.run(self.lines.inside(self.lines.server, ["nft", "-f", "-"]), input=rules, text=True,
                       capture_output=True, check=True)

    def stop(self) -> None:
        for peer in reversed(self.peers):
            peer.stop()
        self.lines.remove()


@about("tunnel")
def case_tunnel_lines(world: World) -> None:
    """One association over both lines, as shown by the bytes sent on each."""
    ends = Ends(world)
    try:
        ends.serve()
        ends.serve_web()
        both(ends, world)
        blocked(ends, world.report.check)
    finally:
        ends.stop()


def both(ends: Ends, world: World) -> None:
    """A session over one line, over a second one that appears and changes its address, and without it again."""
    check = world.report.check
    client = ends.connect("sctp-udp://", BOTH_LINES_PORT)
    second = ends.lines.all[1]
    ends.lines.add_addresses(second)
    appeared = ends.wait_for_lines(lambda active: len({remote for _, remote in active}) == len(ends.lines.all))
    check("tunnel", "a line appears", *appeared)
    is_used(ends, check, "a file over both lines", lambda: ends.fetch(BOTH_LINES_PORT))
    iperf(ends, world)
    rsync(ends, world)
    old, new = second.address(1), second.address(NEW_HOST_NUMBER)
    # The kernel removes other addresses of the same network with the first of them.
    ip("-n", ends.lines.client, "address", "delete", f"{old}/24", "dev", second.name)
    ip("-n", ends.lines.client, "address", "add", f"{new}/24", "dev", second.name)
    moved = ends.wait_for_lines(lambda active: (new, second.address(2)) in active)
    check("tunnel", "a line changes its address", *moved)
    is_used(ends, check, "a file after that", lambda: ends.fetch(BOTH_LINES_PORT))
    failure = threading.Timer(FAILS_AFTER, lambda: ends.lines.cut(second))
    failure.start()
    is_whole, detail = ends.fetch(BOTH_LINES_PORT)
    failure.join()
    check("tunnel", "a line fails in the middle", is_whole, f"{detail}; {client.tail()[-200:]}")
    client.stop()


def is_used(ends: Ends, check, name: str, transfer) -> None:
    """Checks that a transfer from the client succeeds, and that both lines carry a share of it."""
    before = ends.lines.sent()
    is_good, detail = transfer()
    sent = {number: after - before[number] for number, after in ends.lines.sent().items()}
    shares = [count / sum(sent.values()) for count in sent.values()]
    detail = f"shares of the lines {', '.join(f'{share:.0%}' for share in shares)}; {detail}"
    check("tunnel", name, is_good and min(shares) >= SHARE, detail)


def iperf(ends: Ends, world: World) -> None:
    """iperf3 from the client, with its data and control connections."""
    if shutil.which("iperf3") is None:
        world.report.skip("tunnel", "iperf3 by -L", "iperf3 is not installed")
        return
    server = ends.start(ends.lines.server, "iperf3", [
        "iperf3", "-s", "-1", "-p", str(IPERF), "-B", "127.0.0.1", "--forceflush"])
    server.wait_until(lambda: "listening on" in server.tail())
    command = ["iperf3", "-c", "127.0.0.1", "-p", str(CLIENT_PORTS[IPERF]), "-t", "2", "-J"]

    def transfers() -> tuple[bool, str]:
        completed = subprocess.run(ends.lines.inside(ends.lines.client, command), capture_output=True, check=False,
                                   timeout=TIMEOUT)
        received = json.loads(completed.stdout)["end"]["sum_received"]["bytes"]
        return completed.returncode == 0 and received >= MIN_TRANSFER, f"{received} bytes"

    is_used(ends, world.report.check, "iperf3 by -L over both lines", transfers)


def rsync(ends: Ends, world: World) -> None:
    """rsync from an rsync daemon at the server's end."""
    if shutil.which("rsync") is None:
        world.report.skip("tunnel", "rsync by -L", "rsync is not installed")
        return
    config = ends.directory / "rsyncd.conf"
    config.write_text(f"use chroot = no\n[files]\npath = {ends.directory}\nread only = yes\n")
    server = ends.start(ends.lines.server, "rsync", [
        "rsync", "--daemon", "--no-detach", "--address", "127.0.0.1", "--port", str(RSYNC), f"--config={config}"])
    copy = ends.directory / "copy"
    command = ["rsync", f"rsync://127.0.0.1:{CLIENT_PORTS[RSYNC]}/files/file", str(copy)]
    deadline = time.monotonic() + TIMEOUT
    # It does not report when it listens.
    while True:
        completed = subprocess.run(ends.lines.inside(ends.lines.client, command), capture_output=True, check=False)
        if completed.returncode == 0 or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    good = completed.returncode == 0 and copy.read_bytes() == ends.bytes
    world.report.check("tunnel", "rsync by -L", good, completed.stderr.decode(errors="replace")[-200:])
    server.stop()


def blocked(ends: Ends, check) -> None:
    """Where UDP is blocked, TCP is used."""
    ends.block_udp()
    client = ends.connect("", BLOCKED_LINE_PORT)
    is_whole, detail = ends.fetch(BLOCKED_LINE_PORT)
    good = is_whole and "connected over tcp" in client.tail()
    check("tunnel", "no UDP gets through", good, f"{detail}; {client.tail()[-300:]}")


CASES = [case_tunnel_lines]
