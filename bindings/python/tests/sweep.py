"""A sweep of cmt-delay in every way to run one: what each costs, and what comes out.

`python sweep.py DIRECTORY` does all points with four runs of each, which takes minutes; with `--quick` there is
little to do. Each way is a process of its own, and a line of JSON on standard output: its name, the seconds of
CPU time that it and all processes of it have used, the seconds that it took, and a digest of the files.
`cargo xtask bench lab` makes a table of them.
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
#: A small part of the plan: 12 points that take no time.
SUBSET: dict[str, object] = {
    "sweep.values": ["64 KiB", "288 KiB"],
    "time.warm_up": "2 s",
    "time.duration": "2 s",
}
#: Runs of each point, of the small part and of all.
FEW, MANY = 3, 4
FILES = ("result.json", "result.csv", "runs.csv", "report.html")
WORKERS = 2
SHARDS = 4
#: How long a process may take to start or to end on a busy machine, in seconds.
SOON = 30.0


def files(directory: Path) -> dict[str, bytes]:
    """What came out."""
    return {name: (directory / name).read_bytes() for name in FILES}


@contextlib.contextmanager
def dask(directory: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process of its own."""
    address = directory / "scheduler.json"
    begin = [sys.executable, "-m"]
    common = ["--scheduler-file", str(address), "--no-dashboard"]
    worker = ["--no-nanny", "--nthreads", "1", "--local-directory", str(directory)]
    programs = [
        [*begin, "distributed.cli.dask_scheduler", *common, "--host", "127.0.0.1", "--port", "0"],
        *[[*begin, "distributed.cli.dask_worker", *common, *worker]] * WORKERS,
    ]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for program in programs:
            with (directory / f"{len(started)}.log").open("wb") as log:
                started.append(subprocess.Popen(program, cwd=directory, stdout=log, stderr=log))
        yield str(address), started[1:]
    finally:
        # The scheduler last: a worker without one waits for half a minute.
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(SOON)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Sweep:
    """The same runs, in each way."""

    def __init__(self, directory: Path, *, quick: bool) -> None:
        self._out = directory / "out"
        self._directory = directory
        self._runs = FEW if quick else MANY
        self._set = SUBSET if quick else {}

    def local(self, **how: Any) -> dict[str, bytes]:
        """In this process, or on an executor."""
        return files(eyas.lab.run(PLAN, runs=self._runs, set=self._set, out=self._out, **how).save())

    def processes(self, **how: Any) -> dict[str, bytes]:
        """On the executor of the standard library."""
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
            return self.local(executor=pool, **how)

    def dask(self) -> dict[str, bytes]:
        """On a cluster of Dask."""
        with self._cluster() as (client, _):
            return self.local(executor=client)

    def dask_while_a_worker_is_killed(self, **how: Any) -> dict[str, bytes]:
        """The same, with half of the workers lost in the middle."""
        killed: list[int] = []
        with self._cluster() as (client, workers):

            def kill(now: eyas.lab.Progress) -> None:
                if now.done >= now.total // 3 and not killed:
                    assert now.done < now.total, "there is nothing left to do"
                    workers[0].kill()
                    killed.append(workers[0].wait())

            made = self.local(executor=client, progress=kill, **how)
        assert killed, "no worker was killed"
        return made

    def shards(self) -> dict[str, bytes]:
        """By the command, one share after another."""
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


def lab(*words: str) -> None:
    """`eyas lab`, which must succeed."""
    subprocess.run([command(), "lab", *words], check=True, stdout=subprocess.DEVNULL)


WAYS: dict[str, Callable[[Sweep], dict[str, bytes]]] = {
    "local": Sweep.local,
    "processes": Sweep.processes,
    "dask": Sweep.dask,
    "shards": Sweep.shards,
    "dask-killed": Sweep.dask_while_a_worker_is_killed,
}


def measured(way: str, directory: Path, quick: bool) -> dict[str, object]:
    """One way, in a process of its own, with all that it has started."""
    words = [sys.executable, __file__, str(directory), "--way", way]
    began = time.monotonic()
    with subprocess.Popen(words + ["--quick"] * quick, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        digest = child.stdout.read().strip()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{way} ended with {child.returncode}")
    took = time.monotonic() - began
    return {"way": way, "cpu": used.ru_utime + used.ru_stime, "took": took, "digest": digest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--way", choices=WAYS)
    options = parser.parse_args()
    if options.way is None:
        for way in WAYS:
            print(json.dumps(measured(way, options.directory, options.quick)), flush=True)
        return
    place = options.directory / options.way
    place.mkdir(parents=True)
    made = WAYS[options.way](Sweep(place, quick=options.quick))
    print(hashlib.sha256(b"".join(made[name] for name in FILES)).hexdigest())


if __name__ == "__main__":
    main()
