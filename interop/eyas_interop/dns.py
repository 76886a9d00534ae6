"""CoreDNS with the zone `eyas.test`: one name for each feature of an HTTPS record."""

import pathlib
import socket
import struct

from .network import CADDY, DNS, EYAS, HYPERCORN, BLACKHOLE, ipv4, ipv6

ORIGIN = "eyas.test"
PORT = 53
HTTPS_RECORD = 65


def zone() -> str:
    """Returns the zone file."""
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
        # A record without HTTP/3.
        *addresses("no-h3", CADDY),
        'no-h3 IN HTTPS 1 . alpn="h2"',
        # Correct hints, and wrong hints.
        *addresses("hinted", CADDY),
        f'hinted IN HTTPS 1 . alpn="h3,h2" ipv4hint={ipv4(CADDY)} ipv6hint={ipv6(CADDY)}',
        *addresses("wrong-hint", CADDY),
        f'wrong-hint IN HTTPS 1 . alpn="h3,h2" ipv4hint={ipv4(BLACKHOLE)} ipv6hint={ipv6(BLACKHOLE)}',
        # AliasMode: one alias, two, and a loop.
        "alias IN HTTPS 0 caddy",
        "alias-twice IN HTTPS 0 alias",
        "circle IN HTTPS 0 circle-back",
        "circle-back IN HTTPS 0 circle",
        # ServiceMode with another target, another port, and several priorities.
        'target IN HTTPS 1 hypercorn alpn="h3,h2"',
        'port IN HTTPS 1 hypercorn alpn="h2" port=8443',
        *addresses("blackhole", BLACKHOLE),
        # With hints: without them an answer for the second service may arrive first and win.
        f'priority IN HTTPS 1 blackhole alpn="h3,h2" ipv4hint={ipv4(BLACKHOLE)} ipv6hint={ipv6(BLACKHOLE)}',
        'priority IN HTTPS 2 caddy alpn="h3,h2"',
        # An unknown mandatory key: the record must not be used.
        *addresses("mandatory", CADDY),
        'mandatory IN HTTPS 1 blackhole alpn="h3,h2" mandatory=key65000 key65000="x"',
        # One family only.
        f"only4 IN A {ipv4(CADDY)}",
        f"only6 IN AAAA {ipv6(CADDY)}",
        # An IPv6 address that does not answer.
        f"broken6 IN AAAA {ipv6(BLACKHOLE)}",
        f"broken6 IN A {ipv4(CADDY)}",
    ]
    return "\n".join(lines) + "\n"


def addresses(name: str, host: int) -> list[str]:
    """Returns the AAAA and A records of a host."""
    return [f"{name} IN AAAA {ipv6(host)}", f"{name} IN A {ipv4(host)}"]


def write_configuration(directory: pathlib.Path) -> pathlib.Path:
    """Writes the zone and the Corefile; returns the path of the latter."""
    (directory / "zone").write_text(zone())
    corefile = directory / "Corefile"
    corefile.write_text(
        f".:{PORT} {{\n    bind {ipv4(DNS)} {ipv6(DNS)}\n"
        f"    file {directory / 'zone'} {ORIGIN}\n    errors\n}}\n"
    )
    return corefile


def query(name: str, record: int) -> bytes:
    """Returns a query in wire format (RFC 1035)."""
    header = struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0)
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return header + labels + b"\0" + struct.pack("!2H", record, 1)


def answers(server: str, name: str, record: int = HTTPS_RECORD) -> int:
    """Returns the number of records in a server's answer; 0 without an answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(0.5)
        try:
            udp.sendto(query(name, record), (server, PORT))
            return struct.unpack("!6H", udp.recv(4096)[:12])[3]
        except OSError:
            return 0
