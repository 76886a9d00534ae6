"""Running experiments, in this process or on an executor."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from .. import _native
from ._errors import LabError
from ._plan import PlanSource, load
from ._result import Result
from ._tasks import run_tasks


@dataclasses.dataclass(frozen=True)
class Progress:
    """The progress of an experiment."""

    #: The number of finished runs.
    done: int
    #: How many of them were already finished before.
    found: int
    #: The number of all runs.
    total: int


@dataclasses.dataclass(frozen=True)
class _RunOptions:
    out: str
    jobs: int
    seed: int
    version: str


def run(
    plan: PlanSource,
    *,
    executor: Executor | Any = None,
    progress: Callable[[Progress], object] | None = None,
    quick: bool = False,
    standard: bool = False,
    runs: int | None = None,
    seed: int = 1,
    set: Mapping[str, object] | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    batch: int | None = None,
) -> Result:
    """Runs an experiment to completion.

    `quick`, `standard`, `runs`, `seed` and `set` are the options of `eyas lab run`; `set` maps parameters to values, as
    in `{"path.B.delay": "50 ms"}`. Finished runs are stored in `out`, or in `eyas-lab/NAME`, as they complete: after a
    `KeyboardInterrupt` the same call resumes from there.

    Without an `executor`, this process performs `jobs` runs at a time, by default one per core. An executor of
    `concurrent.futures`, or a `Client` of Dask, gets tasks of `batch` runs each; tasks that fail are retried. By
    default, a task has as many runs as take about two seconds.
    """
    if quick and standard:
        raise ValueError("quick and standard are mutually exclusive")
    loaded = load(plan)
    if loaded.live:
        raise LabError(
            f"{loaded.name} is a live experiment, which needs a process without other threads: "
            f"use the command, eyas lab run {loaded.name}"
        )
    extent = "quick" if quick else "standard" if standard else "full"
    settings = [f"{name}={_toml(value)}" for name, value in (set or {}).items()]
    native = _native.LabPlan(loaded.text, extent, runs, settings)
    directory = Path(native.directory() if out is None else out)
    cores = jobs or os.cpu_count() or 1
    options = _RunOptions(os.fspath(directory), cores, seed, code_version())

    def report(done: int, found: int, total: int) -> None:
        if progress is not None:
            progress(Progress(done, found, total))

    if executor is None:
        return Result(native.run(options, report), directory)
    worklist = _native.LabWorklist(native, options)
    run_tasks(worklist, executor, batch, report)
    return Result(worklist.outcome(), directory)


@functools.cache
def code_version() -> str:
    """Identifies this build, so that results of other builds are not mixed with its own."""
    return _native.lab_version(_native.__file__)


def _toml(value: object) -> str:
    """Formats a value for the command: strings unchanged, others in the common subset of TOML and JSON."""
    return value if isinstance(value, str) else json.dumps(value)
