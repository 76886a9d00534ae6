"""Unchanged programs for the kernel's SCTP under `eyas sctp run`, each pair on one host."""

from ..network import ip
from ..world import World
from .case import about
from .sctp_pair_runs import OurHost, report_pair, run_pair
from .sctp_pairs import LANGUAGES, SIGNALLING, TOOLS, Pair
from .sctp_sockets import client, in_parallel, require

ADDRESSES = {
    "server": "127.0.0.1", "server2": "127.0.0.2", "server6": "::1", "client": "127.0.0.1", "client2": "127.0.0.2",
}


# Additional addresses of this host, for programs that do not use loopback addresses.
ADDITIONAL_ADDRESSES = {"server": "192.0.2.201", "client": "192.0.2.202"}


def on_one_host(world: World, pairs: list[Pair]) -> None:
    def run(pair: Pair, carrier: str) -> tuple[bool, str]:
        addresses = ADDRESSES if pair.loopback else ADDITIONAL_ADDRESSES
        return run_pair(world, pair, OurHost(world, carrier), OurHost(world, carrier), addresses)

    for pair in pairs:
        if not pair.needs_two_hosts:
            report_pair(world, "one host", pair, run)


@about("sctp")
def case_socket_programs(world: World) -> None:
    """Tools that test and measure SCTP, and that transfer lines."""
    on_one_host(world, TOOLS)


@about("sctp")
def case_socket_languages(world: World) -> None:
    """The SCTP libraries of Python, Erlang, Java and Go."""
    on_one_host(world, LANGUAGES)


@about("sctp")
def case_socket_signalling(world: World) -> None:
    """Programs of telephone networks."""
    for address in ADDITIONAL_ADDRESSES.values():
        ip("address", "replace", f"{address}/32", "dev", "lo")
    on_one_host(world, SIGNALLING)


@about("stress-ng")
def case_socket_programs_alone(world: World) -> None:
    """stress-ng, which tries all options; mtr and ncat to a port without a listener, which mtr counts as an answer."""
    require("stress-ng", "mtr", "ncat")
    check = world.report.check

    def check_all(carrier: str) -> None:
        status, output = client(world, carrier, "stress-ng --sctp 1 -t 1 --metrics".split())
        counted = [line.split() for line in output.splitlines() if "] sctp " in line]
        rounds = int(counted[0][4]) if counted else 0
        good = status == 0 and rounds > 0 and "successful run completed" in output
        check("stress-ng", f"stress-ng --sctp, {carrier}", good, f"{rounds} rounds" if good else output[-300:])
        status, output = client(world, carrier, "mtr --sctp -r -c 1 -G 1 127.0.0.1".split())
        check("mtr", f"mtr --sctp, {carrier}", status == 0 and "0.0%" in output, output[-200:])
        status, output = client(world, carrier, ["ncat", "--sctp", "127.0.0.1", "5999"])
        check("ncat", f"refused, {carrier}", status == 1 and "Connection refused" in output, output)

    in_parallel(check_all)


CASES = [case_socket_programs, case_socket_languages, case_socket_signalling, case_socket_programs_alone]
