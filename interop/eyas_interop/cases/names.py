"""The features of HTTPS records, each served by CoreDNS."""

from ..network import CADDY, HYPERCORN, BLACKHOLE, ipv4, ipv6
from ..world import World
from .case import about


def fetch(world: World, name: str, *flags: str):
    """Fetches the page of a name without memory; returns the run and the body."""
    world.server("caddy")
    world.server("hypercorn")
    page = world.file("page")
    completed = world.eyas.run(
        "get", f"https://{name}.eyas.test/", "--json", "--memory", "none",
        "--output", str(page), *flags, *world.trust,
    )
    return completed, page.read_text() if page.exists() else ""


def address_prefixes(host: int) -> tuple[str, str]:
    """Returns both addresses of a host as they begin in the JSON, before the port."""
    return f"{ipv4(host)}:", f"[{ipv6(host)}]:"


# The number of races until the expected transport must win: on a busy machine a handshake may
# take longer than the head start.
TRIES = 3


def expect(world: World, name: str, server: str, transport: str | None, host: int) -> None:
    """Checks that the page of a name comes from this server, over this transport."""
    for _ in range(TRIES):
        completed, body = fetch(world, name)
        winner = completed.winner
        good = completed.status == 0 and body.startswith(server)
        good = good and str(winner.get("address", "")).startswith(address_prefixes(host))
        if not good or transport in (None, winner.get("transport")):
            break
    else:
        good = False
    world.report.check("coredns", name, good, f"{body} {completed.outline()}")


@about("coredns")
def case_records(world: World) -> None:
    """Names that lead to a page."""
    for name, server, transport, host in [
        ("caddy", "caddy", "quic", CADDY),
        ("no-h3", "caddy", "tcp", CADDY),
        ("hinted", "caddy", "quic", CADDY),
        ("wrong-hint", "caddy", None, CADDY),
        ("alias", "caddy", "quic", CADDY),
        ("alias-twice", "caddy", "quic", CADDY),
        ("target", "hypercorn", "quic", HYPERCORN),
        ("port", "hypercorn", "tcp", HYPERCORN),
        ("priority", "caddy", None, CADDY),
        ("mandatory", "caddy", None, CADDY),
        ("only4", "caddy", None, CADDY),
        ("only6", "caddy", None, CADDY),
        ("broken6", "caddy", None, CADDY),
        ("bare", "caddy", None, CADDY),
    ]:
        expect(world, name, server, transport, host)


@about("coredns")
def case_record_without_h3_starts_no_quic(world: World) -> None:
    """A record with only h2: no QUIC packet is sent."""
    completed, _ = fetch(world, "no-h3")
    transports = [it["transport"] for it in completed.attempts]
    good = completed.status == 0 and transports != [] and "quic" not in transports
    world.report.check("coredns", "no-h3 starts no quic", good, completed.outline())


@about("coredns")
def case_port_is_followed(world: World) -> None:
    """The port of the record is used, not the URL's."""
    completed, body = fetch(world, "port")
    good = completed.status == 0 and str(completed.winner.get("address")).endswith(":8443")
    world.report.check("coredns", "port 8443 is used", good, f"{body} {completed.outline()}")


@about("coredns")
def case_priority_order(world: World) -> None:
    """The service with the lower number is tried first, and the next one although the first does not answer."""
    completed, _ = fetch(world, "priority")
    first = completed.attempts[0]["address"] if completed.attempts else ""
    good = completed.status == 0 and first.startswith(address_prefixes(BLACKHOLE))
    world.report.check("coredns", "priority 1 is tried before 2", good, completed.outline())


@about("coredns")
def case_circle(world: World) -> None:
    """An alias loop ends early, in an error that names the host."""
    completed, _ = fetch(world, "circle")
    output = completed.stdout + completed.stderr
    good = completed.status == 6 and "circle" in output and completed.elapsed < 20
    world.report.check("coredns", "alias loop", good, f"{completed} after {completed.elapsed:.1f} s")


@about("coredns")
def case_unknown_name(world: World) -> None:
    """A name that does not exist: curl's exit code for it, and the name in the message."""
    completed, _ = fetch(world, "not-there")
    output = completed.stdout + completed.stderr
    good = completed.status == 6 and "not-there.eyas.test" in output
    world.report.check("coredns", "unknown name", good, str(completed))


CASES = [
    case_records,
    case_record_without_h3_starts_no_quic,
    case_port_is_followed,
    case_priority_order,
    case_circle,
    case_unknown_name,
]
