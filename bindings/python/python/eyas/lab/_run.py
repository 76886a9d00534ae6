"""Runs of an experiment, in this process or wherever an executor does them."""

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
from ._tasks import work_off


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far an experiment is."""

    #: Runs that are finished.
    done: int
    #: Of these, the ones that were found finished.
    found: int
    #: All runs.
    total: int


@dataclasses.dataclass(frozen=True)
class _Wanted:
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
    """Runs an experiment to its end.

    `quick`, `standard`, `runs`, `seed` and `set` are those of `eyas lab run`; `set` maps parameters to
    values, as in `{"path.B.delay": "50 ms"}`. Finished runs are kept in `out`, or in `eyas-lab/NAME`, as they
    come: after a `KeyboardInterrupt` the same call goes on where it stood.

    Without `executor` this process runs `jobs` at a time, one for each core unless said. An executor of
    `concurrent.futures`, or the `Client` of Dask, gets tasks of `batch` runs each, of which those that fail
    are tried again; unless said a task has as many runs as take about two seconds.
    """
    if quick and standard:
        raise ValueError("quick and standard exclude each other")
    loaded = load(plan)
    if loaded.live:
        raise LabError(
            f"{loaded.name} is a live experiment, which needs a process without threads of its own: "
            f"run it by the command, eyas lab run {loaded.name}"
        )
    extent = "quick" if quick else "standard" if standard else "full"
    settings = [f"{name}={_toml(value)}" for name, value in (set or {}).items()]
    native = _native.LabPlan(loaded.text, extent, runs, settings)
    directory = Path(native.directory() if out is None else out)
    cores = jobs or os.cpu_count() or 1
    wanted = _Wanted(os.fspath(directory), cores, seed, code_version())

    def tell(done: int, found: int, total: int) -> None:
        if progress is not None:
            progress(Progress(done, found, total))

    if executor is None:
        return Result(native.run(wanted, tell), directory)
    work = _native.LabWorklist(native, wanted)
    work_off(work, executor, batch, tell)
    return Result(work.outcome(), directory)


@functools.cache
def code_version() -> str:
    """Names the code that runs, so that results of other code are told apart."""
    return _native.lab_version(_native.__file__)


def _toml(value: object) -> str:
    """A value as the command reads it: texts as they are, others as TOML has them in common with JSON."""
    return value if isinstance(value, str) else json.dumps(value)
