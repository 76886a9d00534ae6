"""Stacks without sockets, in memory: interop/peers/memory runs every case."""

import json
import os
import pathlib
import subprocess

from ..report import Report
from . import table

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "peers" / "memory"
NAMES = ("dcsctp", "rtc-sctp")


def is_selected(only: list[str]) -> bool:
    """Returns whether some of its cases run: `sctp`, `memory`, or one of its peers."""
    return not only or any(_parts(word) is not None for word in only)


def _parts(word: str) -> list[str] | None:
    """Returns the words that must be in the names of the cases selected by a word of `--only`; `None` if it selects none."""
    if word in ("sctp", "memory"):
        return []
    if word in NAMES:
        return [word]
    parts = word.removeprefix("sctp:").split("+")
    selected = word.startswith("sctp:") and parts[0] not in ("linux", "usrsctp", "pion")
    return [part for part in parts if part != "memory"] if selected else None


def run(report: Report, only: list[str]) -> None:
    """Every case with every peer, and a table."""
    try:
        binary = build()
    except (OSError, subprocess.CalledProcessError) as error:
        report.failed("memory", "sctp", f"interop/peers/memory cannot be built: {error}")
        return
    selected = [parts for word in only if (parts := _parts(word)) is not None]
    columns: list[str] = []
    cells: dict[tuple[str, str], str] = {}
    for words in selected or [[]]:
        command = [str(binary), *words]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        ) as program:
            for line in program.stdout:
                report_case(json.loads(line), report, columns, cells)
        if program.returncode != 0:
            report.failed("memory", "sctp", f"the program ended with {program.returncode}")
    table.show("SCTP in memory", columns, cells)


def report_case(case: dict, report: Report, columns: list[str], cells: dict[tuple[str, str], str]) -> None:
    """Reports the result of one case."""
    peer, we_connect = case["peer"], case["we_connect"]
    column = f"{peer} {'→' if we_connect else '←'}"
    if column not in columns:
        columns.append(column)
    cells[case["case"], column] = case["result"]
    name = f"memory, {'we' if we_connect else 'they'} connect: {case['case']}"
    if case["result"] == "skip":
        report.skip(peer, name, case["detail"])
    else:
        report.check(peer, name, case["result"] == "ok", case["detail"])


def build() -> pathlib.Path:
    """Builds the program."""
    target = pathlib.Path(os.environ["EYAS_PEERS"]).resolve() / "sctp" / "memory"
    command = ["cargo", "build", "--release", "--target-dir", str(target)]
    subprocess.run(command, cwd=SOURCE, stdin=subprocess.DEVNULL, check=True)
    return target / "release" / "memory-peers"
