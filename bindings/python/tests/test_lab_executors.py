"""Runs on executors: the same results, whoever does them, in whatever order, and whatever breaks."""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import SOON
from test_lab import MINE, SUBSET

import eyas.lab
from eyas import _native
from eyas.__main__ import command

#: Runs of each of the 12 points.
RUNS = 3
FILES = ("result.json", "result.csv", "runs.csv", "report.html")


def files(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in FILES}


def sweep(out: Path, **how: Any) -> dict[str, bytes]:
    """The files of the small sweep."""
    return files(eyas.lab.run("cmt-delay", runs=RUNS, set=SUBSET, out=out, **how).save())


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return sweep(tmp_path_factory.mktemp("local"))


def lab(*words: str) -> None:
    subprocess.run([command(), "lab", *words], check=True, capture_output=True, timeout=4 * SOON)


def settings() -> list[str]:
    words = ["--runs", str(RUNS)]
    for name, value in SUBSET.items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


def test_four_shards_of_the_command(local: dict[str, bytes], tmp_path: Path) -> None:
    parts = [str(tmp_path / str(number)) for number in range(1, 5)]
    for number, part in enumerate(parts, 1):
        lab("run", "cmt-delay", *settings(), "--shard", f"{number}/4", "--out", part)
    lab("merge", *parts, "--out", str(tmp_path / "whole"))
    assert files(tmp_path / "whole") == local


@pytest.mark.parametrize("batch", [None, 1, 7])
def test_processes(local: dict[str, bytes], tmp_path: Path, batch: int | None) -> None:
    if batch != 7:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert sweep(tmp_path, executor=pool, batch=batch) == local
    else:
        with ThreadPoolExecutor(2) as pool:
            assert sweep(tmp_path, executor=pool, batch=batch) == local


@contextlib.contextmanager
def dask(directory: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process of its own."""
    address = directory / "scheduler.json"
    begin = [sys.executable, "-m"]
    common = ["--scheduler-file", str(address), "--no-dashboard"]
    worker = ["--no-nanny", "--nthreads", "1", "--local-directory", str(directory)]
    programs = [
        [*begin, "distributed.cli.dask_scheduler", *common, "--host", "127.0.0.1", "--port", "0"],
        [*begin, "distributed.cli.dask_worker", *common, *worker],
        [*begin, "distributed.cli.dask_worker", *common, *worker],
    ]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for program in programs:
            with (directory / f"{len(started)}.log").open("wb") as log:
                started.append(subprocess.Popen(program, cwd=directory, stdout=log, stderr=log))
        yield str(address), started[1:]
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(SOON)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def test_dask_while_a_worker_is_killed(local: dict[str, bytes], tmp_path: Path) -> None:
    distributed: Any = importlib.import_module("distributed")
    killed: list[int] = []
    with dask(tmp_path) as (address, workers):
        with distributed.Client(scheduler_file=address, timeout=SOON) as client:
            client.wait_for_workers(2, timeout=SOON)

            def kill(now: eyas.lab.Progress) -> None:
                if now.done >= 4 and not killed:
                    assert now.done < now.total
                    workers[0].kill()
                    killed.append(workers[0].wait())

            assert sweep(tmp_path / "out", executor=client, batch=1, progress=kill) == local
    assert killed


class Unreliable(ThreadPoolExecutor):
    """Does something else with every task."""

    def __init__(self, instead: Callable[[bytes, int], Any]) -> None:
        super().__init__(2)
        self._instead = instead
        self.tasks = 0

    def submit(self, fn: Callable[..., Any], /, *words: Any, **named: Any) -> Future[Any]:
        self.tasks += 1
        number = self.tasks

        def instead() -> Any:
            answer = self._instead(words[0], number)
            return fn(*words, **named) if answer is None else answer

        return super().submit(instead)


def test_tasks_that_fail_are_tried_again(tmp_path: Path) -> None:
    whole = eyas.lab.run(MINE, out=tmp_path / "whole").to_json()

    def fail(_: bytes, number: int) -> None:
        if number % 2 == 1:
            raise OSError("no disk")

    with Unreliable(fail) as pool:
        assert eyas.lab.run(MINE, executor=pool, batch=3, out=tmp_path / "pool").to_json() == whole
        assert pool.tasks > 2


def test_what_fails_for_good_says_why_and_loses_nothing(tmp_path: Path) -> None:
    def fail(_: bytes, number: int) -> None:
        if number > 2:
            raise OSError("no disk")

    with Unreliable(fail) as pool:
        with pytest.raises(eyas.lab.TaskError, match="failed 4 times: no disk") as raised:
            eyas.lab.run(MINE, executor=pool, batch=1, out=tmp_path)
    assert isinstance(raised.value.__cause__, OSError)
    told: list[eyas.lab.Progress] = []
    eyas.lab.run(MINE, out=tmp_path, progress=told.append)
    # The second may have been under way when the third had failed for good.
    assert told[0].found in (1, 2)


def test_an_executor_that_is_over(tmp_path: Path) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(eyas.lab.TaskError, match="no more tasks"):
        eyas.lab.run(MINE, executor=pool, out=tmp_path)
    with pytest.raises(TypeError, match="Executor"):
        eyas.lab.run(MINE, executor=3, out=tmp_path)


def test_workers_with_other_code_are_refused(tmp_path: Path) -> None:
    # As a worker finds out,
    def there(task: bytes, _: int) -> Any:
        return _native.lab_task(task, "another"), 0.0

    with Unreliable(there) as pool:
        with pytest.raises(eyas.lab.OtherCodeError, match="this is eyas another"):
            eyas.lab.run(MINE, executor=pool, out=tmp_path)
        assert pool.tasks == 1

    # and as we do.
    def lie(task: bytes, _: int) -> Any:
        read = json.loads(task)
        read["version"] = "another"
        return _native.lab_task(json.dumps(read).encode(), "another"), 0.0

    with Unreliable(lie) as pool:
        with pytest.raises(eyas.lab.OtherCodeError, match="this is eyas another"):
            eyas.lab.run(MINE, executor=pool, out=tmp_path)


def test_what_is_no_outcome_is_refused(tmp_path: Path) -> None:
    with Unreliable(lambda _, __: (b"{", 0.0)) as pool:
        with pytest.raises(eyas.lab.LabError, match="nothing that eyas has written"):
            eyas.lab.run(MINE, executor=pool, out=tmp_path)


def test_an_interruption_keeps_what_was_finished(tmp_path: Path) -> None:
    def enough(now: eyas.lab.Progress) -> None:
        if now.done == 3:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(KeyboardInterrupt):
            eyas.lab.run(MINE, runs=50, executor=pool, batch=1, out=tmp_path, progress=enough)
    told: list[eyas.lab.Progress] = []
    eyas.lab.run(MINE, out=tmp_path, runs=50, progress=told.append)
    assert 3 <= told[0].found < 100
