"""Stacks without sockets of their own, in memory: interop/peers/memory runs every case."""

import json
import os
import pathlib
import subprocess

from ..report import Report
from . import table

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "peers" / "memory"
NAMES = ("dcsctp", "rtc-sctp")


def is_wanted(only: list[str]) -> bool:
    """Whether some of its cases shall run: all of SCTP, `memory`, or one of its peers."""
    return not only or any(_parts(word) is not None for word in only)


def _parts(word: str) -> list[str] | None:
    """What the names of the cases must have that a word of `--only` wants; `None`: none is wanted."""
    if word in ("sctp", "memory"):
        return []
    if word in NAMES:
        return [word]
    parts = word.removeprefix("sctp:").split("+")
    wanted = word.startswith("sctp:") and parts[0] not in ("linux", "usrsctp", "pion")
    return [part for part in parts if part != "memory"] if wanted else None


def run(report: Report, only: list[str]) -> None:
    """Every case with every peer, and a table."""
    try:
        binary = build()
    except (OSError, subprocess.CalledProcessError) as error:
        report.failed("memory", "sctp", f"interop/peers/memory is not built: {error}")
        return
    wanted = [parts for word in only if (parts := _parts(word)) is not None]
    columns: list[str] = []
    cells: dict[tuple[str, str], str] = {}
    for words in wanted or [[]]:
        command = [str(binary), *words]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        ) as program:
            for line in program.stdout:
                one(json.loads(line), report, columns, cells)
        if program.returncode != 0:
            report.failed("memory", "sctp", f"the program ended with {program.returncode}")
    table.show("SCTP in memory", columns, cells)


def one(case: dict, report: Report, columns: list[str], cells: dict[tuple[str, str], str]) -> None:
    """What came of one case."""
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
