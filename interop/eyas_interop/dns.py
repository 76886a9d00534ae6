"""CoreDNS with the zone `eyas.test`: one name for each thing that an HTTPS record can say."""

import pathlib
import socket
import struct

from .network import CADDY, DNS, EYAS, HYPERCORN, NOBODY, ipv4, ipv6

ORIGIN = "eyas.test"
PORT = 53
HTTPS_RECORD = 65


def zone() -> str:
    """The zone file."""
    lines = [
        f"$ORIGIN {ORIGIN}.",
        "$TTL 60",
        "@ IN SOA ns hostmaster 1 3600 600 86400 60",
        "@ IN NS ns",
        *addresses("ns", DNS),
        # Servers with all three versions of HTTP.
        *addresses("caddy", CADDY),
        'caddy IN HTTPS 1 . alpn="h3,h2"',
        *addresses("hypercorn", HYPERCORN),
        'hypercorn IN HTTPS 1 . alpn="h3,h2"',
        *addresses("serve", EYAS),
        'serve IN HTTPS 1 . alpn="h3,h2"',
        # No HTTPS record at all.
        *addresses("bare", CADDY),
        # A record that leaves HTTP/3 out.
        *addresses("no-h3", CADDY),
        'no-h3 IN HTTPS 1 . alpn="h2"',
        # Hints that are right, that alone name the address in time, and that are wrong.
        *addresses("hinted", CADDY),
        f'hinted IN HTTPS 1 . alpn="h3,h2" ipv4hint={ipv4(CADDY)} ipv6hint={ipv6(CADDY)}',
        *addresses("wrong-hint", CADDY),
        f'wrong-hint IN HTTPS 1 . alpn="h3,h2" ipv4hint={ipv4(NOBODY)} ipv6hint={ipv6(NOBODY)}',
        # AliasMode: once, twice, and round in a circle.
        "alias IN HTTPS 0 caddy",
        "alias-twice IN HTTPS 0 alias",
        "circle IN HTTPS 0 circle-back",
        "circle-back IN HTTPS 0 circle",
        # ServiceMode with another target, another port, and several priorities.
        'target IN HTTPS 1 hypercorn alpn="h3,h2"',
        'port IN HTTPS 1 hypercorn alpn="h2" port=8443',
        *addresses("nobody", NOBODY),
        # With hints, for without them an answer for the second service may come first and win.
        f'priority IN HTTPS 1 nobody alpn="h3,h2" ipv4hint={ipv4(NOBODY)} ipv6hint={ipv6(NOBODY)}',
        'priority IN HTTPS 2 caddy alpn="h3,h2"',
        # A mandatory key that nobody knows: the record must not be used.
        *addresses("mandatory", CADDY),
        'mandatory IN HTTPS 1 nobody alpn="h3,h2" mandatory=key65000 key65000="x"',
        # One family only.
        f"only4 IN A {ipv4(CADDY)}",
        f"only6 IN AAAA {ipv6(CADDY)}",
        # IPv6 that leads nowhere.
        f"broken6 IN AAAA {ipv6(NOBODY)}",
        f"broken6 IN A {ipv4(CADDY)}",
    ]
    return "\n".join(lines) + "\n"


def addresses(name: str, host: int) -> list[str]:
    """AAAA and A of a host."""
    return [f"{name} IN AAAA {ipv6(host)}", f"{name} IN A {ipv4(host)}"]


def write_configuration(directory: pathlib.Path) -> pathlib.Path:
    """Writes the zone and the Corefile; gives the latter."""
    (directory / "zone").write_text(zone())
    corefile = directory / "Corefile"
    corefile.write_text(
        f".:{PORT} {{\n    bind {ipv4(DNS)} {ipv6(DNS)}\n"
        f"    file {directory / 'zone'} {ORIGIN}\n    errors\n}}\n"
    )
    return corefile


def query(name: str, record: int) -> bytes:
    """A query as it goes over the wire (RFC 1035)."""
    header = struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0)
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return header + labels + b"\0" + struct.pack("!2H", record, 1)


def answers(server: str, name: str, record: int = HTTPS_RECORD) -> int:
    """How many records a server answers with; 0 if it is silent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(0.5)
        try:
            udp.sendto(query(name, record), (server, PORT))
            return struct.unpack("!6H", udp.recv(4096)[:12])[3]
        except OSError:
            return 0
