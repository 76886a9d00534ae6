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
# Another server uses the default port of SCTP over UDP.
SCTP = ("--sctp-udp-port", "9898")
# The port at which Python serves a page, on the server's loopback and on the client's.
WEB = 8099
PAGE = "through the tunnel"
SERVE = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", str(WEB), "--directory"]
# Each transport on its own, and all of them.
TRANSPORTS = ("tcp", "quic", "sctp-udp")
# The time limit of each wait, in seconds.
TIMEOUT = 20


class Tunnels:
    """Both ends of a tunnel, with their keys in one directory."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.directory = world.file("tunnel")
        self.directory.mkdir()
        self.peers: list[Peer] = []
        self.environment = os.environ | {"XDG_CONFIG_HOME": str(self.directory / "no-config"),
                                         "XDG_RUNTIME_DIR": str(self.directory)}
        self.known = self.directory / "known_hosts"
        self.keys = self.directory / "authorized_keys"
        self.server = None
        for where in ("here", "there"):
            (self.directory / where).mkdir()
            (self.directory / where / "page").write_text(f"{PAGE}, {where}\n")

    def eyas(self, *arguments: str) -> list[str]:
        return [str(self.world.eyas_binary), "tunnel", *arguments]

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess:
        return subprocess.run(self.eyas(*arguments), input=stdin, capture_output=True, timeout=60,
                              env=self.environment, check=False)

    def start(self, name: str, command: list[str]) -> Peer:
        log = self.world.file(f"{name}.log")
        peer = Peer(name, command, log, env=self.environment)
        self.peers.append(peer)
        return peer

    def keygen(self, name: str) -> str:
        result = self.run("keygen", "--key", str(self.directory / name))
        return result.stdout.decode().strip()

    def serve(self, host: str = "host.pem") -> None:
        command = self.eyas("serve", "--listen", f"[::]:{PORT}", "--key", str(self.directory / host),
                            "--authorized-keys", str(self.keys), *SCTP)
        self.server = self.start("server", self.world.network.on_server(command))
        self.server.wait_until(lambda: "listening on" in self.server.tail())

    def client(self, *arguments: str, over: str = "sctp-udp+quic+tcp", key: str = "key.pem") -> list[str]:
        return self.eyas(f"{over}://{ipv4(EYAS)}:{PORT}", "--memory", "none", "--key", str(self.directory / key),
                         "--known-hosts", str(self.known), *SCTP, *arguments)

    def stop(self) -> None:
        for peer in reversed(self.peers):
            peer.stop()


def curl(*arguments: str) -> str:
    command = ["curl", "-sS", "--max-time", "20", *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    return completed.stdout + completed.stderr


def wait_for(condition) -> bool:
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


@about("tunnel")
def case_tunnel(world: World) -> None:
    """All features with one server, which is restarted in the end."""
    tunnels = Tunnels(world)
    check = world.report.check
    try:
        there = world.network.on_server([*SERVE, str(tunnels.directory / "there")])
        for name, command in (("there", there), ("here", [*SERVE, str(tunnels.directory / "here")])):
            web = tunnels.start(name, command)
            web.wait_until(lambda web=web: "Serving HTTP" in web.tail())
        tunnels.keys.write_text(f"{tunnels.keygen('key.pem')} interop\n")
        tunnels.serve()
        forwards(tunnels, check)
        stdio(tunnels, check)
        try:
            check("tunnel", "ssh by ProxyCommand", *ssh(tunnels))
        except Skip as reason:
            world.report.skip("tunnel", "ssh by ProxyCommand", str(reason))
        keys(tunnels, check)
        restart(tunnels, check)
    finally:
        tunnels.stop()


def forwards(tunnels: Tunnels, check) -> None:
    """-L, -R and -D over each transport."""
    # A port for each client: the server releases the previous one a moment after that client has ended.
    for remote_port, over in enumerate(TRANSPORTS, 18091):
        client = tunnels.start("client", tunnels.client(
            "-L", f"18080:localhost:{WEB}", "-R", f"{remote_port}:127.0.0.1:{WEB}", "-D", "18082", over=over))
        client.wait_until(lambda client=client: "connected over" in client.tail()
                          and client.tail().count(" leads to ") == 3)
        page_at_server, page_at_client = f"{PAGE}, there", f"{PAGE}, here"
        output = curl("http://localhost:18080/page")
        check("tunnel", f"-L over {over}", page_at_server in output, output[-200:])
        output = curl("-x", "socks5h://localhost:18082", f"http://localhost:{WEB}/page")
        check("tunnel", f"-D over {over}", page_at_server in output, output[-200:])
        command = ["curl", "-sS", "--max-time", "20", f"http://localhost:{remote_port}/page"]
        fetch = tunnels.world.network.on_server(command)
        done = subprocess.run(fetch, capture_output=True, text=True, check=False)
        check("tunnel", f"-R over {over}", page_at_client in done.stdout, (done.stdout + done.stderr)[-200:])
        check("tunnel", f"the client over {over} ends cleanly", client.stop() == 0, client.tail()[-200:])


def stdio(tunnels: Tunnels, check) -> None:
    """--stdio, to a listening port and to a closed one."""
    request = b"GET /page HTTP/1.0\r\n\r\n"
    command = tunnels.client("--stdio", f"localhost:{WEB}")[2:]
    completed = tunnels.run(*command, stdin=request)
    check("tunnel", "--stdio", completed.returncode == 0 and PAGE.encode() in completed.stdout, str(completed)[-300:])
    completed = tunnels.run(*tunnels.client("--stdio", "localhost:9")[2:])
    check("tunnel", "--stdio to a closed port", completed.returncode == 7, str(completed)[-300:])


def ssh(tunnels: Tunnels) -> tuple[bool, str]:
    """ssh with a ProxyCommand, to an sshd on the server."""
    openssh = OpenSsh(tunnels.directory)
    tunnels.start("sshd", tunnels.world.network.on_server(openssh.server()))
    proxy = tunnels.client("--stdio", f"localhost:{SSH}")
    command = [*openssh.client(proxy), "root@tunnel.test", "echo through ssh"]
    completed = None

    def answers() -> bool:
        nonlocal completed
        completed = subprocess.run(command, capture_output=True, text=True, timeout=60, env=tunnels.environment,
                                   stdin=subprocess.DEVNULL, check=False)
        return "through ssh" in completed.stdout

    return wait_for(answers), (completed.stdout + completed.stderr)[-300:]


def keys(tunnels: Tunnels, check) -> None:
    """Unknown keys are refused at both ends, with the exit codes of docs/guide/tunnel.md."""
    tunnels.keygen("unknown.pem")
    to = ("--stdio", f"localhost:{WEB}")
    for over in TRANSPORTS:
        completed = tunnels.run(*tunnels.client(*to, over=over, key="unknown.pem")[2:])
        good = completed.returncode == 58 and b"authorized_keys" in completed.stderr
        check("tunnel", f"an unknown key, over {over}", good, str(completed)[-300:])
    wrong = tunnels.keygen("other.pem")
    completed = tunnels.run(*tunnels.client(*to, "--host-key", wrong)[2:])
    check("tunnel", "a server with an unexpected key", completed.returncode == 60, str(completed)[-300:])
    line = tunnels.keys.read_text()
    tunnels.keys.write_text(f'permit-open="localhost:1" {line}')
    completed = tunnels.run(*tunnels.client(*to)[2:])
    good = completed.returncode == 7 and b"permit-open" in completed.stderr
    check("tunnel", "a destination that the key does not permit", good, str(completed)[-300:])
    tunnels.keys.write_text(line)


def restart(tunnels: Tunnels, check) -> None:
    """The server restarts while a client is connected, then with another key."""
    client = tunnels.start("client", tunnels.client("-L", f"18080:localhost:{WEB}"))
    client.wait_until(lambda: "connected over" in client.tail())
    completed = tunnels.run(*tunnels.client("-L", f"18080:localhost:{WEB}")[2:])
    check("tunnel", "a second tunnel on the same port", completed.returncode == 45, str(completed)[-300:])
    tunnels.server.stop()
    noticed = wait_for(lambda: "; reconnecting" in client.tail())
    tunnels.serve()
    output = curl("http://localhost:18080/page")
    check("tunnel", "the server restarts, and the client reconnects", noticed and PAGE in output, output[-200:])
    client.stop()
    tunnels.server.stop()
    tunnels.serve("other.pem")
    completed = tunnels.run(*tunnels.client("--stdio", f"localhost:{WEB}")[2:])
    good = completed.returncode == 60 and b"known_hosts" in completed.stderr
    check("tunnel", "the server restarts with another key", good, str(completed)[-300:])


CASES = [case_tunnel]
