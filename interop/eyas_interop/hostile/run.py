"""Runs the programs in `interop/hostile` one after the other, each with a time limit."""

import os
import pathlib
import signal
import subprocess
import sys

from ..report import Report
from .stage import PEER

PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "hostile"
# The time limit of an attack, in seconds: several times what one takes, since it shares the machine. What eyas has to
# keep to is checked by the attack itself.
LIMIT = 180
# The first word of a program's report line, and the count that it belongs to.
MARKS = {"ok": "passed", "FAIL": "failed", "MISS": "missed", "SKIP": "skipped"}


def programs(only: list[str]) -> list[pathlib.Path]:
    """Returns all programs, or those with one of the words in their name; `hostile` is in all names."""
    found = sorted(path for path in PROGRAMS.glob("*.py") if not path.name.startswith("_"))
    return [path for path in found if not only or any(word in f"{PEER} {path.stem}" for word in only)]


def run(eyas: pathlib.Path, report: Report, only: list[str]) -> None:
    """Runs them and adds their lines to the report."""
    for program in programs(only):
        output, problem = run_with_limit([sys.executable, str(program), "--eyas", str(eyas)])
        checks = add_to_report(output, report)
        if problem or not checks:
            report.failed(PEER, program.stem, problem or f"it reported no checks: {output[-400:]}")


def run_with_limit(command: list[str]) -> tuple[str, str]:
    """Returns the output of a program and the problem with it, if any. At the limit it is killed with its child processes."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LIMIT)
        problem = "" if process.returncode in (0, 1) else f"status {process.returncode}: {output[-400:]}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        problem = f"no end after {LIMIT} s"
    return output, problem


def add_to_report(output: str, report: Report) -> int:
    """Prints the lines of a program and counts its checks in the report; returns their number."""
    checks = 0
    for line in output.splitlines():
        mark, _, rest = line.partition(" ")
        if mark in MARKS and rest.startswith(" "):
            report.counts[MARKS[mark]] += 1
            checks += 1
        elif not line.startswith("      "):
            # The run prints its own closing line; other output is shown with a failure.
            continue
        print(line, flush=True)
    return checks
