"""One `eyas pipe` that sends to another one, watched at the receiver."""

import os
import pathlib
import selectors
import subprocess
import threading
import time

from ..process import READY_WITHIN
from .lines import Lines

PORT = 5000
# Bytes handed over at a time.
BLOCK = 64 * 1024
# A transfer may take this many times as long as it should.
PATIENCE = 4
# The shares of the bytes between which the rate is taken: slow start is over, and no path has run
# dry yet.
FROM, TO = 0.2, 0.85
# How far around these shares a moment is looked for at which nothing is held back.
AROUND = 0.1


class Sender(threading.Thread):
    """Feeds so many bytes that are not all alike."""

    def __init__(self, sink, amount: int) -> None:
        super().__init__(daemon=True)
        self.sink = sink
        self.left = amount
        self.block = os.urandom(BLOCK)

    def run(self) -> None:
        try:
            while self.left > 0:
                piece = self.block[: self.left]
                self.sink.write(piece)
                self.left -= len(piece)
            self.sink.close()
        except OSError:
            return


class Transfer:
    """What has come in, and when."""

    def __init__(self, lines: Lines, eyas: pathlib.Path, carrier: str, directory: pathlib.Path) -> None:
        self.lines = lines
        self.eyas = eyas
        self.carrier = carrier
        self.directory = directory
        self.marks: list[tuple[float, int]] = []
        self.received = 0
        self.amount = 0

    def run(self, seconds: float, midway=None, flags: tuple[str, ...] = ("--multipath",)) -> None:
        """Moves what takes so many seconds at the ceiling. `midway` is called after a third."""
        ceiling = sum(line.ceiling(self.carrier) for line in self.lines.all)
        self.amount = int(ceiling * 1e6 / 8 * seconds)
        pipe = [str(self.eyas), "pipe", "--plain", "-v", *flags]
        listen = self._start(self.lines.there, [*pipe, "--listen", f"0.0.0.0:{PORT}"], "listen")
        listen.stdin.close()
        try:
            self._wait_ready()
            scheme = "sctp" if self.carrier == "raw" else "sctp-udp"
            to = f"{scheme}://{self.lines.all[0].address(2)}:{PORT}"
            send = self._start(self.lines.here, [*pipe, to], "send")
            try:
                Sender(send.stdin, self.amount).start()
                self._watch(listen, seconds, midway)
                send.wait(READY_WITHIN)
            finally:
                send.kill()
        finally:
            listen.kill()

    def _start(self, namespace: str, command: list[str], name: str) -> subprocess.Popen:
        log = (self.directory / f"multipath-{name}.log").open("wb")
        environment = {**os.environ, "EYAS_MEMORY": "none"}
        return subprocess.Popen(
            self.lines.inside(namespace, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log, env=environment,
        )

    def said(self, name: str) -> str:
        """What one end has said on standard error."""
        return (self.directory / f"multipath-{name}.log").read_text(errors="replace")

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN
        while "listening" not in self.said("listen"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"eyas does not listen: {self.said('listen')[-300:]}")
            time.sleep(0.01)

    def _watch(self, listen: subprocess.Popen, seconds: float, midway) -> None:
        deadline = time.monotonic() + PATIENCE * seconds + 10
        selector = selectors.DefaultSelector()
        selector.register(listen.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(deadline - time.monotonic()):
                raise RuntimeError(f"{self.received} of {self.amount} bytes, and no more")
            piece = os.read(listen.stdout.fileno(), BLOCK)
            if not piece:
                break
            self.received += len(piece)
            self.marks.append((time.monotonic(), self.received))
            if midway is not None and self.received > self.amount / 3:
                midway()
                midway = None

    def rate(self, begin: float = FROM, end: float = TO) -> float:
        """Mbit/s of user data between two shares of all bytes. What comes early on one path waits
        for its turn: at both ends that moment counts at which the least is waiting."""
        pace = sum(line.ceiling(self.carrier) for line in self.lines.all) * 1e6 / 8

        def settled(share: float) -> tuple[float, int]:
            near = [mark for mark in self.marks if abs(mark[1] / self.amount - share) <= AROUND]
            return max(near, key=lambda mark: mark[1] - pace * mark[0])

        (start, before), (stop, after) = settled(begin), settled(end)
        return (after - before) * 8 / (stop - start) / 1e6

    def longest_pause(self, after: float, within: float) -> float:
        """The longest time without anything new in so many seconds after a moment, in seconds."""
        times = [moment for moment, _ in self.marks if after <= moment <= after + within]
        return max((later - one for one, later in zip([after, *times], times)), default=within)
