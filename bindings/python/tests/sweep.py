"""A sweep of cmt-delay with every runner: what each costs, and whether the results are the same.

`python sweep.py DIRECTORY` performs four runs of each point, which takes minutes; `--quick` performs only a few. Each
runner is a separate process and prints a line of JSON: its name, the CPU time of all its processes in seconds, the
elapsed time in seconds, and a digest of the output files. `cargo eyas-bench lab` makes a table of these lines.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import eyas.lab
from eyas.__main__ import command

PLAN = "cmt-delay"
#: A small part of the plan: 12 points that take little time.
SUBSET: dict[str, object] = {
    "sweep.values": ["64 KiB", "288 KiB"],
    "time.warm_up": "2 s",
    "time.duration": "2 s",
}
#: The number of runs per point, for the small part and for the whole plan.
FEW, MANY = 3, 4
FILES = ("result.json", "result.csv", "runs.csv", "report.html")
WORKERS = 2
SHARDS = 4
#: The timeout for processes to start or exit, in seconds, with a margin for busy machines.
SOON = 30.0


def files(directory: Path) -> dict[str, bytes]:
    """Returns the contents of the output files."""
    return {name: (directory / name).read_bytes() for name in FILES}


@contextlib.contextmanager
def dask(directory: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Runs a scheduler and two workers, each in a separate process."""
    address = directory / "scheduler.json"
    python = [sys.executable, "-m"]
    common = ["--scheduler-file", str(address), "--no-dashboard"]
    worker = ["--no-nanny", "--nthreads", "1", "--local-directory", str(directory)]
    programs = [
        [*python, "distributed.cli.dask_scheduler", *common, "--host", "127.0.0.1", "--port", "0"],
        *[[*python, "distributed.cli.dask_worker", *common, *worker]] * WORKERS,
    ]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for program in programs:
            with (directory / f"{len(started)}.log").open("wb") as log:
                started.append(subprocess.Popen(program, cwd=directory, stdout=log, stderr=log))
        yield str(address), started[1:]
    finally:
        # The scheduler last, because a worker without one waits for half a minute.
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(SOON)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Sweep:
    """The same runs with each runner."""

    def __init__(self, directory: Path, *, quick: bool) -> None:
        self._out = directory / "out"
        self._directory = directory
        self._runs = FEW if quick else MANY
        self._set = SUBSET if quick else {}

    def local(self, **options: Any) -> dict[str, bytes]:
        """Runs in this process, or on an executor."""
        return files(eyas.lab.run(PLAN, runs=self._runs, set=self._set, out=self._out, **options).save())

    def processes(self, **options: Any) -> dict[str, bytes]:
        """Runs on the executor of the standard library."""
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
            return self.local(executor=pool, **options)

    def dask(self) -> dict[str, bytes]:
        """Runs on a Dask cluster."""
        with self._cluster() as (client, _):
            return self.local(executor=client)

    def dask_while_a_worker_is_killed(self, **options: Any) -> dict[str, bytes]:
        """Runs on a Dask cluster, one of whose workers is killed during the run."""
        killed: list[int] = []
        with self._cluster() as (client, workers):

            def kill(now: eyas.lab.Progress) -> None:
                if now.done >= now.total // 3 and not killed:
                    assert now.done < now.total, "all runs are already finished"
                    workers[0].kill()
                    killed.append(workers[0].wait())

            output = self.local(executor=client, progress=kill, **options)
        assert killed, "no worker was killed"
        return output

    def shards(self) -> dict[str, bytes]:
        """Runs shards of the command, one after another, and merges them."""
        parts = [str(self._directory / str(number)) for number in range(1, SHARDS + 1)]
        settings = ["--runs", str(self._runs)]
        for name, value in self._set.items():
            settings += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
        for number, part in enumerate(parts, 1):
            lab("run", PLAN, *settings, "--shard", f"{number}/{SHARDS}", "--out", part)
        lab("merge", *parts, "--out", str(self._out))
        return files(self._out)

    @contextlib.contextmanager
    def _cluster(self) -> Iterator[tuple[Any, list[subprocess.Popen[bytes]]]]:
        distributed: Any = importlib.import_module("distributed")
        with dask(self._directory) as (address, workers):
            with distributed.Client(scheduler_file=address, timeout=SOON) as client:
                client.wait_for_workers(WORKERS, timeout=SOON)
                yield client, workers


def lab(*arguments: str) -> None:
    """Runs `eyas lab`, which must succeed."""
    subprocess.run([command(), "lab", *arguments], check=True, stdout=subprocess.DEVNULL)


RUNNERS: dict[str, Callable[[Sweep], dict[str, bytes]]] = {
    "local": Sweep.local,
    "processes": Sweep.processes,
    "dask": Sweep.dask,
    "shards": Sweep.shards,
    "dask-killed": Sweep.dask_while_a_worker_is_killed,
}


def measure(runner: str, directory: Path, quick: bool) -> dict[str, object]:
    """Measures a runner in a separate process, including its child processes."""
    arguments = [sys.executable, __file__, str(directory), "--runner", runner]
    start = time.monotonic()
    with subprocess.Popen(arguments + ["--quick"] * quick, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        digest = child.stdout.read().strip()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{runner} exited with {child.returncode}")
    took = time.monotonic() - start
    return {"runner": runner, "cpu": used.ru_utime + used.ru_stime, "took": took, "digest": digest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runner", choices=RUNNERS)
    options = parser.parse_args()
    if options.runner is None:
        for runner in RUNNERS:
            print(json.dumps(measure(runner, options.directory, options.quick)), flush=True)
        return
    directory = options.directory / options.runner
    directory.mkdir(parents=True)
    output = RUNNERS[options.runner](Sweep(directory, quick=options.quick))
    print(hashlib.sha256(b"".join(output[name] for name in FILES)).hexdigest())


if __name__ == "__main__":
    main()
