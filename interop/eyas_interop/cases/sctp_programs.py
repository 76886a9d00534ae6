"""Programs written for the kernel's SCTP, unchanged, under `eyas sctp run`: each with itself, on one loopback."""

from ..network import ip
from ..world import World
from .case import about
from .sctp_meeting import Here, meet, tell
from .sctp_pairs import LANGUAGES, SIGNALLING, TOOLS, Pair
from .sctp_sockets import at_once, client, needs

ADDRESSES = {
    "server": "127.0.0.1", "server2": "127.0.0.2", "server6": "::1", "client": "127.0.0.1", "client2": "127.0.0.2",
}


# Two more that this host has, for programs that leave loopback alone.
OWN = {"server": "192.0.2.201", "client": "192.0.2.202"}


def on_one_host(world: World, pairs: list[Pair]) -> None:
    def one(pair: Pair, carrier: str) -> tuple[bool, str]:
        addresses = ADDRESSES if pair.loopback else OWN
        return meet(world, pair, Here(world, carrier), Here(world, carrier), addresses)

    for pair in pairs:
        if not pair.apart:
            tell(world, "one host", pair, one)


@about("sctp")
def case_socket_programs(world: World) -> None:
    """What tests and measures SCTP, and moves lines."""
    on_one_host(world, TOOLS)


@about("sctp")
def case_socket_languages(world: World) -> None:
    """What Python, Erlang, Java and Go have for SCTP."""
    on_one_host(world, LANGUAGES)


@about("sctp")
def case_socket_signalling(world: World) -> None:
    """What telephone networks run."""
    for address in OWN.values():
        ip("address", "replace", f"{address}/32", "dev", "lo")
    on_one_host(world, SIGNALLING)


@about("stress-ng")
def case_socket_programs_alone(world: World) -> None:
    """stress-ng, which tries all options; mtr and ncat where nobody listens, of which mtr takes that for an answer."""
    needs("stress-ng", "mtr", "ncat")
    check = world.report.check

    def one(carrier: str) -> None:
        status, said = client(world, carrier, "stress-ng --sctp 1 -t 1 --metrics".split())
        counted = [line.split() for line in said.splitlines() if "] sctp " in line]
        rounds = int(counted[0][4]) if counted else 0
        good = status == 0 and rounds > 0 and "successful run completed" in said
        check("stress-ng", f"stress-ng --sctp, {carrier}", good, f"{rounds} rounds" if good else said[-300:])
        status, said = client(world, carrier, "mtr --sctp -r -c 1 -G 1 127.0.0.1".split())
        check("mtr", f"mtr --sctp, {carrier}", status == 0 and "0.0%" in said, said[-200:])
        status, said = client(world, carrier, ["ncat", "--sctp", "127.0.0.1", "5999"])
        check("ncat", f"refused, {carrier}", status == 1 and "Connection refused" in said, said)

    at_once(one)


CASES = [case_socket_programs, case_socket_languages, case_socket_signalling, case_socket_programs_alone]
