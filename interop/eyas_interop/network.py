"""Two hosts in network namespaces: a client, and a server with the peers on it.

Only addresses for documentation (RFC 5737, RFC 3849) are used, and nothing leaves the namespaces.
"""

import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000

CLIENT4, CLIENT6 = "192.0.2.254", "2001:db8:77::fe"


def ipv4(host: int) -> str:
    """The IPv4 address of the server with that number."""
    return f"192.0.2.{host}"


def ipv6(host: int) -> str:
    """The IPv6 address of the server with that number."""
    return f"2001:db8:77::{host}"


# Who is where.
CADDY, HYPERCORN, EYAS, DNS = 1, 2, 3, 53
# An address that nobody has: packets to it are dropped without an answer.
NOBODY = 66
# An address of which the server's host says by ICMP why it cannot be reached.
REFUSING = 67


class NoNamespaces(Exception):
    """This machine makes no network namespaces."""


class Network:
    """The two namespaces, joined by one cable."""

    def __init__(self) -> None:
        self.client = f"eyas-client-{os.getpid()}"
        self.server = f"eyas-server-{os.getpid()}"
        self._swallowing = False
        self._make()
        try:
            self._set_up()
            self.enter_client()
        except subprocess.CalledProcessError as error:
            self.remove()
            raise RuntimeError(f"{' '.join(error.cmd)}: {error.stderr}") from error

    def _make(self) -> None:
        """Only this may fail for want of rights or of `ip`; what comes later must work."""
        try:
            for namespace in (self.client, self.server):
                ip("netns", "add", namespace)
        except (OSError, subprocess.CalledProcessError) as error:
            self.remove()
            said = getattr(error, "stderr", None) or str(error)
            raise NoNamespaces(f"no network namespaces here: {said.strip()}") from error

    def _set_up(self) -> None:
        for namespace in (self.client, self.server):
            ip("-n", namespace, "link", "set", "lo", "up")
        ip("-n", self.client, "link", "add", "wire", "type", "veth",
           "peer", "name", "wire", "netns", self.server)
        for namespace in (self.client, self.server):
            # Duplicate address detection would hold the addresses back for seconds.
            sysctl(namespace, "net.ipv6.conf.wire.accept_dad=0")
            ip("-n", namespace, "link", "set", "wire", "up")
        self._address(self.client, CLIENT4, CLIENT6)
        for host in (CADDY, HYPERCORN, EYAS, DNS):
            self._address(self.server, ipv4(host), ipv6(host))
        ip("-n", self.client, "route", "add", "default", "via", ipv4(CADDY))
        ip("-n", self.client, "-6", "route", "add", "default", "via", ipv6(CADDY))
        # What goes to nobody is thrown away by the server's host without a word.
        for host in (NOBODY, REFUSING):
            ip("-n", self.client, "route", "add", ipv4(host), "via", ipv4(CADDY))
            ip("-n", self.client, "-6", "route", "add", ipv6(host), "via", ipv6(CADDY))
        ip("-n", self.server, "route", "add", "blackhole", ipv4(NOBODY))
        ip("-n", self.server, "-6", "route", "add", "blackhole", ipv6(NOBODY))
        sysctl(self.server, "net.ipv4.ip_forward=1")
        sysctl(self.server, "net.ipv6.conf.all.forwarding=1")
        # Each refusal is told, however often one is asked for.
        sysctl(self.server, "net.ipv4.icmp_ratelimit=0")
        sysctl(self.server, "net.ipv6.icmp.ratelimit=0")
        self._silence_nobody()

    def _address(self, namespace: str, address4: str, address6: str) -> None:
        ip("-n", namespace, "address", "add", f"{address4}/24", "dev", "wire")
        ip("-n", namespace, "-6", "address", "add", f"{address6}/64", "dev", "wire", "nodad")

    def _silence_nobody(self) -> None:
        # A blackhole for forwarded IPv6 packets still answers on some kernels; a filter does not.
        self.filter(
            "table inet nobody { chain incoming { type filter hook prerouting priority -300;"
            f" ip daddr {ipv4(NOBODY)} drop; ip6 daddr {ipv6(NOBODY)} drop; }}; }}\n"
        )

    def swallow_udp(self) -> None:
        """UDP to port 443 of the server vanishes from now on."""
        self.filter(
            "table inet swallow { chain incoming { type filter hook prerouting priority -300;"
            " udp dport 443 drop; }; }\n"
        )
        self._swallowing = True

    def heal(self) -> None:
        """Takes `swallow_udp` back."""
        if self._swallowing:
            self.filter("delete table inet swallow")
            self._swallowing = False

    def refuse(self, six: str, four: str) -> None:
        """Packets to `REFUSING` are answered by ICMPv6 and ICMP of these types from now on."""
        self.filter(
            "table inet refuse { chain incoming { type filter hook prerouting priority -300;"
            f" ip daddr {ipv4(REFUSING)} reject with icmp type {four};"
            f" ip6 daddr {ipv6(REFUSING)} reject with icmpv6 type {six}; }}; }}\n"
        )

    def stop_refusing(self) -> None:
        """Takes `refuse` back."""
        self.filter("delete table inet refuse")

    def filter(self, rules: str) -> None:
        """Gives rules to nft in the server's namespace."""
        command = ["ip", "netns", "exec", self.server, "nft", "-f", "-"]
        subprocess.run(command, input=rules, text=True, capture_output=True, check=True)

    def enter_client(self) -> None:
        """Makes this process, and what it starts from now on, live on the client."""
        libc = ctypes.CDLL(None, use_errno=True)
        handle = os.open(f"/run/netns/{self.client}", os.O_RDONLY)
        try:
            if libc.setns(handle, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(handle)

    def on_server(self, command: list[str]) -> list[str]:
        """The command, to be run on the server."""
        return ["ip", "netns", "exec", self.server, *command]

    def remove(self) -> None:
        """Takes both namespaces down."""
        for namespace in (self.client, self.server):
            try:
                subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)
            except OSError:
                return


def ip(*words: str) -> None:
    """Runs `ip` with these words."""
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


def sysctl(namespace: str, setting: str) -> None:
    """Sets one kernel setting, `name=value`, in a namespace."""
    name, value = setting.split("=")
    line = f"echo {value} > /proc/sys/{name.replace('.', '/')}"
    command = ["ip", "netns", "exec", namespace, "sh", "-c", line]
    subprocess.run(command, capture_output=True, text=True, check=True)
