"""lksctp-tools' own tests of a kernel's SCTP, under `eyas sctp run`."""

import concurrent.futures
import os
import pathlib
import subprocess

from ..report import Skip
from ..world import World
from .case import about
from .sctp_sockets import CARRIERS

# The results on Linux 6.1.
PROGRAMS = 43
PASSES = 426
# The time limit of one program, in seconds; some sleep for most of it.
TIMEOUT = 60
# They mostly wait. Each has its own network, because they all use the same ports.
PARALLEL = 8
OWN_NETWORK = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def run(world: World, carrier: str, program: pathlib.Path) -> tuple[int, str]:
    """Returns how many checks passed, and the lines of those that failed."""
    command = [*OWN_NETWORK, str(world.eyas_binary), "sctp", "run", carrier, "--", str(program)]
    try:
        done = subprocess.run(
            command, timeout=TIMEOUT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return 0, f"{program.name}: no end within {TIMEOUT} s"
    bad = [line for line in done.stdout.splitlines() if " BROK :" in line or " FAIL :" in line]
    if done.returncode != 0:
        bad = bad or [f"{program.name}: status {done.returncode}"]
    return done.stdout.count(" PASS :"), "; ".join(bad)


@about("lksctp")
def case_socket_functional(world: World) -> None:
    """All of their checks."""
    directory = pathlib.Path(os.environ["EYAS_PEERS"]) / "lksctp"
    programs = sorted(directory.glob("test_*"))
    if len(programs) != PROGRAMS:
        raise Skip("lksctp's functional tests are not built; run interop/install lksctp to see why")
    for carrier in CARRIERS:
        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            first = list(pool.map(lambda program: run(world, carrier, program), programs))
        # Some depend on timing: a failed one is retried alone, which is reported.
        retried = [program.name for program, (_, bad) in zip(programs, first) if bad]
        results = [run(world, carrier, program) if bad else (passes, bad)
                for program, (passes, bad) in zip(programs, first)]
        passes = sum(passes for passes, _ in results)
        detail = f"{passes} of {PASSES} checks" + (f", second attempt: {', '.join(retried)}" if retried else "")
        detail += "".join(f"; {bad}" for _, bad in results if bad)
        world.report.check("lksctp", f"functional tests, {carrier}", passes == PASSES, detail)


CASES = [case_socket_functional]
