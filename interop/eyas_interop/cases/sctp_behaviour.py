"""The results of socket calls under `eyas sctp run`, compared with those of a kernel."""

from ..report import Skip
from ..world import World
from .case import about
from .sctp_guest import PROGRAMS, built, recorded
from .sctp_sockets import CARRIERS, client

# `poll` cannot report an error alone (docs/guide/sctp-run.md).
DIFFERENCES = {"poll, refused, and reported: ERR": "poll, refused, and reported: IN OUT"}
# Trapped calls are carried out for every user by one process (docs/guide/sctp-run.md).
TRAPPED_DIFFERENCES = {"REUSEPORT, another user: EADDRINUSE": "REUSEPORT, another user: 0"}


@about("rfc6458")
def case_socket_behaviour(world: World) -> None:
    """Each call of peers/rfc6458/behaviour.c and options.c."""
    for program in PROGRAMS:
        expected = replaced(recorded(program), DIFFERENCES)
        for carrier in CARRIERS:
            compare(world, carrier, program, expected)
        # Over the carrier that is chosen then.
        compare(world, "--seccomp", program, replaced(expected, TRAPPED_DIFFERENCES))


def replaced(lines: list[str], differences: dict[str, str]) -> list[str]:
    """Returns the lines, with those that differ here in place of the kernel's."""
    return [differences.get(line, line) for line in lines]


def compare(world: World, carrier: str, program: str, expected: list[str]) -> None:
    """Compares the results of one program, run in one way."""
    status, output = client(world, carrier, [str(built(program))])
    if "cannot intercept the calls" in output:
        raise Skip(output.strip())
    lines = output.splitlines()
    differences = [f"{ours!r} for {linux!r}" for ours, linux in zip(lines, expected) if ours != linux]
    good = status == 0 and lines == expected
    detail = "; ".join(differences) or f"{len(lines)} of {len(expected)} lines"
    world.report.check("rfc6458", f"answers as Linux does, {program}, {carrier}", good, detail)


CASES = [case_socket_behaviour]
