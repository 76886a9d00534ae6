"""A transfer from one `eyas pipe` to another, measured at the receiver."""

import os
import pathlib
import selectors
import subprocess
import threading
import time

from ..process import READY_TIMEOUT
from .lines import Lines

PORT = 5000
# The block size, in bytes.
BLOCK = 64 * 1024
# A transfer may take this many times the expected duration.
TIMEOUT_FACTOR = 4
# The shares of the bytes between which the rate is measured: after slow start, and before a path
# runs out of data.
MEASURED_FROM, MEASURED_TO = 0.2, 0.85
# The range around these shares in which a moment without reordered data is searched.
SEARCH_RANGE = 0.1


class Sender(threading.Thread):
    """Writes this many bytes of random data."""

    def __init__(self, sink, amount: int) -> None:
        super().__init__(daemon=True)
        self.sink = sink
        self.left = amount
        self.block = os.urandom(BLOCK)

    def run(self) -> None:
        try:
            while self.left > 0:
                block = self.block[: self.left]
                self.sink.write(block)
                self.left -= len(block)
            self.sink.close()
        except OSError:
            return


class Transfer:
    """A transfer, with the times at which data arrived."""

    def __init__(self, lines: Lines, eyas: pathlib.Path, carrier: str, directory: pathlib.Path) -> None:
        self.lines = lines
        self.eyas = eyas
        self.carrier = carrier
        self.directory = directory
        self.marks: list[tuple[float, int]] = []
        self.received = 0
        self.amount = 0

    def run(self, seconds: float, midway=None, flags: tuple[str, ...] = ("--multipath",)) -> None:
        """Transfers what takes `seconds` at the ceiling. `midway` is called after a third."""
        ceiling = sum(line.ceiling(self.carrier) for line in self.lines.all)
        self.amount = int(ceiling * 1e6 / 8 * seconds)
        pipe = [str(self.eyas), "pipe", "--plain", "-v", *flags]
        listen = self._start(self.lines.server, [*pipe, "--listen", f"0.0.0.0:{PORT}"], "listen")
        listen.stdin.close()
        try:
            self._wait_ready()
            scheme = "sctp" if self.carrier == "raw" else "sctp-udp"
            to = f"{scheme}://{self.lines.all[0].address(2)}:{PORT}"
            send = self._start(self.lines.client, [*pipe, to], "send")
            try:
                Sender(send.stdin, self.amount).start()
                self._watch(listen, seconds, midway)
                send.wait(READY_TIMEOUT)
            finally:
                send.kill()
        finally:
            listen.kill()

    def _start(self, namespace: str, command: list[str], name: str) -> subprocess.Popen:
        log_file = (self.directory / f"multipath-{name}.log").open("wb")
        environment = {**os.environ, "EYAS_MEMORY": "none"}
        return subprocess.Popen(
            self.lines.inside(namespace, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log_file, env=environment,
        )

    def log(self, name: str) -> str:
        """Returns the standard error of one end so far."""
        return (self.directory / f"multipath-{name}.log").read_text(errors="replace")

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT
        while "listening" not in self.log("listen"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"eyas does not listen: {self.log('listen')[-300:]}")
            time.sleep(0.01)

    def _watch(self, listen: subprocess.Popen, seconds: float, midway) -> None:
        deadline = time.monotonic() + TIMEOUT_FACTOR * seconds + 10
        selector = selectors.DefaultSelector()
        selector.register(listen.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(deadline - time.monotonic()):
                raise RuntimeError(f"the transfer stalled after {self.received} of {self.amount} bytes")
            piece = os.read(listen.stdout.fileno(), BLOCK)
            if not piece:
                break
            self.received += len(piece)
            self.marks.append((time.monotonic(), self.received))
            if midway is not None and self.received > self.amount / 3:
                midway()
                midway = None

    def rate(self, begin: float = MEASURED_FROM, end: float = MEASURED_TO) -> float:
        """Returns the Mbit/s of user data between two shares of all bytes. Data that arrives early on one
        path is held back, so the moments with the least held back around both shares are used."""
        pace = sum(line.ceiling(self.carrier) for line in self.lines.all) * 1e6 / 8

        def moment_at(share: float) -> tuple[float, int]:
            near = [mark for mark in self.marks if abs(mark[1] / self.amount - share) <= SEARCH_RANGE]
            return max(near, key=lambda mark: mark[1] - pace * mark[0])

        (start, before), (stop, after) = moment_at(begin), moment_at(end)
        return (after - before) * 8 / (stop - start) / 1e6

    def longest_pause(self, after: float, within: float) -> float:
        """Returns the longest time without new data in `within` seconds after a moment."""
        times = [moment for moment, _ in self.marks if after <= moment <= after + within]
        return max((later - earlier for earlier, later in zip([after, *times], times)), default=within)
