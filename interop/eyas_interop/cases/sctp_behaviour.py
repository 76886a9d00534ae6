"""What sockets answer under `eyas sctp run`, line by line beside what a kernel answered."""

import os
import pathlib

from ..report import Skip
from ..world import World
from .case import about
from .sctp_guest import EXPECTED
from .sctp_sockets import CARRIERS, client

# `poll` cannot show an error alone: docs/sctp-run.md says so.
OTHERWISE = {"poll, refused, and told: ERR": "poll, refused, and told: IN OUT"}


@about("rfc6458")
def case_socket_behaviour(world: World) -> None:
    """Each call of peers/rfc6458/behaviour.c."""
    program = pathlib.Path(os.environ["EYAS_PEERS"]) / "sctp" / "linux" / "behaviour"
    if not program.exists():
        raise Skip("the program is not built: interop/install sctp says why")
    wanted = [OTHERWISE.get(line, line) for line in EXPECTED.read_text().splitlines()]
    # And by stopped calls, over what is chosen then.
    for carrier in (*CARRIERS, "--seccomp"):
        status, said = client(world, carrier, [str(program)])
        if "cannot intercept the calls" in said:
            raise Skip(said.strip())
        lines = said.splitlines()
        differ = [f"{ours!r} for {linux!r}" for ours, linux in zip(lines, wanted) if ours != linux]
        good = status == 0 and lines == wanted
        detail = "; ".join(differ) or f"{len(lines)} of {len(wanted)} lines"
        world.report.check("rfc6458", f"answers as Linux does, {carrier}", good, detail)


CASES = [case_socket_behaviour]
