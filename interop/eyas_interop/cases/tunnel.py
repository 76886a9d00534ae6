"""`eyas tunnel` between two hosts: forwards both ways, SOCKS, ssh's ProxyCommand, keys, ends that restart."""

import os
import subprocess
import sys
import time

from ..network import EYAS, ipv4
from ..openssh import PORT as SSH
from ..openssh import OpenSsh
from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

PORT = 4433
# The usual port of SCTP inside UDP is another server's.
SCTP = ("--sctp-udp-port", "9898")
# Where Python serves a page: at the server's loopback, and at the client's.
WEB = 8099
PAGE = "through the tunnel"
SERVE = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", str(WEB), "--directory"]
# Each transport on its own, and all of them.
TRANSPORTS = ("tcp", "quic", "sctp-udp")
# How long something may take that is waited for, in seconds.
PATIENCE = 20


class Tunnels:
    """Two ends with keys of their own in one directory."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.directory = world.file("tunnel")
        self.directory.mkdir()
        self.peers: list[Peer] = []
        self.environment = os.environ | {"XDG_CONFIG_HOME": str(self.directory / "nobody"),
                                         "XDG_RUNTIME_DIR": str(self.directory)}
        self.known = self.directory / "known_hosts"
        self.keys = self.directory / "authorized_keys"
        self.server = None
        for where in ("here", "there"):
            (self.directory / where).mkdir()
            (self.directory / where / "page").write_text(f"{PAGE}, {where}\n")

    def eyas(self, *arguments: str) -> list[str]:
        return [str(self.world.eyas_binary), "tunnel", *arguments]

    def run(self, *arguments: str, said: bytes = b"") -> subprocess.CompletedProcess:
        return subprocess.run(self.eyas(*arguments), input=said, capture_output=True, timeout=60,
                              env=self.environment, check=False)

    def start(self, name: str, command: list[str]) -> Peer:
        log = self.world.file(f"{name}.log")
        peer = Peer(name, command, log, env=self.environment)
        self.peers.append(peer)
        return peer

    def keygen(self, name: str) -> str:
        made = self.run("keygen", "--key", str(self.directory / name))
        return made.stdout.decode().strip()

    def serve(self, host: str = "host.pem") -> None:
        command = self.eyas("serve", "--listen", f"[::]:{PORT}", "--key", str(self.directory / host),
                            "--authorized-keys", str(self.keys), *SCTP)
        self.server = self.start("server", self.world.network.on_server(command))
        self.server.wait_until(lambda: "listening on" in self.server.said())

    def client(self, *arguments: str, over: str = "sctp-udp+quic+tcp", key: str = "key.pem") -> list[str]:
        return self.eyas(f"{over}://{ipv4(EYAS)}:{PORT}", "--memory", "none", "--key", str(self.directory / key),
                         "--known-hosts", str(self.known), *SCTP, *arguments)

    def stop(self) -> None:
        for peer in reversed(self.peers):
            peer.stop()


def curl(*arguments: str) -> str:
    ran = subprocess.run(["curl", "-sS", "--max-time", "20", *arguments], capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


def wait_for(wanted) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if wanted():
            return True
        time.sleep(0.1)
    return False


@about("tunnel")
def case_tunnel(world: World) -> None:
    """Everything over one server, which is stopped and started in the end."""
    tunnels = Tunnels(world)
    check = world.report.check
    try:
        there = world.network.on_server([*SERVE, str(tunnels.directory / "there")])
        for name, command in (("there", there), ("here", [*SERVE, str(tunnels.directory / "here")])):
            web = tunnels.start(name, command)
            web.wait_until(lambda web=web: "Serving HTTP" in web.said())
        tunnels.keys.write_text(f"{tunnels.keygen('key.pem')} interop\n")
        tunnels.serve()
        forwards(tunnels, check)
        stdio(tunnels, check)
        try:
            check("tunnel", "ssh by ProxyCommand", *ssh(tunnels))
        except Skip as why:
            world.report.skip("tunnel", "ssh by ProxyCommand", str(why))
        keys(tunnels, check)
        restart(tunnels, check)
    finally:
        tunnels.stop()


def forwards(tunnels: Tunnels, check) -> None:
    """-L, -R and -D over each transport."""
    # A port each at the server, which lets go of the last one's a moment after that client has gone.
    for there_at, over in enumerate(TRANSPORTS, 18091):
        client = tunnels.start("client", tunnels.client(
            "-L", f"18080:localhost:{WEB}", "-R", f"{there_at}:127.0.0.1:{WEB}", "-D", "18082", over=over))
        client.wait_until(lambda client=client: "connected over" in client.said()
                          and client.said().count(" leads to ") == 3)
        there, here = f"{PAGE}, there", f"{PAGE}, here"
        said = curl("http://localhost:18080/page")
        check("tunnel", f"-L over {over}", there in said, said[-200:])
        said = curl("-x", "socks5h://localhost:18082", f"http://localhost:{WEB}/page")
        check("tunnel", f"-D over {over}", there in said, said[-200:])
        fetch = tunnels.world.network.on_server(["curl", "-sS", "--max-time", "20", f"http://localhost:{there_at}/page"])
        said = subprocess.run(fetch, capture_output=True, text=True, check=False)
        check("tunnel", f"-R over {over}", here in said.stdout, (said.stdout + said.stderr)[-200:])
        check("tunnel", f"the client over {over} ends in order", client.stop() == 0, client.said()[-200:])


def stdio(tunnels: Tunnels, check) -> None:
    """--stdio, to what listens, to what does not, and to where the key may not."""
    request = b"GET /page HTTP/1.0\r\n\r\n"
    command = tunnels.client("--stdio", f"localhost:{WEB}")[2:]
    ran = tunnels.run(*command, said=request)
    check("tunnel", "--stdio", ran.returncode == 0 and PAGE.encode() in ran.stdout, str(ran)[-300:])
    ran = tunnels.run(*tunnels.client("--stdio", "localhost:9")[2:])
    check("tunnel", "--stdio to where nobody listens", ran.returncode == 7, str(ran)[-300:])


def ssh(tunnels: Tunnels) -> tuple[bool, str]:
    """ssh with a ProxyCommand, to an sshd of its own at the server."""
    openssh = OpenSsh(tunnels.directory)
    tunnels.start("sshd", tunnels.world.network.on_server(openssh.server()))
    proxy = tunnels.client("--stdio", f"localhost:{SSH}")
    command = [*openssh.client(proxy), "root@tunnel.test", "echo through ssh"]
    ran = None

    def answers() -> bool:
        nonlocal ran
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=tunnels.environment,
                             stdin=subprocess.DEVNULL, check=False)
        return "through ssh" in ran.stdout

    return wait_for(answers), (ran.stdout + ran.stderr)[-300:]


def keys(tunnels: Tunnels, check) -> None:
    """Keys that are not known are refused at both ends, with the exit codes of docs/tunnel.md."""
    tunnels.keygen("stranger.pem")
    to = ("--stdio", f"localhost:{WEB}")
    for over in TRANSPORTS:
        ran = tunnels.run(*tunnels.client(*to, over=over, key="stranger.pem")[2:])
        good = ran.returncode == 58 and b"authorized_keys" in ran.stderr
        check("tunnel", f"a key that nobody knows, over {over}", good, str(ran)[-300:])
    wrong = tunnels.keygen("other.pem")
    ran = tunnels.run(*tunnels.client(*to, "--host-key", wrong)[2:])
    check("tunnel", "a server with another key than it should have", ran.returncode == 60, str(ran)[-300:])
    line = tunnels.keys.read_text()
    tunnels.keys.write_text(f'permit-open="localhost:1" {line}')
    ran = tunnels.run(*tunnels.client(*to)[2:])
    good = ran.returncode == 7 and b"permit-open" in ran.stderr
    check("tunnel", "a destination that the key may not have", good, str(ran)[-300:])
    tunnels.keys.write_text(line)


def restart(tunnels: Tunnels, check) -> None:
    """The server restarts under a client; then it has another key."""
    client = tunnels.start("client", tunnels.client("-L", f"18080:localhost:{WEB}"))
    client.wait_until(lambda: "connected over" in client.said())
    ran = tunnels.run(*tunnels.client("-L", f"18080:localhost:{WEB}")[2:])
    check("tunnel", "a second tunnel on the same port", ran.returncode == 45, str(ran)[-300:])
    tunnels.server.stop()
    noticed = wait_for(lambda: "it is connected again" in client.said())
    tunnels.serve()
    said = curl("http://localhost:18080/page")
    check("tunnel", "the server restarts, and the client comes again", noticed and PAGE in said, said[-200:])
    client.stop()
    tunnels.server.stop()
    tunnels.serve("other.pem")
    ran = tunnels.run(*tunnels.client("--stdio", f"localhost:{WEB}")[2:])
    good = ran.returncode == 60 and b"known_hosts" in ran.stderr
    check("tunnel", "the server comes with another key", good, str(ran)[-300:])


CASES = [case_tunnel]
