"""Downloads over lines whose directions differ, live by `eyas pipe` over `eyas netem`, and simulated: the same code must
carry as much in both."""

import json
import pathlib
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from ..report import Report
from .dissimilar import PROGRAMS, Bench, Line, Outcome, report_attempts
from .lines import UDP_HEADER

PIPE = PROGRAMS[0]
# What life may carry, relative to the simulation: its clock is that of a machine which does other work as well, and its
# rate is measured over another part of the download.
LEAST, MOST = 0.85, 1.1
# The simulated seconds before the measurement, as slow start is not measured in life either, and those of it.
WARM_UP, DURATION = 5, 20
# The message of the simulated application: it fills a packet inside UDP.
MESSAGE = 1440


class Lines(NamedTuple):
    """Lines that a host has at once."""

    name: str
    lines: tuple[Line, ...]


CASES = (
    Lines("DSL and LTE", (Line(1, 8, 1, 16), Line(2, 35, 20, 50))),
    Lines("cable and a satellite", (Line(1, 12, 4, 40), Line(2, 150, 3, 20))),
    Lines("a short line that carries little back", (Line(1, 5, 0.5, 20), Line(2, 40, 10, 25))),
    Lines("a short line beside two long ones", (Line(1, 5, 2, 2), Line(2, 30, 20, 20), Line(3, 80, 40, 40))),
)


def plan(lines: tuple[Line, ...]) -> str:
    """Returns a plan that sends downwards over these lines, with the options of `eyas pipe`."""
    paths = "".join(
        f'[path.line{line.number}]\nrate = "{line.down} Mbit/s"\ndelay = "{line.delay} ms"\n'
        f'framing = "{UDP_HEADER} bytes"\nback = {{ rate = "{line.up} Mbit/s" }}\n'
        for line in lines
    )
    return (
        'name = "asymmetric"\ntitle = "Lines whose directions differ"\nabout = "One stream over all lines."\nruns = 1\n'
        f'[time]\nwarm_up = "{WARM_UP} s"\nduration = "{DURATION} s"\n{paths}'
        '[association]\nbuffer = "4 MiB"\ninterleaving = true\nnr_sack = true\n'
        f'[application]\nmessage = {MESSAGE}\nstreams = 1\n'
        '[sweep]\nparameter = "association.buffer"\nlabel = "Buffer"\nvalues = ["4 MiB"]\n'
        '[[curve]]\nid = "all"\nlabel = "All lines"\n'
    )


def simulate(bench: Bench) -> float:
    """Returns the simulated Mbit/s."""
    path, results = bench.directory / "plan.toml", bench.directory / "results"
    path.write_text(plan(bench.lines))
    command = [str(bench.eyas), "lab", "run", str(path), "--out", str(results)]
    subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    points = json.loads((results / "result.json").read_text())["points"]
    return points[0]["measures"]["throughput"]["value"]


def comparisons(bench: Bench) -> Iterator[Outcome]:
    """Downloads again and again; yields whether everything arrived, whether it was as fast as simulated, and the
    rates."""
    simulated = simulate(bench)
    while True:
        live = bench.run(PIPE)
        detail = f"{live.rate:.1f} Mbit/s live, {simulated:.1f} simulated, capacity {bench.ceiling(0):.1f}"
        yield live.bytes == bench.size, LEAST <= live.rate / simulated <= MOST, detail


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Runs every case."""
    for number, (name, lines) in enumerate(CASES):
        bench = Bench(directory / f"simulated-{number}", eyas, lines)
        report_attempts(report, f"as simulated: {name}", comparisons(bench))
