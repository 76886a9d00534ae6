"""UDP is dropped: TCP wins, the next run remembers it, and HTTP/3 is rediscovered without help."""

import time

from ..world import World
from .case import about, for_each_server

RETEST_AFTER = 2
# How soon HTTP/3 must be used after UDP works again, in seconds.
SEARCH_TIMEOUT = 10


def case_swallowed(world: World, peer: str) -> None:
    """The runs of a user whose network drops UDP for a while."""
    world.server(peer)
    memory = ["--memory", str(world.file("sqlite")), "--retest-after", f"{RETEST_AFTER}s"]
    get = [
        "get", f"https://{peer}.eyas.test/", "--json", "--output", str(world.file("page")),
        *memory, *world.trust,
    ]
    world.network.swallow_udp()
    first = world.eyas.run(*get)
    good = first.status == 0 and first.winner.get("transport") == "tcp"
    good = good and first.json.get("from_memory") is False
    world.report.check(peer, "udp swallowed, no memory: tcp wins", good, first.outline())
    second = world.eyas.run(*get)
    good = second.status == 0 and second.winner.get("transport") == "tcp"
    good = good and second.json.get("from_memory") is True
    good = good and bool(second.attempts) and second.attempts[0]["transport"] == "tcp"
    world.report.check(peer, "udp swallowed, new process: tcp at once", good, second.outline())
    world.network.heal()
    healed = time.monotonic()
    runs = 0
    while time.monotonic() - healed < SEARCH_TIMEOUT:
        time.sleep(RETEST_AFTER / 2)
        runs += 1
        completed = world.eyas.run(*get)
        if completed.status != 0:
            break
        if completed.winner.get("transport") == "quic":
            break
    elapsed = time.monotonic() - healed
    detail = f"after {elapsed:.1f} s and {runs} runs; {completed.outline()}"
    good = completed.status == 0 and completed.winner.get("transport") == "quic"
    world.report.check(peer, "udp works again: h3 is rediscovered", good, detail)


@about("caddy")
def case_network_is_learnt(world: World) -> None:
    """After UDP was dropped for some hosts, a new host does not wait for it.

    A network is learnt separately for each address family, from three hosts; IPv4 is not tried until IPv6
    is known to drop UDP, so it takes twice as many.
    """
    world.server("caddy")
    world.server("hypercorn")
    memory = ["--memory", str(world.file("sqlite"))]
    world.network.swallow_udp()
    for name in ("caddy", "hinted", "bare", "mandatory", "alias", "alias-twice", "wrong-hint"):
        world.eyas.run(
            "get", f"https://{name}.eyas.test/", "--json", "--output", str(world.file("page")),
            *memory, *world.trust,
        )
    completed = world.eyas.run(
        "get", "https://hypercorn.eyas.test/", "--json", "--output", str(world.file("page")),
        *memory, *world.trust,
    )
    good = completed.status == 0 and completed.winner.get("transport") == "tcp"
    good = good and bool(completed.attempts) and completed.attempts[0]["transport"] == "tcp"
    world.report.check("hypercorn", "a new host on a network without udp", good, completed.outline())


@about("caddy")
def case_http3_only_swallowed(world: World) -> None:
    """HTTP/3 only, on a network that drops it: an error with curl's exit code for a timeout."""
    world.server("caddy")
    world.network.swallow_udp()
    completed = world.eyas.run(
        "get", "https://caddy.eyas.test/", "--http3-only", "--json", "--memory", "none", "--connect-timeout", "2s",
        *world.trust,
    )
    good = completed.status == 28 and not completed.winner and completed.elapsed < 20
    world.report.check("caddy", "h3 only, udp swallowed", good, f"{completed} after {completed.elapsed:.1f} s")


CASES = [*for_each_server(case_swallowed), case_network_is_learnt, case_http3_only_swallowed]
