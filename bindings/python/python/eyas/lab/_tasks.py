"""Tasks for executors: runs as text, there and back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from queue import SimpleQueue
from typing import Any, TypeAlias

from .. import _native
from ._errors import LabError, OtherCodeError, TaskError

#: How long a task should take, in seconds: what an engine spends on it is milliseconds.
_SECONDS = 2.0
#: A plan makes so many tasks, where it has runs enough, so that many workers have something to do.
_FEWEST = 64
#: How often a task is tried.
_TRIES = 4

#: What came of a task, and how many seconds its runs took.
_Outcome: TypeAlias = tuple[bytes, float]
#: The first of its runs, how many there are, and how often it was tried.
_Task: TypeAlias = tuple[int, int, int]


def do_task(task: bytes) -> _Outcome:
    """What a worker calls."""
    from ._run import code_version

    began = time.perf_counter()
    outcome = _native.lab_task(task, code_version())
    return outcome, time.perf_counter() - began


def work_off(
    work: _native.LabWorklist,
    executor: Any,
    batch: int | None,
    tell: Callable[[int, int, int], None],
) -> None:
    """Has an executor do everything that is open, and keeps what comes as it comes."""
    if batch is not None and batch < 1:
        raise ValueError("a task has one run at least")
    tell(*work.progress())
    if len(work) == 0:
        return
    engine = _Engine(work, _executor(executor))
    try:
        first = 0
        if batch is None:
            # How long a run takes nobody knows before the first.
            first = 1
            engine.submit((0, 1, 1))
            (seconds,) = engine.finish(tell)
            batch = _batch(seconds, len(work))
        for start in range(first, len(work), batch):
            engine.submit((start, min(batch, len(work) - start), 1))
        for _ in engine.finish(tell):
            pass
    except BaseException:
        engine.stop()
        raise


def _executor(executor: Any) -> Executor:
    """The executor itself, or that of a Client of Dask."""
    if isinstance(executor, Executor):
        return executor
    if callable(of_client := getattr(executor, "get_executor", None)):
        # Two tasks are never the same, and those of lost workers are done again without asking.
        made: Executor = of_client(pure=False)
        return made
    raise TypeError(f"{executor!r} is no concurrent.futures.Executor and no dask.distributed.Client")


def _batch(seconds: float, runs: int) -> int:
    """How many runs a task should have."""
    return max(1, min(round(_SECONDS / max(seconds, 1e-6)), math.ceil(runs / _FEWEST)))


class _Engine:
    """Tasks that an executor has, and those that it has ended."""

    def __init__(self, work: _native.LabWorklist, executor: Executor) -> None:
        self._work = work
        self._executor = executor
        self._pending: dict[Future[_Outcome], _Task] = {}
        self._ended: SimpleQueue[Future[_Outcome]] = SimpleQueue()

    def submit(self, task: _Task) -> None:
        start, count, _ = task
        try:
            future = self._executor.submit(do_task, self._work.task(start, count))
        except RuntimeError as error:
            raise TaskError(f"the executor takes no more tasks: {error}") from error
        self._pending[future] = task
        future.add_done_callback(self._ended.put)

    def finish(self, tell: Callable[[int, int, int], None]) -> Iterator[float]:
        """Waits for all tasks, and says of each how many seconds it took."""
        while self._pending:
            future = self._ended.get()
            task = self._pending.pop(future)
            try:
                outcome, seconds = future.result()
            except (Exception, CancelledError) as error:
                self._again(task, error)
                continue
            self._work.keep(outcome)
            tell(*self._work.progress())
            yield seconds

    def _again(self, task: _Task, error: BaseException) -> None:
        """Tries a task once more, unless that is in vain."""
        start, count, tries = task
        if isinstance(error, OtherCodeError):
            raise error
        if isinstance(error, BrokenExecutor):
            raise TaskError(f"the executor is broken: {error}") from error
        if tries == _TRIES:
            raise TaskError(f"a task failed {tries} times: {error}") from error
        self.submit((start, count, tries + 1))

    def stop(self) -> None:
        """Takes back what was not begun, and keeps what has ended meanwhile."""
        for future in self._pending:
            future.cancel()
        for future in self._pending:
            if future.done() and not future.cancelled() and future.exception() is None:
                try:
                    self._work.keep(future.result()[0])
                except LabError:
                    # There is an error on its way already.
                    return
