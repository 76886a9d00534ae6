"""A complete association between our stack and a peer."""

import itertools
import pathlib
import subprocess
from collections.abc import Callable

from .network import SctpNetwork, ours, theirs
from .peers import Host, Running, result, wait_ready

PORT = 5000
UDP_PORT = 9899
# Packets of one capture.
CAPTURED = "5000"


class Exchange:
    """The peer, the carrier and the direction of associations."""

    def __init__(
        self, network: SctpNetwork, our_host: Host, peer: Host, carrier: str, we_connect: bool,
        directory: pathlib.Path,
    ) -> None:
        self.network = network
        self.our_host = our_host
        self.peer = peer
        self.carrier = carrier
        self.we_connect = we_connect
        self.directory = directory
        self.captures: list[pathlib.Path] = []
        self._numbers = itertools.count()
        self._label = f"{peer.name}-{carrier}-{'we' if we_connect else 'they'}"

    @property
    def name(self) -> str:
        """Returns the name for reports."""
        return f"{self.carrier}, {'we' if self.we_connect else 'they'} connect"

    def log(self, kind: str) -> pathlib.Path:
        """Returns the path of a file that does not exist yet."""
        return self.directory / f"sctp-{self._label}-{next(self._numbers)}-{kind}.log"

    def arguments(
        self, we: bool, steps: list[str], options: list[str], *, paths: int, ipv6: bool
    ) -> list[str]:
        """Returns the command line of one side."""
        links = self.peer.links[:paths]
        local, remote = (ours, theirs) if we else (theirs, ours)
        arguments = ["connect" if we == self.we_connect else "listen", "--port", str(PORT)]
        arguments += ["--local", ",".join(local(link, ipv6) for link in links)]
        if we == self.we_connect:
            arguments += ["--remote", ",".join(remote(link, ipv6) for link in links)]
            # pion uses a fixed port.
            arguments += ["--local-port", str(PORT if self.peer.name == "pion" else 6000)]
        if self.carrier == "udp":
            arguments += ["--udp", f"{UDP_PORT},{UDP_PORT}"]
        return [*arguments, *options, *steps]

    def run(
        self, connector: list[str], listener: list[str], *, options: tuple[str, ...] = (),
        our_options: tuple[str, ...] = (), listener_options: tuple[str, ...] = (), paths: int = 1,
        ipv6: bool = False, within: float = 90,
        meanwhile: Callable[[], None] | None = None, capture: bool = False,
        listener_paths: int | None = None, once_connector_reported: Callable[[], None] | None = None,
    ) -> tuple[dict, dict]:
        """Runs the steps of both sides; returns the final reports of the connector and the listener.

        Each side stays until both have reported: if its SHUTDOWN COMPLETE was lost, it has another SHUTDOWN ACK
        to answer (RFC 9260 §8.4).
        """
        steps = {True: connector, False: listener}
        started = {}
        tcpdump = self._capture() if capture else None
        try:
            # The listener first.
            for connects in (False, True):
                we = connects == self.we_connect
                host, kind = (self.our_host, "ours") if we else (self.peer, "theirs")
                chosen = ["--stay", str(round(within)), *options, *(our_options if we else ())]
                chosen += [] if connects else listener_options
                own_paths = paths if connects else listener_paths or paths
                arguments = self.arguments(we, steps[connects], chosen, paths=own_paths, ipv6=ipv6)
                started[connects] = host.start(arguments, self.log(kind))
                if not connects:
                    wait_ready(started[connects])
            if meanwhile is not None:
                meanwhile()
            connector_report = result(started[True], within)
            if once_connector_reported is not None:
                once_connector_reported()
            return connector_report, result(started[False], within)
        finally:
            for side in started.values():
                side.kill()
            if tcpdump is not None:
                tcpdump.terminate()
                tcpdump.wait()

    def side(self, we: bool, steps: list[str], *, options: tuple[str, ...] = ()) -> Running:
        """Starts only one side."""
        host = self.our_host if we else self.peer
        arguments = self.arguments(we, steps, list(options), paths=1, ipv6=False)
        return host.start(arguments, self.log("ours" if we else "theirs"))

    def _capture(self) -> subprocess.Popen:
        file = self.directory / f"{self._label}-{next(self._numbers)}.pcap"
        self.captures.append(file)
        command = ["tcpdump", "-i", self.peer.links[0], "-w", str(file), "-c", CAPTURED, "-U",
                   "--immediate-mode", "-Z", "root", f"ip proto 132 or ip6 proto 132 or udp port {UDP_PORT}"]
        command = self.network.inside(self.network.ours, command)
        tcpdump = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        # It prints a line once it captures.
        tcpdump.stderr.readline()
        return tcpdump
