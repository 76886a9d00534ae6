"""Runs the programs in `interop/hostile`, one after the other, each for a bounded time."""

import os
import pathlib
import signal
import subprocess
import sys

from ..report import Report
from .stage import PEER

PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "hostile"
# No attack takes longer, in seconds.
LIMIT = 60
# How a line of a program begins, by what it tells.
MARKS = {"ok": "passed", "FAIL": "failed", "MISS": "missed", "SKIP": "skipped"}


def programs(only: list[str]) -> list[pathlib.Path]:
    """All of them, or those with one of the words in their name; `hostile` is in all names."""
    found = sorted(path for path in PROGRAMS.glob("*.py") if not path.name.startswith("_"))
    return [path for path in found if not only or any(word in f"{PEER} {path.stem}" for word in only)]


def run(eyas: pathlib.Path, report: Report, only: list[str]) -> None:
    """Runs them and takes their lines over."""
    for program in programs(only):
        said, problem = bounded([sys.executable, str(program), "--eyas", str(eyas)])
        told = take_over(said, report)
        if problem or not told:
            report.failed(PEER, program.stem, problem or f"it told nothing: {said[-400:]}")


def bounded(command: list[str]) -> tuple[str, str]:
    """What a program said, and what went wrong with it. It is ended with all that it has started."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=LIMIT)
        problem = "" if process.returncode in (0, 1) else f"status {process.returncode}: {said[-400:]}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        problem = f"no end after {LIMIT} s"
    return said, problem


def take_over(said: str, report: Report) -> int:
    """Prints the lines of a program and counts its checks as the run's; says how many there were."""
    told = 0
    for line in said.splitlines():
        mark, _, rest = line.partition(" ")
        if mark in MARKS and rest.startswith(" "):
            report.counts[MARKS[mark]] += 1
            told += 1
        elif not line.startswith("      "):
            # The closing line is the run's own; what else is said is shown behind a failure.
            continue
        print(line, flush=True)
    return told
