"""The lab: plans, runs in this process, and results."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import SOON
from test_processes import output_of, python

import eyas.lab

#: A plan written by a program.
MINE: dict[str, Any] = {
    "name": "mine",
    "title": "Mine",
    "about": "One path, two sizes.",
    "runs": 2,
    "time": {"warm_up": "2 s", "duration": "2 s"},
    "path": {"A": {"rate": "10 Mbit/s", "delay": "10 ms"}},
    "association": {"profile": "pfldnet2010"},
    "sweep": {"parameter": "association.buffer", "values": ["8 KiB", "64 KiB"]},
    "curve": [{"id": "one"}],
    "figure": [{"title": "Rate <1>", "measure": "throughput"}],
    "claim": [
        {
            "id": "full",
            "text": "It fills the path.",
            "published": "9.6 Mbit/s",
            "check": [{"value": "throughput[one, 64 KiB]", "at_least": 9.4}],
        }
    ],
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> eyas.lab.Result:
    return eyas.lab.run(MINE, out=tmp_path_factory.mktemp("mine"))


def test_built_in_plans() -> None:
    plans = {plan.name: plan for plan in eyas.lab.plans()}
    assert plans["cmt-delay"].claims > 3 and not plans["cmt-delay"].live
    assert plans["h3-delay"].live
    assert eyas.lab.load("cmt-delay") == plans["cmt-delay"]
    assert eyas.lab.load(plans["cmt-delay"]) is plans["cmt-delay"]


def test_plans_from_files_and_mappings(tmp_path: Path) -> None:
    mine = eyas.lab.load(MINE)
    assert (mine.name, mine.points, mine.runs, mine.claims) == ("mine", 2, 2, 1)
    file = tmp_path / "mine.toml"
    file.write_text(mine.text)
    assert eyas.lab.load(file) == mine == eyas.lab.load(str(file))


def test_invalid_plans(tmp_path: Path) -> None:
    with pytest.raises(eyas.lab.PlanError, match="no plan 'cmt-dely'.*cmt-delay"):
        eyas.lab.load("cmt-dely")
    with pytest.raises(ValueError, match="sped"):
        eyas.lab.load({**MINE, "sped": 1})
    with pytest.raises(eyas.Error, match="not a plan"):
        eyas.lab.load({**MINE, "about": None})
    with pytest.raises(eyas.lab.PlanError, match="--set path..delay"):
        eyas.lab.run(MINE, set={"path..delay": 1}, out=tmp_path)
    with pytest.raises(FileNotFoundError):
        eyas.lab.load("nowhere/mine.toml")
    with pytest.raises(eyas.lab.LabError, match="eyas lab run h3-delay"):
        eyas.lab.run("h3-delay")


def test_claims_and_files(result: eyas.lab.Result, tmp_path: Path) -> None:
    (claim,) = result.claims
    assert (claim.id, claim.outcome) == ("full", "accepted")
    assert claim.measured is not None and claim.interval is not None
    assert claim.interval[0] <= claim.measured <= claim.interval[1]
    assert result.save(tmp_path / "there") == tmp_path / "there"
    names = {file.name for file in (tmp_path / "there").iterdir()}
    assert names == {"result.json", "result.csv", "runs.csv", "report.html"}
    assert (tmp_path / "there" / "result.json").read_text() == result.to_json()
    assert json.loads(result.to_json())["run"]["seeds"] == [1, 2]
    result.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().count("It fills the path.") == 1
    assert "It fills the path." in result._repr_html_()
    with pytest.raises(eyas.lab.LabError, match="runs.csv"):
        (tmp_path / "runs.csv" / "in the way").mkdir(parents=True)
        result.save(tmp_path)


def test_figures(result: eyas.lab.Result, tmp_path: Path) -> None:
    plot = result.plot()
    assert plot.title == "Rate <1>"
    plot.save(tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text()
    assert "<svg" in page and "Rate &lt;1&gt;" in page and "It fills" not in page
    assert "<svg" not in plot._repr_html_() and "&lt;svg" in plot._repr_html_()
    assert result.plot("Rate <1>").title == plot.title
    with pytest.raises(KeyError, match="Rate <1>"):
        result.plot("Delay")


def test_progress_and_finished_runs(tmp_path: Path) -> None:
    updates: list[eyas.lab.Progress] = []
    for _ in range(2):
        eyas.lab.run(MINE, runs=3, out=tmp_path, progress=updates.append)
    assert updates[0] == eyas.lab.Progress(0, 0, 6)
    assert updates[-2].done == 6 and updates[-1] == eyas.lab.Progress(6, 6, 6)


def test_an_exception_stops_the_plan_and_keeps_finished_runs(tmp_path: Path) -> None:
    def enough(now: eyas.lab.Progress) -> None:
        if now.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        eyas.lab.run(MINE, runs=500, out=tmp_path, progress=enough)
    updates: list[eyas.lab.Progress] = []
    eyas.lab.run(MINE, runs=3, out=tmp_path, progress=updates.append)
    assert updates[0].found >= 3


def test_ctrl_c_stops_the_plan(tmp_path: Path) -> None:
    child = python(
        """
        import signal, sys, eyas.lab
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            eyas.lab.run(
                "cmt-delay", runs=10_000, out=sys.argv[1], set={"time.duration": "1 s"},
                progress=lambda now: print(now.done, flush=True),
            )
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """,
        str(tmp_path),
    )
    watchdog = threading.Timer(2 * SOON, child.kill)
    watchdog.start()
    with child:
        try:
            assert child.stdout is not None
            while child.stdout.readline() != "2\n":
                assert child.poll() is None
            child.send_signal(signal.SIGINT)
            assert output_of(child).endswith("interrupted\n")
        finally:
            watchdog.cancel()
            child.kill()
    assert list((tmp_path / "runs").iterdir())
