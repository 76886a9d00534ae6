"""lksctp-tools' own tests of a kernel's SCTP, under `eyas sctp run`."""

import concurrent.futures
import os
import pathlib
import subprocess

from ..report import Skip
from ..world import World
from .case import about
from .sctp_sockets import CARRIERS

# What they say on Linux 6.1.
PROGRAMS = 43
PASSES = 426
# One program may run this long, in seconds; most of that some of them sleep.
WITHIN = 60
# They mostly wait. Each has a network of its own, for they all take the same ports.
AT_ONCE = 8
ALONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def run(world: World, carrier: str, program: pathlib.Path) -> tuple[int, str]:
    """How many checks it passed, and what it said of the first that failed."""
    command = [*ALONE, str(world.eyas_binary), "sctp", "run", carrier, "--", str(program)]
    try:
        done = subprocess.run(
            command, timeout=WITHIN, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return 0, f"{program.name}: no end within {WITHIN} s"
    bad = [line for line in done.stdout.splitlines() if " BROK :" in line or " FAIL :" in line]
    if done.returncode != 0:
        bad = bad or [f"{program.name}: status {done.returncode}"]
    return done.stdout.count(" PASS :"), "; ".join(bad)


@about("lksctp")
def case_socket_functional(world: World) -> None:
    """All that they check."""
    directory = pathlib.Path(os.environ["EYAS_PEERS"]) / "lksctp"
    programs = sorted(directory.glob("test_*"))
    if len(programs) != PROGRAMS:
        raise Skip("lksctp's functional tests are not built: interop/install lksctp says why")
    for carrier in CARRIERS:
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            first = list(pool.map(lambda program: run(world, carrier, program), programs))
        # They rely on timing here and there: one more try, alone, and aloud.
        again = [program.name for program, (_, bad) in zip(programs, first) if bad]
        told = [run(world, carrier, program) if bad else (passes, bad)
                for program, (passes, bad) in zip(programs, first)]
        passes = sum(passes for passes, _ in told)
        detail = f"{passes} of {PASSES} checks" + (f", at the second try: {', '.join(again)}" if again else "")
        detail += "".join(f"; {bad}" for _, bad in told if bad)
        world.report.check("lksctp", f"functional tests, {carrier}", passes == PASSES, detail)


CASES = [case_socket_functional]
