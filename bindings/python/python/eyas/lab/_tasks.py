"""Tasks for executors: runs and their outcomes are passed as text."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from queue import SimpleQueue
from typing import Any, TypeAlias

from .. import _native
from ._errors import LabError, OtherCodeError, TaskError

#: How long a task should take, in seconds. The overhead of an executor is milliseconds per task.
_SECONDS = 2.0
#: The minimum number of tasks of a plan with enough runs, so that many workers can take part.
_MIN_TASKS = 64
#: The maximum number of attempts per task.
_MAX_ATTEMPTS = 4

#: The outcome of a task, and the seconds that its runs took.
_Outcome: TypeAlias = tuple[bytes, float]
#: The first run, the number of runs, and the number of the attempt.
_Task: TypeAlias = tuple[int, int, int]


def do_task(task: bytes) -> _Outcome:
    """Runs a task; called by workers."""
    from ._run import code_version

    start = time.perf_counter()
    outcome = _native.lab_task(task, code_version())
    return outcome, time.perf_counter() - start


def run_tasks(
    worklist: _native.LabWorklist,
    executor: Any,
    batch: int | None,
    report: Callable[[int, int, int], None],
) -> None:
    """Performs all open runs on an executor, and stores the outcomes as they arrive."""
    if batch is not None and batch < 1:
        raise ValueError("batch must be at least 1")
    report(*worklist.progress())
    if len(worklist) == 0:
        return
    runner = _TaskRunner(worklist, _executor(executor))
    try:
        first = 0
        if batch is None:
            # The first run shows how long a run takes.
            first = 1
            runner.submit((0, 1, 1))
            (seconds,) = runner.finish(report)
            batch = _batch(seconds, len(worklist))
        for start in range(first, len(worklist), batch):
            runner.submit((start, min(batch, len(worklist) - start), 1))
        for _ in runner.finish(report):
            pass
    except BaseException:
        runner.stop()
        raise


def _executor(executor: Any) -> Executor:
    """Returns the executor itself, or that of a Dask Client."""
    if isinstance(executor, Executor):
        return executor
    if callable(get_executor := getattr(executor, "get_executor", None)):
        # No two tasks are the same. Dask itself repeats those of lost workers.
        client_executor: Executor = get_executor(pure=False)
        return client_executor
    raise TypeError(
        f"{executor!r} is neither a concurrent.futures.Executor nor a dask.distributed.Client"
    )


def _batch(seconds: float, runs: int) -> int:
    """Returns the number of runs per task."""
    return max(1, min(round(_SECONDS / max(seconds, 1e-6)), math.ceil(runs / _MIN_TASKS)))


class _TaskRunner:
    """The pending tasks of an executor, and those that have ended."""

    def __init__(self, worklist: _native.LabWorklist, executor: Executor) -> None:
        self._worklist = worklist
        self._executor = executor
        self._pending: dict[Future[_Outcome], _Task] = {}
        self._ended: SimpleQueue[Future[_Outcome]] = SimpleQueue()

    def submit(self, task: _Task) -> None:
        start, count, _ = task
        try:
            future = self._executor.submit(do_task, self._worklist.task(start, count))
        except RuntimeError as error:
            raise TaskError(f"the executor accepts no more tasks: {error}") from error
        self._pending[future] = task
        future.add_done_callback(self._ended.put)

    def finish(self, report: Callable[[int, int, int], None]) -> Iterator[float]:
        """Waits for all tasks; yields the seconds that each took."""
        while self._pending:
            future = self._ended.get()
            task = self._pending.pop(future)
            try:
                outcome, seconds = future.result()
            except (Exception, CancelledError) as error:
                self._retry(task, error)
                continue
            self._worklist.keep(outcome)
            report(*self._worklist.progress())
            yield seconds

    def _retry(self, task: _Task, error: BaseException) -> None:
        """Retries a task, unless that is pointless."""
        start, count, attempt = task
        if isinstance(error, OtherCodeError):
            raise error
        if isinstance(error, BrokenExecutor):
            raise TaskError(f"the executor is broken: {error}") from error
        if attempt == _MAX_ATTEMPTS:
            raise TaskError(f"a task failed {attempt} times: {error}") from error
        self.submit((start, count, attempt + 1))

    def stop(self) -> None:
        """Cancels the tasks that have not started, and stores the outcomes of those that have ended."""
        for future in self._pending:
            future.cancel()
        for future in self._pending:
            if future.done() and not future.cancelled() and future.exception() is None:
                try:
                    self._worklist.keep(future.result()[0])
                except LabError:
                    # Another exception is already being raised.
                    return
