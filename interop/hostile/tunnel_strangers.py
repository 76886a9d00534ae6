"""Strangers at a server of tunnels: TCP connections that say nothing or nonsense, junk over UDP, keys that may not.

Who has a key gets in all the same, over each transport, and what is open stays open.
"""

import contextlib
import os
import socket
import subprocess
import threading
import time

from _relay import LOCALHOST, PATIENCE, Echo, hear
from eyas_interop.hostile.stage import Server, Stage, main

# More than there are handshakes at once; each comes again when it is left.
STRANGERS = 600
# What they say: nothing, half of a record of TLS, something else.
SAY = (b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n")
TRANSPORTS = ("tcp", "quic", "sctp-udp")
# For how long, in seconds.
HOLD = 12


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as held:
        held.bind((LOCALHOST, 0))
        return held.getsockname()[1]


class Ends:
    """A server, and the keys of who may and of who may not."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.port, self.sctp = free_port(socket.SOCK_STREAM), free_port(socket.SOCK_DGRAM)
        self.home = stage.directory
        for name in ("key", "stranger"):
            made = self.run("keygen", "--key", f"{name}.pem")
            if name == "key":
                (self.home / "authorized_keys").write_bytes(made.stdout)
        peer = stage.start([str(stage.eyas), "tunnel", "serve", "--listen", f"{LOCALHOST}:{self.port}",
                            "--sctp-udp-port", str(self.sctp), "--key", "host.pem",
                            "--authorized-keys", "authorized_keys"])
        peer.wait_until(lambda: "listening on" in peer.said())
        self.victim = Server(peer, {"address": f":{self.port}", "url": "tunnel:"}, [])

    def run(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(self.stage.eyas), "tunnel", *words], cwd=self.home, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)

    def client(self, *words: str, over: str = "sctp-udp+quic+tcp", key: str = "key") -> list[str]:
        return [f"{over}://{LOCALHOST}:{self.port}", "--sctp-udp-port", str(self.sctp), "--key", f"{key}.pem",
                "--known-hosts", "known_hosts", "--memory", "none", *words]

    def comes(self, port: int, over: str) -> None:
        """Somebody with a key, anew; the echo ends the connection when this end does."""
        ran = self.run(*self.client("--stdio", f"{LOCALHOST}:{port}", over=over))
        if ran.returncode != 0:
            raise RuntimeError(f"over {over}: {ran.returncode} {ran.stderr.decode(errors='replace')[-200:]}")


def flood(ends: Ends, over: threading.Event) -> None:
    """Strangers over TCP and UDP until it is over."""
    strangers: list[socket.socket] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        while not over.wait(0.005):
            stranger = socket.create_connection((LOCALHOST, ends.port), PATIENCE)
            strangers.append(stranger)
            with contextlib.suppress(OSError):
                stranger.sendall(SAY[len(strangers) % len(SAY)])
            if len(strangers) > STRANGERS:
                strangers.pop(0).close()
            for port in (ends.port, ends.sctp):
                with contextlib.suppress(OSError):
                    udp.sendto(os.urandom(1200), (LOCALHOST, port))
    for stranger in strangers:
        stranger.close()


def attack(stage: Stage) -> None:
    echo = Echo()
    ends = Ends(stage)
    here = free_port(socket.SOCK_STREAM)
    client = stage.start([str(stage.eyas), "tunnel", *ends.client("-L", f"{here}:{LOCALHOST}:{echo.port}")])
    client.wait_until(lambda: "leads to" in client.said())
    over = threading.Event()
    attackers = threading.Thread(target=flood, args=(ends, over))
    turns = iter(range(1_000_000))
    with socket.create_connection((LOCALHOST, here), PATIENCE) as program, stage.watched(ends.victim.process) as watch:
        attackers.start()
        try:
            with stage.neighbour(lambda: ends.comes(echo.port, TRANSPORTS[next(turns) % len(TRANSPORTS)])) as honest:
                until = time.monotonic() + HOLD
                while time.monotonic() < until:
                    program.sendall(b"key")
                    hear(program, 3, b"key")
                    refused = ends.run(*ends.client("--stdio", f"{LOCALHOST}:9", key="stranger", over="quic"))
                    time.sleep(0.5)
        finally:
            over.set()
            attackers.join()
        gone = stage.settled(ends.victim.process, PATIENCE, lambda usage: usage.descriptors < 60)
    stage.alive(ends.victim)
    stage.check("a key that may not", refused.returncode == 58, str(refused)[-200:])
    stage.check("what was open is not disturbed", "connected again" not in client.said(), client.said()[-200:])
    stage.check("nothing is left of them", gone)
    stage.within("descriptors grew", watch.grown_descriptors, 500)
    stage.memory_within(watch, 80)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
