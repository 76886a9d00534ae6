"""What the cases work with: the network, the certificates, the peers, the command."""

import itertools
import os
import pathlib

from . import dns, servers
from .build import example, prebuilt_example
from .certificates import Authority
from .command import Command
from .network import CADDY, DNS, EYAS, HYPERCORN, Network, ipv4
from .process import Peer
from .report import Report, Skip


class World:
    """The shared environment. Peers are started when a case first needs them, and run until the end."""

    def __init__(
        self, network: Network, directory: pathlib.Path, eyas: pathlib.Path, report: Report,
        is_prebuilt: bool = False,
    ) -> None:
        self.network = network
        self.directory = directory
        self.report = report
        self.binaries = pathlib.Path(os.environ["EYAS_PEERS"]) / "bin"
        self.authority = Authority(directory)
        self.identity = self.authority.issue("server", [f"*.{dns.ORIGIN}", dns.ORIGIN])
        self.eyas_binary = eyas
        self.is_prebuilt = is_prebuilt
        default_flags = ["--dns-server", f"{ipv4(DNS)}:{dns.PORT}"]
        self.eyas = Command(eyas, directory, default_flags)
        self._peers: dict[str, Peer] = {}
        self._files = itertools.count(1)

    @property
    def trust(self) -> list[str]:
        """The flags that make eyas trust the peers."""
        return ["--cacert", str(self.authority.file)]

    def file(self, suffix: str) -> pathlib.Path:
        """Returns the path of a file that does not exist yet."""
        return self.directory / f"{next(self._files)}.{suffix}"

    def example(self, name: str) -> pathlib.Path:
        """Returns an example of `eyas-http`: the one built with the given binary, or else this clone's."""
        return prebuilt_example(self.eyas_binary if self.is_prebuilt else None, name) or example(name)

    def dns(self) -> Peer:
        """CoreDNS."""
        if not self._is_up("coredns"):
            binary = self.binary("coredns")
            corefile = dns.write_configuration(self.directory)
            command = [str(binary), "-conf", str(corefile)]
            self._start("coredns", command, lambda: dns.answers(ipv4(DNS), f"caddy.{dns.ORIGIN}") > 0)
        return self._peers["coredns"]

    def server(self, name: str) -> Peer:
        """One of `caddy`, `hypercorn`, `eyas`; and CoreDNS, without which its name cannot be resolved."""
        self.dns()
        if not self._is_up(name):
            if name == "caddy":
                binary = self.binary("caddy")
                command = servers.caddy_command(binary, self.directory, self.identity)
                self._start(name, command, lambda: servers.answers_tls(ipv4(CADDY)))
            elif name == "hypercorn":
                command = servers.hypercorn_command(self.identity)
                self._start(name, command, lambda: servers.answers_tls(ipv4(HYPERCORN)))
            else:
                files = self.directory / "files"
                command = servers.serve_command(self.eyas_binary, files, self.identity)
                self._start(name, command, lambda: servers.answers_tls(ipv4(EYAS)))
        return self._peers[name]

    def stop(self) -> None:
        """Ends every peer."""
        for peer in self._peers.values():
            peer.stop()

    def _is_up(self, name: str) -> bool:
        return name in self._peers and self._peers[name].process.poll() is None

    def binary(self, name: str) -> pathlib.Path:
        """Returns a program that `interop/install` has built."""
        binary = self.binaries / name
        if not binary.exists():
            raise Skip(f"{name} is not installed: interop/install {name}")
        return binary

    def _start(self, name: str, command: list[str], ready) -> None:
        peer = servers.start(name, self.network.on_server(command), self.directory)
        self._peers[name] = peer
        peer.wait_until(ready)
