"""The key exchange with servers that are not ours: X25519MLKEM768 where they have it, over TLS and QUIC, also where a
device drops the second packet of a ClientHello."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from ..report import Skip
from ..world import World
from .case import about, for_each_server

HYBRID, CLASSICAL = "X25519MLKEM768", "X25519"
# Go has it since 1.24, OpenSSL since 3.5; aioquic, which serves HTTP/3 under Hypercorn, does not.
HAS_HYBRID = {
    ("caddy", "--http2"): True,
    ("caddy", "--http3-only"): True,
    ("hypercorn", "--http2"): ssl.OPENSSL_VERSION_INFO >= (3, 5),
    ("hypercorn", "--http3-only"): False,
}
# A ClientHello with ML-KEM takes two packets at this MTU, and others one.
MTU, USUAL_MTU = 1280, 1500
# Drops segments to a web server that do not begin with a TLS record: the rest of one that takes several.
DROP_THE_REST = """table inet hello {
    chain incoming {
        type filter hook prerouting priority -300;
        tcp dport 443 meta length > 100 @ih,0,8 != { 0x14, 0x15, 0x16, 0x17 } counter drop
    }
}
"""


def case_key_exchange(world: World, peer: str) -> None:
    """`eyas get` tells the group that was negotiated."""
    world.server(peer)
    for flag in ("--http2", "--http3-only"):
        completed = world.eyas.run(
            "get", f"https://{peer}.eyas.test/", flag, "--json", "--memory", "none",
            "--output", str(world.file("page")), *world.trust,
        )
        expected = HYBRID if HAS_HYBRID[peer, flag] else CLASSICAL
        group = (completed.json.get("connection") or {}).get("key_exchange")
        good = completed.status == 0 and group == expected
        world.report.check(peer, f"key exchange, {flag}", good, f"{group}, expected {expected}; {completed.outline()}")


@contextmanager
def the_rest_dropped(world: World) -> Iterator[None]:
    """Drops the second packet of each large ClientHello over TCP."""
    if not shutil.which("ethtool"):
        raise Skip("ethtool is missing: packets would be joined before the filter sees them")
    client = world.network.client

    def apply(mtu: int, offload: str) -> None:
        enter = ["ip", "netns", "exec", client]
        subprocess.run([*enter, "ip", "link", "set", "wire", "mtu", str(mtu)], check=True)
        join = ["ethtool", "-K", "wire", "tso", offload, "gso", offload]
        subprocess.run([*enter, *join], check=True, capture_output=True)

    apply(MTU, "off")
    world.network.filter(DROP_THE_REST)
    try:
        yield
    finally:
        world.network.filter("delete table inet hello")
        apply(USUAL_MTU, "on")


@about("caddy")
def case_second_packet_dropped(world: World) -> None:
    """A device drops the second packet of a ClientHello: the page comes all the same, with X25519 alone."""
    world.server("caddy")
    with the_rest_dropped(world):
        completed = world.eyas.run(
            "get", "https://caddy.eyas.test/", "--http2", "--json", "--memory", "none",
            "--output", str(world.file("page")), *world.trust,
        )
    connection = completed.json.get("connection") or {}
    reasons = " ".join(connection.get("reasons") or [])
    good = completed.status == 0 and connection.get("key_exchange") == CLASSICAL and "two packets" in reasons
    world.report.check("caddy", "the second packet of a ClientHello is dropped", good, f"{connection}, {completed}")


CASES = [*for_each_server(case_key_exchange), case_second_packet_dropped]
