"""Two hosts in network namespaces: a client, and a server with the peers on it.

Only addresses for documentation (RFC 5737, RFC 3849) are used, and nothing leaves the namespaces.
"""

import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000

CLIENT4, CLIENT6 = "192.0.2.254", "2001:db8:77::fe"


def ipv4(host: int) -> str:
    """Returns the IPv4 address of the server with that number."""
    return f"192.0.2.{host}"


def ipv6(host: int) -> str:
    """Returns the IPv6 address of the server with that number."""
    return f"2001:db8:77::{host}"


# The host numbers of the servers.
CADDY, HYPERCORN, EYAS, DNS = 1, 2, 3, 53
# An unused address: packets to it are dropped without an answer.
BLACKHOLE = 66
# An address for which the server's host sends ICMP errors.
REFUSING = 67


class NoNamespaces(Exception):
    """Network namespaces cannot be created on this machine."""


class Network:
    """The two namespaces, connected by one cable."""

    def __init__(self) -> None:
        self.client = f"eyas-client-{os.getpid()}"
        self.server = f"eyas-server-{os.getpid()}"
        self._swallows_udp = False
        self._create()
        try:
            self._set_up()
            self.enter_client()
        except subprocess.CalledProcessError as error:
            self.remove()
            raise RuntimeError(f"{' '.join(error.cmd)}: {error.stderr}") from error

    def _create(self) -> None:
        """Only this step may fail for lack of privileges or of `ip`; later steps must work."""
        try:
            for namespace in (self.client, self.server):
                ip("netns", "add", namespace)
        except (OSError, subprocess.CalledProcessError) as error:
            self.remove()
            message = getattr(error, "stderr", None) or str(error)
            raise NoNamespaces(f"no network namespaces here: {message.strip()}") from error

    def _set_up(self) -> None:
        for namespace in (self.client, self.server):
            ip("-n", namespace, "link", "set", "lo", "up")
        ip("-n", self.client, "link", "add", "wire", "type", "veth",
           "peer", "name", "wire", "netns", self.server)
        for namespace in (self.client, self.server):
            # Duplicate address detection would delay the addresses by seconds.
            sysctl(namespace, "net.ipv6.conf.wire.accept_dad=0")
            ip("-n", namespace, "link", "set", "wire", "up")
        self._address(self.client, CLIENT4, CLIENT6)
        for host in (CADDY, HYPERCORN, EYAS, DNS):
            self._address(self.server, ipv4(host), ipv6(host))
        ip("-n", self.client, "route", "add", "default", "via", ipv4(CADDY))
        ip("-n", self.client, "-6", "route", "add", "default", "via", ipv6(CADDY))
        # The server's host silently discards packets to the unused address.
        for host in (BLACKHOLE, REFUSING):
            ip("-n", self.client, "route", "add", ipv4(host), "via", ipv4(CADDY))
            ip("-n", self.client, "-6", "route", "add", ipv6(host), "via", ipv6(CADDY))
        ip("-n", self.server, "route", "add", "blackhole", ipv4(BLACKHOLE))
        ip("-n", self.server, "-6", "route", "add", "blackhole", ipv6(BLACKHOLE))
        sysctl(self.server, "net.ipv4.ip_forward=1")
        sysctl(self.server, "net.ipv6.conf.all.forwarding=1")
        # Each refusal is answered, without a rate limit.
        sysctl(self.server, "net.ipv4.icmp_ratelimit=0")
        sysctl(self.server, "net.ipv6.icmp.ratelimit=0")
        self._drop_to_blackhole()

    def _address(self, namespace: str, address4: str, address6: str) -> None:
        ip("-n", namespace, "address", "add", f"{address4}/24", "dev", "wire")
        ip("-n", namespace, "-6", "address", "add", f"{address6}/64", "dev", "wire", "nodad")

    def _drop_to_blackhole(self) -> None:
        # A blackhole for forwarded IPv6 packets still answers on some kernels; a filter does not.
        self.filter(
            "table inet blackhole { chain incoming { type filter hook prerouting priority -300;"
            f" ip daddr {ipv4(BLACKHOLE)} drop; ip6 daddr {ipv6(BLACKHOLE)} drop; }}; }}\n"
        )

    def swallow_udp(self) -> None:
        """Drops UDP to port 443 of the server from now on."""
        self.filter(
            "table inet swallow { chain incoming { type filter hook prerouting priority -300;"
            " udp dport 443 drop; }; }\n"
        )
        self._swallows_udp = True

    def heal(self) -> None:
        """Undoes `swallow_udp`."""
        if self._swallows_udp:
            self.filter("delete table inet swallow")
            self._swallows_udp = False

    def refuse(self, icmpv6_type: str, icmp_type: str) -> None:
        """Answers packets to `REFUSING` with ICMPv6 and ICMP errors of these types from now on."""
        self.filter(
            "table inet refuse { chain incoming { type filter hook prerouting priority -300;"
            f" ip daddr {ipv4(REFUSING)} reject with icmp type {icmp_type};"
            f" ip6 daddr {ipv6(REFUSING)} reject with icmpv6 type {icmpv6_type}; }}; }}\n"
        )

    def stop_refusing(self) -> None:
        """Undoes `refuse`."""
        self.filter("delete table inet refuse")

    def filter(self, rules: str) -> None:
        """Applies nft rules in the server's namespace."""
        command = ["ip", "netns", "exec", self.server, "nft", "-f", "-"]
        subprocess.run(command, input=rules, text=True, capture_output=True, check=True)

    def enter_client(self) -> None:
        """Moves this process, and those it starts from now on, to the client's namespace."""
        libc = ctypes.CDLL(None, use_errno=True)
        handle = os.open(f"/run/netns/{self.client}", os.O_RDONLY)
        try:
            if libc.setns(handle, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(handle)

    def on_server(self, command: list[str]) -> list[str]:
        """Returns the command line that runs a command on the server."""
        return ["ip", "netns", "exec", self.server, *command]

    def remove(self) -> None:
        """Removes both namespaces."""
        for namespace in (self.client, self.server):
            try:
                subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
            except OSError:
                return


def ip(*arguments: str) -> None:
    """Runs `ip` with these arguments."""
    subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)


def sysctl(namespace: str, setting: str) -> None:
    """Sets one kernel setting, `name=value`, in a namespace."""
    name, value = setting.split("=")
    line = f"echo {value} > /proc/sys/{name.replace('.', '/')}"
    command = ["ip", "netns", "exec", namespace, "sh", "-c", line]
    subprocess.run(command, capture_output=True, text=True, check=True)
