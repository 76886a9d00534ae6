"""Routers and hosts say by ICMP that something cannot be reached: it is heard at once, and believed."""

import pathlib

from ..far_router import BEHIND4, BEHIND6, FarRouter
from ..network import REFUSING, ipv4, ipv6
from ..world import World
from .case import about

# What the server's host says of packets to the address that refuses: the words of nft for ICMPv6 and for
# ICMP, the cause that eyas is to tell, and words of its detail.
SAID = (
    ("no-route", "net-unreachable", "unreachable", "there is no route to it"),
    ("admin-prohibited", "admin-prohibited", "unreachable", "a filter or a policy forbids it"),
    ("addr-unreachable", "host-unreachable", "unreachable", "no host responds at this address"),
    ("port-unreachable", "port-unreachable", "refused", "nothing is listening on this port"),
)
# Sooner than any transport sends its first packet again, in ms. A machine that is busy may need a
# second try to show it.
AT_ONCE = 900.0
TRIES = 3
# What follows where it is known who said so.
NAMED = " (ICMP from "
# There where the kernel speaks MPTCP.
MPTCP = pathlib.Path("/proc/sys/net/mptcp/enabled")


@about("router")
def case_unreachable(world: World) -> None:
    """Each kind of message, about each transport, over each family."""
    for six, four, cause, words in SAID:
        world.network.refuse(six, four)
        try:
            for address in (f"[{ipv6(REFUSING)}]", ipv4(REFUSING)):
                for transport in ("quic", "tcp"):
                    check(world, f"{transport}://{address}:443", cause, f"{words}{NAMED}")
        finally:
            world.network.stop_refusing()


@about("router")
def case_unreachable_far_away(world: World) -> None:
    """A router that answers when the call to connect is over: MPTCP ends as soon, but knows not by whom."""
    with FarRouter():
        for address in (f"[{BEHIND6}]", BEHIND4):
            told = f"no host responds at this address{NAMED}"
            check(world, f"tcp://{address}:443", "unreachable", told)
            if MPTCP.exists():
                check(world, f"mptcp://{address}:443", "unreachable", "No route to host")


def check(world: World, target: str, cause: str, words: str) -> None:
    """One attempt: told soon, by its cause and in words."""
    for _ in range(TRIES):
        ran = world.eyas.run("race", target, "--json", "--memory", "none", *world.trust)
        attempts = ran.attempts
        good = ran.status != 0 and bool(attempts) and all(
            str(it.get("reason")).startswith(f"{cause}: {words}")
            and float(it.get("ended_ms") or AT_ONCE) < AT_ONCE
            for it in attempts
        )
        if good:
            break
    said = "; ".join(f"{it.get('ended_ms')} ms {it.get('reason')}" for it in attempts)
    world.report.check("router", f"{target}: {words}", good, said or str(ran))


CASES = [case_unreachable, case_unreachable_far_away]
