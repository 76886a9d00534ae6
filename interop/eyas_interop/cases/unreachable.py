"""Routers and hosts report unreachable destinations by ICMP, which fails the attempts at once."""

import pathlib

from ..far_router import BEHIND4, BEHIND6, FarRouter
from ..network import REFUSING, ipv4, ipv6
from ..world import World
from .case import about

# The answers of the server's host for the refusing address: nft's names for ICMPv6 and ICMP types, the cause
# that eyas must report, and words of its detail.
REFUSALS = (
    ("no-route", "net-unreachable", "unreachable", "there is no route to it"),
    ("admin-prohibited", "admin-prohibited", "unreachable", "a filter or a policy forbids it"),
    ("addr-unreachable", "host-unreachable", "unreachable", "no host responds at this address"),
    ("port-unreachable", "port-unreachable", "refused", "nothing is listening on this port"),
)
# Earlier than any transport's first retransmission, in ms. A busy machine may need several tries to
# show it.
IMMEDIATE_MS = 900.0
TRIES = 3
# What follows where the sender of the message is known.
SENDER_PREFIX = " (ICMP from "
# Exists where the kernel supports MPTCP.
MPTCP = pathlib.Path("/proc/sys/net/mptcp/enabled")


@about("router")
def case_unreachable(world: World) -> None:
    """Each ICMP type, for each transport, over each address family."""
    for icmpv6_type, icmp_type, cause, words in REFUSALS:
        world.network.refuse(icmpv6_type, icmp_type)
        try:
            for address in (f"[{ipv6(REFUSING)}]", ipv4(REFUSING)):
                for transport in ("quic", "tcp"):
                    check(world, f"{transport}://{address}:443", cause, f"{words}{SENDER_PREFIX}")
        finally:
            world.network.stop_refusing()


@about("router")
def case_unreachable_far_away(world: World) -> None:
    """A router that answers after connect() has returned: MPTCP fails as early, but without the sender."""
    with FarRouter():
        for address in (f"[{BEHIND6}]", BEHIND4):
            words = f"no host responds at this address{SENDER_PREFIX}"
            check(world, f"tcp://{address}:443", "unreachable", words)
            if MPTCP.exists():
                check(world, f"mptcp://{address}:443", "unreachable", "No route to host")


def check(world: World, target: str, cause: str, words: str) -> None:
    """Checks that one attempt fails early, with this cause and these words."""
    for _ in range(TRIES):
        completed = world.eyas.run("race", target, "--json", "--memory", "none", *world.trust)
        attempts = completed.attempts
        good = completed.status != 0 and bool(attempts) and all(
            str(it.get("reason")).startswith(f"{cause}: {words}")
            and float(it.get("ended_ms") or IMMEDIATE_MS) < IMMEDIATE_MS
            for it in attempts
        )
        if good:
            break
    detail = "; ".join(f"{it.get('ended_ms')} ms {it.get('reason')}" for it in attempts)
    world.report.check("router", f"{target}: {words}", good, detail or str(completed))


CASES = [case_unreachable, case_unreachable_far_away]
