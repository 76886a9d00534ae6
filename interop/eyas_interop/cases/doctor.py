"""`eyas doctor` on networks with one fault each: it has to name this fault, and no other."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .. import name_server, servers
from ..network import DNS, EYAS, ipv4, ipv6
from ..process import Peer
from ..world import World
from .case import about

PORT = 8444
DNS_PORT = 5300
# Long enough for a lost first packet to be repeated, in seconds.
TIMEOUT = 5
# How much later than that the report may come on a busy machine, in seconds.
GRACE = 5


@contextmanager
def stage(world: World, fault: str = "none", rules: str = "") -> Iterator[None]:
    """Runs `eyas serve` and a name server with a fault, and drops packets by these rules of nft."""
    listen = [f"{ipv4(EYAS)}:{PORT}", f"[{ipv6(EYAS)}]:{PORT}"]
    identity = ["--cert", str(world.identity.chain), "--key", str(world.identity.key)]
    listen_flags = [flag for address in listen for flag in ("--listen", address)]
    serve = [str(world.eyas_binary), "serve", *listen_flags, *identity]
    name = [sys.executable, "-m", "eyas_interop.name_server", fault, ipv4(DNS), str(DNS_PORT)]
    peers: list[Peer] = []
    try:
        for kind, command in (("doctor-serve", serve), ("doctor-dns", name)):
            peers.append(servers.start(kind, world.network.on_server(command), world.directory))
        peers[0].wait_until(lambda: servers.answers_tls(ipv4(EYAS), PORT))
        peers[1].wait_until(lambda: name_server.is_up(ipv4(DNS), DNS_PORT))
        if rules:
            world.network.filter(
                "table inet doctor { chain incoming { type filter hook prerouting priority -300;"
                f" {rules}; }}; }}\n"
            )
        yield
    finally:
        if rules:
            world.network.filter("table inet doctor {}\ndelete table inet doctor\n")
        for peer in peers:
            peer.stop()


def examine(world: World, check: str, broken: dict[str, str]) -> dict[str, dict]:
    """Checks that exactly these topics are broken, with these words, within the time; returns all topics."""
    completed = world.eyas.run(
        "doctor", f"{name_server.NAME}:{PORT}", "--json", "--timeout", f"{TIMEOUT}s", "--memory", "none",
        "--dns-server", f"{ipv4(DNS)}:{DNS_PORT}", *world.trust, bare=True,
    )
    topics = {it["topic"]: it for it in completed.json.get("topics", [])}
    found = {name: it["finding"] for name, it in topics.items() if it["verdict"] == "broken"}
    good = completed.status == (116 if broken else 0) and completed.elapsed < TIMEOUT + GRACE
    good = good and set(found) == set(broken)
    good = good and all(words in found[name] for name, words in broken.items())
    world.report.check("doctor", check, good, f"{found or completed} after {completed.elapsed:.1f} s")
    return topics


@about("doctor")
def case_doctor_without_a_fault(world: World) -> None:
    """Nothing is broken, over both families and QUIC."""
    with stage(world):
        topics = examine(world, "nothing is broken", {})
    for topic in ("ipv4", "ipv6", "tcp", "quic", "https-records", "path-mtu"):
        it = topics.get(topic, {})
        world.report.check("doctor", f"{topic} is good", it.get("verdict") == "good", str(it))


@about("doctor")
def case_doctor_of_dropped_packets(world: World) -> None:
    """UDP, or IPv6, gets no answer."""
    with stage(world, rules=f"udp dport {PORT} drop"):
        examine(world, "udp is dropped", {"quic": "blocked: packets"})
    with stage(world, rules=f"ip6 daddr {ipv6(EYAS)} tcp dport {PORT} drop"):
        examine(world, "tcp over ipv6 is dropped", {"ipv6": "over IPv4 the host answers"})


@about("doctor")
def case_doctor_of_name_servers(world: World) -> None:
    """Each fault of a name server is told from the others."""
    for fault, broken in (
        ("no-https", {"https-records": "swallows"}),
        ("no-tcp", {"dns-over-tcp": "no answer over TCP"}),
    ):
        with stage(world, fault):
            examine(world, f"name server: {fault}", broken)
    with stage(world, "dns64"):
        topics = examine(world, "name server: dns64", {})
    it = topics.get("nat64", {})
    world.report.check("doctor", "the prefix is found", "64:ff9b::/96" in it.get("finding", ""), str(it))


@about("doctor")
def case_doctor_of_a_portal(world: World) -> None:
    """A name server that answers with its own address is not believed."""
    with stage(world, "lies"):
        completed = world.eyas.run(
            "doctor", "--json", "--timeout", f"{TIMEOUT}s", "--memory", "none",
            "--dns-server", f"{ipv4(DNS)}:{DNS_PORT}", bare=True,
        )
    good = completed.status == 116 and "makes up addresses" in completed.stdout
    world.report.check("doctor", "name server: lies", good, str(completed))


CASES = [
    case_doctor_without_a_fault,
    case_doctor_of_dropped_packets,
    case_doctor_of_name_servers,
    case_doctor_of_a_portal,
]
