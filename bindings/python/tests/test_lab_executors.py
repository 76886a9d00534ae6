"""Runs on executors: the results do not depend on the executor, on the order, or on failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sweep import Sweep
from test_lab import MINE

import eyas.lab
from eyas import _native


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return Sweep(tmp_path_factory.mktemp("local"), quick=True).local()


def test_shards(local: dict[str, bytes], tmp_path: Path) -> None:
    assert Sweep(tmp_path, quick=True).shards() == local


@pytest.mark.parametrize("batch", [None, 1])
def test_processes(local: dict[str, bytes], tmp_path: Path, batch: int | None) -> None:
    assert Sweep(tmp_path, quick=True).processes(batch=batch) == local


def test_threads(local: dict[str, bytes], tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert Sweep(tmp_path, quick=True).local(executor=pool, batch=7) == local


def test_dask(local: dict[str, bytes], tmp_path: Path) -> None:
    assert Sweep(tmp_path, quick=True).dask() == local


def test_dask_while_a_worker_is_killed(local: dict[str, bytes], tmp_path: Path) -> None:
    assert Sweep(tmp_path, quick=True).dask_while_a_worker_is_killed(batch=1) == local


class Unreliable(ThreadPoolExecutor):
    """Calls a function before each task; its result, if any, replaces that of the task."""

    def __init__(self, instead: Callable[[bytes, int], Any]) -> None:
        super().__init__(2)
        self._instead = instead
        self.tasks = 0

    def submit(self, fn: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        self.tasks += 1
        number = self.tasks

        def instead() -> Any:
            answer = self._instead(arguments[0], number)
            return fn(*arguments, **keywords) if answer is None else answer

        return super().submit(instead)


def test_failed_tasks_are_retried(tmp_path: Path) -> None:
    whole = eyas.lab.run(MINE, out=tmp_path / "whole").to_json()

    def fail(_: bytes, number: int) -> None:
        if number % 2 == 1:
            raise OSError("no disk")

    with Unreliable(fail) as pool:
        assert eyas.lab.run(MINE, executor=pool, batch=3, out=tmp_path / "pool").to_json() == whole
        assert pool.tasks > 2


def test_a_permanent_failure_is_reported_and_keeps_finished_runs(tmp_path: Path) -> None:
    def fail(_: bytes, number: int) -> None:
        if number > 2:
            raise OSError("no disk")

    with Unreliable(fail) as pool:
        with pytest.raises(eyas.lab.TaskError, match="failed 4 times: no disk") as raised:
            eyas.lab.run(MINE, executor=pool, batch=1, out=tmp_path)
    assert isinstance(raised.value.__cause__, OSError)
    updates: list[eyas.lab.Progress] = []
    eyas.lab.run(MINE, out=tmp_path, progress=updates.append)
    # The second may still have been running when the third failed permanently.
    assert updates[0].found in (1, 2)


def test_an_executor_that_is_shut_down(tmp_path: Path) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(eyas.lab.TaskError, match="accepts no more tasks"):
        eyas.lab.run(MINE, executor=pool, out=tmp_path)
    with pytest.raises(TypeError, match="Executor"):
        eyas.lab.run(MINE, executor=3, out=tmp_path)


def test_workers_with_another_build_are_rejected(tmp_path: Path) -> None:
    # The worker detects the difference.
    def there(task: bytes, _: int) -> Any:
        return _native.lab_task(task, "another"), 0.0

    with Unreliable(there) as pool:
        with pytest.raises(eyas.lab.OtherCodeError, match="this is eyas another"):
            eyas.lab.run(MINE, executor=pool, out=tmp_path)
        assert pool.tasks == 1

    # The program detects the difference.
    def lie(task: bytes, _: int) -> Any:
        read = json.loads(task)
        read["version"] = "another"
        return _native.lab_task(json.dumps(read).encode(), "another"), 0.0

    with Unreliable(lie) as pool:
        with pytest.raises(eyas.lab.OtherCodeError, match="this is eyas another"):
            eyas.lab.run(MINE, executor=pool, out=tmp_path)


def test_invalid_outcomes_are_rejected(tmp_path: Path) -> None:
    with Unreliable(lambda _, __: (b"{", 0.0)) as pool:
        with pytest.raises(eyas.lab.LabError, match="not written by eyas"):
            eyas.lab.run(MINE, executor=pool, out=tmp_path)


def test_an_interruption_keeps_finished_runs(tmp_path: Path) -> None:
    def enough(now: eyas.lab.Progress) -> None:
        if now.done == 3:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(KeyboardInterrupt):
            eyas.lab.run(MINE, runs=50, executor=pool, batch=1, out=tmp_path, progress=enough)
    updates: list[eyas.lab.Progress] = []
    eyas.lab.run(MINE, out=tmp_path, runs=50, progress=updates.append)
    assert 3 <= updates[0].found < 100
