"""Fetching a page over each version of HTTP, and racing, from each server."""

from ..world import World
from .case import for_each_server

# The flag that selects a version, its transport, and the servers' names for it.
VERSIONS = [
    ("--http1.1", "tcp", ("HTTP/1.1", "HTTP/1.1")),
    ("--http2", "tcp", ("HTTP/2.0", "HTTP/2")),
    ("--http3-only", "quic", ("HTTP/3.0", "HTTP/3")),
]


def case_get(world: World, peer: str) -> None:
    """A page over each version; the server's response names the version."""
    world.server(peer)
    for flag, transport, names in VERSIONS:
        page = world.file("page")
        completed = world.eyas.run(
            "get", f"https://{peer}.eyas.test/", flag, "--json", "--memory", "none",
            "--output", str(page), *world.trust,
        )
        body = page.read_text() if page.exists() else ""
        has_version = any(f"{peer} {name} GET" in body for name in names)
        good = completed.status == 0 and has_version and completed.winner.get("transport") == transport
        world.report.check(peer, f"get {flag}", good, f"{body} {completed.outline()}")


def case_get_by_race(world: World, peer: str) -> None:
    """Without flags the page comes over HTTP/3; a busy machine may need another race to show it."""
    world.server(peer)
    for _ in range(3):
        page = world.file("page")
        completed = world.eyas.run(
            "get", f"https://{peer}.eyas.test/", "--json", "--memory", "none",
            "--output", str(page), *world.trust,
        )
        body = page.read_text() if page.exists() else ""
        good = completed.status == 0 and f"{peer} HTTP/3" in body
        if good:
            break
    world.report.check(peer, "get", good, f"{body} {completed.outline()}")


def case_post(world: World, peer: str) -> None:
    """A body is uploaded over HTTP/3."""
    world.server(peer)
    data = "x" * 100_000
    completed = world.eyas.run(
        "get", f"https://{peer}.eyas.test/", "--http3-only", "--memory", "none", "--data", data,
        "--output", "-", *world.trust,
    )
    good = completed.status == 0 and " POST" in completed.stdout
    if peer == "hypercorn":
        good = good and f"POST {len(data)}" in completed.stdout
    world.report.check(peer, "post over h3", good, str(completed))


def case_race_all(world: World, peer: str) -> None:
    """Every transport works on both address families, and the race reports it."""
    world.server(peer)
    completed = world.eyas.run(
        "race", "--all", "--json", "--memory", "none", f"https://{peer}.eyas.test/", *world.trust
    )
    up = {
        (it["transport"], "6" if it["address"].startswith("[") else "4")
        for it in completed.attempts
        if it.get("outcome") in ("won", "lost", "upgraded")
    }
    expected = {(transport, family) for transport in ("tcp", "quic") for family in "46"}
    good = completed.status == 0 and expected <= up
    world.report.check(peer, "race --all", good, completed.outline())


def case_race_wrong_trust(world: World, peer: str) -> None:
    """Without the CA certificate no attempt wins, and the exit code names the certificate as the cause."""
    world.server(peer)
    completed = world.eyas.run("race", "--json", "--memory", "none", f"https://{peer}.eyas.test/")
    good = completed.status == 60 and not completed.winner
    world.report.check(peer, "race without trust", good, f"{completed.outline()}")


CASES = [*for_each_server(
    case_get, case_get_by_race, case_post, case_race_all, case_race_wrong_trust
)]
