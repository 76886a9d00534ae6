"""Unauthorized clients of a tunnel server: silent or invalid TCP connections, junk over UDP, unauthorized keys.

Clients with a key are served nevertheless, over each transport, and open sessions stay open.
"""

import contextlib
import os
import socket
import subprocess
import threading
import time

from _relay import LOCALHOST, TIMEOUT, Echo, expect
from eyas_interop.hostile.stage import Server, Stage, main

# More than the limit of simultaneous handshakes; each closed one is replaced.
UNAUTHORIZED = 600
# What they send: nothing, half a TLS record, another protocol.
BEGINNINGS = (b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n")
TRANSPORTS = ("tcp", "quic", "sctp-udp")
# The duration of the attack, in seconds.
HOLD = 12


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as held:
        held.bind((LOCALHOST, 0))
        return held.getsockname()[1]


class Ends:
    """A server, an authorized key and an unauthorized one."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.port, self.sctp = free_port(socket.SOCK_STREAM), free_port(socket.SOCK_DGRAM)
        self.home = stage.directory
        for name in ("key", "unauthorized"):
            result = self.run("keygen", "--key", f"{name}.pem")
            if name == "key":
                (self.home / "authorized_keys").write_bytes(result.stdout)
        peer = stage.start([str(stage.eyas), "tunnel", "serve", "--listen", f"{LOCALHOST}:{self.port}",
                            "--sctp-udp-port", str(self.sctp), "--key", "host.pem",
                            "--authorized-keys", "authorized_keys"])
        peer.wait_until(lambda: "listening on" in peer.tail())
        self.victim = Server(peer, {"address": f":{self.port}", "url": "tunnel:"}, [])

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(self.stage.eyas), "tunnel", *arguments], cwd=self.home, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)

    def client(self, *arguments: str, over: str = "sctp-udp+quic+tcp", key: str = "key") -> list[str]:
        return [f"{over}://{LOCALHOST}:{self.port}", "--sctp-udp-port", str(self.sctp), "--key", f"{key}.pem",
                "--known-hosts", "known_hosts", "--memory", "none", *arguments]

    def connect_and_echo(self, port: int, over: str) -> None:
        """Opens a new tunnel with the authorized key to the echo server, which closes the connection when this end does."""
        completed = self.run(*self.client("--stdio", f"{LOCALHOST}:{port}", over=over))
        if completed.returncode != 0:
            raise RuntimeError(f"over {over}: {completed.returncode} {completed.stderr.decode(errors='replace')[-200:]}")


def flood(ends: Ends, stop: threading.Event) -> None:
    """Sends unauthorized traffic over TCP and UDP until stopped."""
    connections: list[socket.socket] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        while not stop.wait(0.005):
            connection = socket.create_connection((LOCALHOST, ends.port), TIMEOUT)
            connections.append(connection)
            with contextlib.suppress(OSError):
                connection.sendall(BEGINNINGS[len(connections) % len(BEGINNINGS)])
            if len(connections) > UNAUTHORIZED:
                connections.pop(0).close()
            for port in (ends.port, ends.sctp):
                with contextlib.suppress(OSError):
                    udp.sendto(os.urandom(1200), (LOCALHOST, port))
    for connection in connections:
        connection.close()


def attack(stage: Stage) -> None:
    echo = Echo()
    ends = Ends(stage)
    local_port = free_port(socket.SOCK_STREAM)
    client = stage.start([str(stage.eyas), "tunnel", *ends.client("-L", f"{local_port}:{LOCALHOST}:{echo.port}")])
    client.wait_until(lambda: "leads to" in client.tail())
    stop = threading.Event()
    attackers = threading.Thread(target=flood, args=(ends, stop))
    turns = iter(range(1_000_000))
    with socket.create_connection((LOCALHOST, local_port), TIMEOUT) as program, \
            stage.watched(ends.victim.process) as watch:
        attackers.start()
        try:
            with stage.repeat(lambda: ends.connect_and_echo(echo.port, TRANSPORTS[next(turns) % len(TRANSPORTS)])) as honest:
                until = time.monotonic() + HOLD
                while time.monotonic() < until:
                    program.sendall(b"key")
                    expect(program, 3, b"key")
                    refused = ends.run(*ends.client("--stdio", f"{LOCALHOST}:9", key="unauthorized", over="quic"))
                    time.sleep(0.5)
        finally:
            stop.set()
            attackers.join()
        gone = stage.wait_for_usage(ends.victim.process, TIMEOUT, lambda usage: usage.descriptors < 60)
    stage.alive(ends.victim)
    stage.check("an unauthorized key", refused.returncode == 58, str(refused)[-200:])
    stage.check("the open session is not disturbed", "reconnect" not in client.tail(), client.tail()[-200:])
    stage.check("their connections are closed", gone)
    stage.within("descriptors grew", watch.grown_descriptors, 500)
    stage.memory_within(watch, 80)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
