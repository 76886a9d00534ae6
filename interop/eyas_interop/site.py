"""A host in its own namespace with eyas, another server and applications, set up as docs/guide/with-other-servers.md says."""

import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from .network import ip, sysctl
from .page import Page
from .process import Peer
from .report import Skip
from .servers import start
from .world import World

HOST, OTHER_HOST = "www.example.org", "other.example.org"
ADDRESS, ADDRESS6 = "198.51.100.1", "2001:db8:78::1"
# Two clients, of which the first one is the usual source.
CLIENT, SECOND_CLIENT, CLIENT6 = "198.51.100.254", "198.51.100.253", "2001:db8:78::fe"
APPLICATION = pathlib.Path(__file__).resolve().parents[1] / "upstreams" / "routed.py"
STREAM_MODULE = pathlib.Path("/etc/nginx/modules-enabled/50-mod-stream.conf")
# The time limit of each wait, in seconds.
TIMEOUT = 30


class Site:
    """The host; its processes end with it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.namespace = f"eyas-site-{os.getpid()}"
        self.directory = world.file("site")
        self.peers: list[Peer] = []
        directories = {
            "/etc/eyas": self.directory / "etc", "/srv/www": self.directory / "www", "/var/log": self.directory / "log",
        }
        for path in (*directories.values(), *(self.directory / "log" / name for name in ("eyas", "nginx", "caddy"))):
            path.mkdir(parents=True)
        # nginx's workers have no privileges.
        self.directory.parent.chmod(0o711)
        self.page = Page(directories)
        self._write_files()

    def _write_files(self) -> None:
        etc = self.directory / "etc"
        identity = self.world.authority.issue("site", [HOST, OTHER_HOST, "localhost"])
        shutil.copy(identity.chain, etc / "chain.pem")
        shutil.copy(identity.key, etc / "key.pem")
        (etc / "site.pem").write_bytes(identity.chain.read_bytes() + identity.key.read_bytes())
        shutil.copy(self.world.authority.file, etc / "ca.pem")
        (self.directory / "www" / "page.txt").write_text("a file\n")

    def __enter__(self) -> "Site":
        cable = ("link", "add", "site", "type", "veth", "peer", "name", "wire", "netns", self.namespace)
        client = self.world.network.client
        try:
            ip("netns", "add", self.namespace)
            ip("-n", self.namespace, "link", "set", "lo", "up")
            ip("-n", client, *cable)
            for namespace, interface, addresses in (
                (client, "site", (CLIENT, SECOND_CLIENT, CLIENT6)), (self.namespace, "wire", (ADDRESS, ADDRESS6)),
            ):
                sysctl(namespace, f"net.ipv6.conf.{interface}.accept_dad=0")
                ip("-n", namespace, "link", "set", interface, "up")
                for address in addresses:
                    flags = ("nodad",) if ":" in address else ()
                    length = 64 if ":" in address else 24
                    ip("-n", namespace, "address", "add", f"{address}/{length}", "dev", interface, *flags)
        except subprocess.CalledProcessError as error:
            self._remove()
            raise RuntimeError(f"{' '.join(error.cmd)}: {error.stderr}") from error
        return self

    def __exit__(self, *_) -> None:
        for peer in reversed(self.peers):
            # They are single processes, and would wait for their clients.
            if peer.name in ("eyas", "caddy"):
                peer.process.kill()
            peer.stop()
        self._remove()

    def _remove(self) -> None:
        # At once, so that the next site can have the addresses: the kernel removes a namespace some time later.
        for command in (("link", "delete", "site"), ("netns", "delete", self.namespace)):
            subprocess.run(["ip", *command], capture_output=True, check=False)

    def start(self, name: str, command: list[str], ready: Callable[[Peer], bool]) -> Peer:
        """Starts a program on the host."""
        directory = self.world.file(name)
        directory.mkdir()
        peer = start(name, ["ip", "netns", "exec", self.namespace, *command], directory)
        self.peers.append(peer)
        return peer.wait_until(lambda: ready(peer))

    def application(self, port: int, name: str) -> Peer:
        """Starts an application."""
        command = [sys.executable, str(APPLICATION), str(port), name]
        return self.start(name, command, lambda peer: "ready" in peer.output())

    def eyas(self, arguments: list[str], before: tuple[str, ...] = ()) -> Peer:
        """Starts `eyas serve` with arguments of the page."""
        command = [*before, str(self.world.eyas_binary), *arguments]
        return self.start("eyas", command, lambda peer: "serving " in peer.output())

    def nginx(self, title: str, edit: Callable[[str], str] = str) -> Peer:
        """Starts nginx with a configuration of the page."""
        binary = find("nginx", "nginx-light")
        file = self.configuration(title, edit)
        if "stream {" in file.read_text() and not STREAM_MODULE.exists():
            raise Skip("nginx has no stream module (Debian: libnginx-mod-stream)")
        pid = self.world.file("pid")
        command = [binary, "-c", str(file), "-g", f"daemon off; pid {pid};"]
        return self.start("nginx", command, lambda peer: pid.exists() and bool(pid.read_text()))

    def haproxy(self, title: str, edit: Callable[[str], str] = str) -> Peer:
        """Starts HAProxy with a configuration of the page, so that it reloads that on SIGUSR2."""
        command = [find("haproxy", "haproxy"), "-W", "-f", str(self.configuration(title, edit))]
        return self.start("haproxy", command, lambda peer: "Loading success" in peer.output())

    def caddy(self, title: str, edit: Callable[[str], str] = str) -> Peer:
        """Starts Caddy with a configuration of the page."""
        file = self.configuration(title, edit)
        command = [str(self.world.binary("caddy")), "run", "--config", str(file), "--adapter", "caddyfile"]
        return self.start("caddy", command, lambda peer: "serving initial configuration" in peer.output())

    def listens(self, port: int) -> bool:
        """Returns whether something accepts TCP connections to this port of the host."""
        command = ["ip", "netns", "exec", self.namespace, "ss", "-Hltn", f"sport = :{port}"]
        return bool(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())

    def configuration(self, title: str, edit: Callable[[str], str] = str) -> pathlib.Path:
        """Writes a configuration of the page to a file, with an edit of the case's own."""
        file = self.world.file("conf")
        file.write_text(edit(self.page.configuration(title)))
        return file

    def log(self, name: str) -> str:
        """Returns a log below /var/log of the page."""
        file = self.directory / "log" / name
        return file.read_text(errors="replace") if file.exists() else ""


def find(program: str, package: str) -> str:
    """Returns the path of a program of Debian."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        raise Skip(f"{program} is not installed (Debian: {package})")
    return found


def wait_for(condition: Callable[[], bool]) -> bool:
    """Waits until it is true; returns whether that was in time."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()

