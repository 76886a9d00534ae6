"""Three hosts: ours, a neighbour on two cables, and optionally a guest on two taps.

Only addresses for documentation (RFC 5737, RFC 3849) are used, and nothing leaves the namespaces.
"""

import json
import os
import pathlib
import subprocess

from ..network import NoNamespaces, ip, sysctl

# Cables to the neighbour and taps to the guest; each is a network of its own.
CABLES = ("cable0", "cable1")
TAPS = ("tap0", "tap1")
_NETWORKS = {"cable0": "192.0.2", "cable1": "198.51.100", "tap0": "203.0.113", "tap1": "192.0.2"}
# tap1 takes the upper half of the first network.
_OFFSETS = {"tap1": 128}
_NETWORKS6 = {"cable0": 1, "cable1": 2, "tap0": 3, "tap1": 4}


def ours(link: str, ipv6: bool = False) -> str:
    """Returns our address on a link."""
    return _address(link, 1, ipv6)


def theirs(link: str, ipv6: bool = False) -> str:
    """Returns the address of the host at the other end of a link."""
    return _address(link, 2, ipv6)


def our_addresses() -> set[str]:
    """Returns all of our addresses."""
    return {ours(link, ipv6) for link in _NETWORKS for ipv6 in (False, True)}


def _address(link: str, host: int, ipv6: bool) -> str:
    if ipv6:
        return f"2001:db8:{_NETWORKS6[link]}::{host}"
    return f"{_NETWORKS[link]}.{host + _OFFSETS.get(link, 0)}"


def prefixes(link: str, address: str) -> str:
    """Returns the address with its prefix length."""
    return f"{address}/64" if ":" in address else f"{address}/25"


class SctpNetwork:
    """The namespaces `ours` and `theirs`."""

    def __init__(self) -> None:
        self.ours = f"eyas-sctp-a-{os.getpid()}"
        self.theirs = f"eyas-sctp-b-{os.getpid()}"
        try:
            for namespace in (self.ours, self.theirs):
                ip("netns", "add", namespace)
        except (OSError, subprocess.CalledProcessError) as error:
            self.remove()
            raise NoNamespaces(f"no network namespaces here: {error}") from error
        try:
            self._set_up()
        except subprocess.CalledProcessError as error:
            self.remove()
            raise RuntimeError(f"{' '.join(error.cmd)}: {error.stderr}") from error

    def _set_up(self) -> None:
        for namespace in (self.ours, self.theirs):
            ip("-n", namespace, "link", "set", "lo", "up")
        for cable in CABLES:
            ip("-n", self.ours, "link", "add", cable, "type", "veth",
               "peer", "name", cable, "netns", self.theirs)
            for namespace, address_on in ((self.ours, ours), (self.theirs, theirs)):
                self._up(namespace, cable, address_on)
        if pathlib.Path("/dev/net/tun").exists():
            for tap in TAPS:
                ip("-n", self.ours, "tuntap", "add", "dev", tap, "mode", "tap", "vnet_hdr")
                self._up(self.ours, tap, ours)
                self._disable_offload(tap)

    def _up(self, namespace: str, link: str, address_on) -> None:
        sysctl(namespace, f"net.ipv6.conf.{link}.accept_dad=0")
        for ipv6 in (False, True):
            address = prefixes(link, address_on(link, ipv6))
            words = ["address", "add", address, "dev", link, *(["nodad"] if ipv6 else [])]
            ip("-n", namespace, *words)
        ip("-n", namespace, "link", "set", link, "up")

    def _disable_offload(self, tap: str) -> None:
        """Disables offload: the guest does not complete checksums that are left to its network card."""
        command = ["ethtool", "-K", tap, "tx", "off", "tso", "off", "gso", "off"]
        subprocess.run(self.inside(self.ours, command), capture_output=True, text=True, check=True)

    def inside(self, namespace: str, command: list[str]) -> list[str]:
        """Returns the command line that runs a command in a namespace."""
        return ["ip", "netns", "exec", namespace, *command]

    def cut(self, link: str) -> None:
        """Drops all packets at our end of a link, incoming and outgoing."""
        self._filter(
            "table inet cut {"
            f" chain in {{ type filter hook prerouting priority -300; iifname {link} drop; }};"
            f" chain out {{ type filter hook output priority -300; oifname {link} drop; }}; }}\n"
        )

    def lose(self, link: str, one_in: int) -> None:
        """Drops one packet in `one_in` on a link, in each direction."""
        self._drop(link, "meta l4proto { udp, 132 }" + (f" numgen random mod {one_in} 0" if one_in > 1 else ""))

    def lose_first_chunk(self, link: str, chunk_type: int) -> None:
        """Drops each packet on a link that begins with a chunk of this type, in each direction."""
        # After the common header of 12 bytes, and the 8 of UDP.
        self._drop(
            link,
            f"meta l4proto udp @th,{(8 + 12) * 8},8 {chunk_type}",
            f"meta l4proto 132 @th,{12 * 8},8 {chunk_type}",
        )

    def _drop(self, link: str, *packets: str) -> None:
        """Drops the packets that match on a link, in each direction."""
        incoming, outgoing = (
            " ".join(f"{end} {link} {matches} drop;" for matches in packets) for end in ("iifname", "oifname")
        )
        self._filter(
            "table inet cut {"
            f" chain in {{ type filter hook prerouting priority -300; {incoming} }};"
            f" chain out {{ type filter hook postrouting priority -300; {outgoing} }}; }}\n"
        )

    def heal(self) -> None:
        """Undoes `cut` and the losses."""
        self._filter("table inet cut\ndelete table inet cut\n")

    def _filter(self, rules: str) -> None:
        command = self.inside(self.ours, ["nft", "-f", "-"])
        subprocess.run(command, input=rules, text=True, capture_output=True, check=True)

    def carried(self, links: tuple[str, ...]) -> tuple[list[int], list[int]]:
        """Returns the bytes sent and the bytes received on each of these links."""
        words = ["ip", "-n", self.ours, "-j", "-s", "link"]
        output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        counts = {link["ifname"]: link["stats64"] for link in json.loads(output)}
        return tuple([counts[link][direction]["bytes"] for link in links] for direction in ("tx", "rx"))

    def remove(self) -> None:
        """Removes the namespaces, and with them their links."""
        for namespace in (self.ours, self.theirs):
            try:
                subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
            except OSError:
                return
