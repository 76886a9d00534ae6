"""Two hosts with several rate-limited lines between them, and an address on each.

Only addresses for documentation (RFC 5737) are used, and nothing leaves the namespaces.
"""

import dataclasses
import json
import os
import subprocess

from ..network import NoNamespaces, ip

_NETWORKS = ("192.0.2", "198.51.100", "203.0.113")
# The queue in front of a line, in full packets, as in the published measurements.
QUEUE = 100
# The burst size, in bytes: two frames.
BURST = 3100
FRAME_HEADER = 14
MTU = 1500
UDP_HEADER = 8
IP_HEADER = 20
SCTP_HEADER = 12
I_DATA_HEADER = 20


@dataclasses.dataclass(frozen=True)
class Line:
    """One line: its number, and its rate in Mbit/s of Ethernet frames."""

    number: int
    rate: float

    @property
    def name(self) -> str:
        return f"line{self.number}"

    def address(self, host: int) -> str:
        """Returns the address of a host (1 or 2) on it."""
        return f"{_NETWORKS[self.number]}.{host}"

    def queue_time(self) -> float:
        """Returns the seconds that a packet waits in a full queue."""
        return QUEUE * (FRAME_HEADER + MTU) * 8 / self.rate / 1e6

    def ceiling(self, carrier: str) -> float:
        """Returns the maximum Mbit/s of user data, with only full packets."""
        packet = MTU - IP_HEADER - (UDP_HEADER if carrier == "udp" else 0)
        # Chunks are multiples of four bytes.
        packet -= packet % 4
        data = packet - SCTP_HEADER - I_DATA_HEADER
        frame = FRAME_HEADER + IP_HEADER + (UDP_HEADER if carrier == "udp" else 0) + packet
        return self.rate * data / frame


class Lines:
    """The namespaces of the client and the server, with all lines between them."""

    def __init__(self, rates: list[float], without_addresses: tuple[int, ...] = ()) -> None:
        self.client = f"eyas-lines-a-{os.getpid()}"
        self.server = f"eyas-lines-b-{os.getpid()}"
        self.all = [Line(number, rate) for number, rate in enumerate(rates)]
        try:
            for namespace in (self.client, self.server):
                ip("netns", "add", namespace)
        except (OSError, subprocess.CalledProcessError) as error:
            self.remove()
            raise NoNamespaces(f"no network namespaces here: {error}") from error
        try:
            for namespace in (self.client, self.server):
                ip("-n", namespace, "link", "set", "lo", "up")
            for line in self.all:
                self._join(line)
                if line.number not in without_addresses:
                    self.add_addresses(line)
        except subprocess.CalledProcessError as error:
            self.remove()
            raise RuntimeError(f"{' '.join(error.cmd)}: {error.stderr}") from error

    def _join(self, line: Line) -> None:
        ip("-n", self.client, "link", "add", line.name, "type", "veth",
           "peer", "name", line.name, "netns", self.server)
        queue = QUEUE * (FRAME_HEADER + MTU)
        for namespace in (self.client, self.server):
            ip("-n", namespace, "link", "set", line.name, "up")
            # Without offload, which would make a train of packets count as one frame.
            offload = ["ethtool", "-K", line.name, "gso", "off", "tso", "off", "gro", "off"]
            subprocess.run(self.inside(namespace, offload), capture_output=True, check=False)
            command = ["tc", "-n", namespace, "qdisc", "add", "dev", line.name, "root", "tbf",
                     "rate", f"{int(line.rate * 1000)}kbit", "burst", str(BURST), "limit", str(queue)]
            subprocess.run(command, capture_output=True, text=True, check=True)

    def add_addresses(self, line: Line) -> None:
        """Gives both hosts their addresses on a line."""
        for host, namespace in ((1, self.client), (2, self.server)):
            ip("-n", namespace, "address", "add", f"{line.address(host)}/24", "dev", line.name)

    def cut(self, line: Line) -> None:
        """Drops all packets that arrive at either end of a line from now on."""
        rules = (
            "table inet cut { chain in { type filter hook prerouting priority -300;"
            f" iifname {line.name} drop; }}; }}\n"
        )
        for namespace in (self.client, self.server):
            command = self.inside(namespace, ["nft", "-f", "-"])
            subprocess.run(command, input=rules, text=True, capture_output=True, check=True)

    def sent(self) -> dict[int, int]:
        """Returns the bytes that the client has sent on each line."""
        command = ["ip", "-n", self.client, "-j", "-s", "link"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        counts = {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in json.loads(output)}
        return {line.number: counts[line.name] for line in self.all}

    def inside(self, namespace: str, command: list[str]) -> list[str]:
        """Returns the command line that runs a command in a namespace."""
        return ["ip", "netns", "exec", namespace, *command]

    def remove(self) -> None:
        """Removes the namespaces, and with them their lines."""
        for namespace in (self.client, self.server):
            try:
                subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
            except OSError:
                return
