"""The same load by both generators on one server: their figures must agree.

The server waits 100 ms before it answers, so that the comparison shows how both measure, and not how
much load each puts on the machine.
"""

import json
import pathlib
import shutil
import subprocess

from ..command import Command
from ..report import Report
from .h2load import EXTRA_TIME, SECONDS, WARM_UP, Measured
from .h2load import run as run_h2load

# The maximum relative difference of the figures.
TOLERANCE = 0.05
# Milliseconds before the server answers.
RESPONSE_DELAY = 100
# Name, whether TLS, connections, requests a second, flags of h2load, flags of eyas load.
LOADS = (
    ("HTTP/1.1, 50 kept", False, 50, 250, ["--h1"], ["--http1.1"]),
    ("HTTP/1.1 with TLS, 20 kept", True, 20, 100, ["--h1"], ["--http1.1"]),
    ("HTTP/2 with TLS, 4 kept", True, 4, 1000, ["--max-concurrent-streams=100"], ["--http2", "--streams=100"]),
)


class Server:
    """`eyas serve` on loopback."""

    def __init__(self, eyas: pathlib.Path, tls: bool) -> None:
        plain = [] if tls else ["--plain"]
        command = [str(eyas), "serve", "--json", "--no-files", "--no-sctp", "--no-h3", "--listen=0"]
        self.process = subprocess.Popen(
            [*command, *plain], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        text = ""
        # It prints one object once it listens, and nothing afterwards.
        for line in self.process.stdout:
            text += line
            if line == "}\n":
                break
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://{json.loads(text)['address']}/slow?ms={RESPONSE_DELAY}"

    def stop(self) -> None:
        """Kills it."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def run_ours(
    eyas: pathlib.Path, url: str, connections: int, rate: int, flags: list[str],
    directory: pathlib.Path,
) -> Measured:
    """Runs the load with `eyas load`."""
    arguments = [
        "load", "--json", "--insecure", "--arrivals=constant", f"--rate={rate}",
        f"--warm-up={WARM_UP}s", f"--duration={WARM_UP + SECONDS}s", f"--connections={connections}",
        *flags, url,
    ]
    outcome = Command(eyas, directory, []).run(*arguments).json["outcome"]
    if outcome["failed"] or outcome["refused"] or outcome["dropped"]:
        raise RuntimeError(f"some requests were not answered: {outcome}")
    total = outcome["times_ms"]["total"]
    quantiles = {f"{name} ms": total[name] for name in ("p50", "p90", "p99")}
    # Like h2load's rate: until the last request began, not until the last response arrived.
    return Measured(outcome["answered"] / outcome["arriving_s"], total["mean"], quantiles)


def compare(theirs: Measured, ours: Measured) -> tuple[bool, list[tuple[str, float, float, float]]]:
    """Returns whether all figures agree, and each of them."""
    rows = []
    for name, h2load in theirs.rows().items():
        eyas = ours.rows()[name]
        rows.append((name, h2load, eyas, eyas / h2load - 1))
    return all(abs(row[3]) <= TOLERANCE for row in rows), rows


def attempt(eyas: pathlib.Path, load: tuple, directory: pathlib.Path):
    """Runs both on one server, one after the other."""
    _, tls, connections, rate, their_flags, our_flags = load
    server = Server(eyas, tls)
    try:
        theirs = run_h2load(server.url, connections, rate, their_flags, directory)
        ours = run_ours(eyas, server.url, connections, rate, our_flags, directory)
    finally:
        server.stop()
    return compare(theirs, ours)


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Runs every load, and prints the table at the end."""
    if not shutil.which("h2load"):
        report.skip("h2load", "all", "h2load is not installed (Debian: nghttp2-client)")
        return
    table = []
    for load in LOADS:
        name = load[0]
        try:
            good, rows = attempt(eyas, load, directory)
            retried = ""
            if not good:
                # On a busy machine a second attempt may succeed, which is reported.
                good, rows = attempt(eyas, load, directory)
                retried = " (second attempt)"
        except Exception as error:  # one broken case must not hide the others
            report.failed("h2load", name, f"{type(error).__name__}: {error}")
            continue
        widest = max(rows, key=lambda row: abs(row[3]))
        detail = f"at most {abs(widest[3]):.1%} difference, in {widest[0]}{retried}"
        report.figure("h2load", name, good, detail)
        table.extend((name, *row) for row in rows)
    show(table)


def show(table: list[tuple[str, str, float, float, float]]) -> None:
    """Prints every figure of both."""
    if not table:
        return
    print(f"\n{'load':<28}{'':<12}{'h2load':>12}{'eyas load':>12}{'diff.':>9}")
    last = None
    for name, figure, theirs, ours, difference in table:
        shown = name if name != last else ""
        last = name
        print(f"{shown:<28}{figure:<12}{theirs:>12.2f}{ours:>12.2f}{difference:>+9.1%}")
    print(flush=True)
