"""A tunnel server, and the keys of clients."""

import socket
import subprocess

from _relay import LOCALHOST
from eyas_interop.hostile.stage import Server, Stage

TRANSPORTS = ("tcp", "quic", "sctp-udp")


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as held:
        held.bind((LOCALHOST, 0))
        return held.getsockname()[1]


class Ends:
    """A server, started with the words `before` in front of its command, and keys, of which the first ones are
    authorized."""

    def __init__(self, stage: Stage, authorized: tuple[str, ...], unauthorized: tuple[str, ...] = (),
                 before: tuple[str, ...] = ()) -> None:
        self.stage = stage
        self.port, self.sctp = free_port(socket.SOCK_STREAM), free_port(socket.SOCK_DGRAM)
        self.home = stage.directory
        lines = {name: self.run("keygen", "--key", f"{name}.pem").stdout for name in (*authorized, *unauthorized)}
        (self.home / "authorized_keys").write_bytes(b"".join(lines[name] for name in authorized))
        peer = stage.start([*before, str(stage.eyas), "tunnel", "serve", "--listen", f"{LOCALHOST}:{self.port}",
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
