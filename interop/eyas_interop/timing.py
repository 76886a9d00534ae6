"""The duration of each part of a run, to find out what has become slow."""

import contextlib
import time
from collections.abc import Iterator


class Timings:
    """A stopwatch for each part of the run."""

    def __init__(self) -> None:
        self._durations: list[tuple[str, float]] = []

    @contextlib.contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Adds the duration of a block to a part."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._durations.append((part, time.monotonic() - start))

    def show(self, at_least: float) -> None:
        """Prints the parts that took some seconds, the slowest first."""
        slow = [(duration, part) for part, duration in self._durations if duration >= at_least]
        for duration, part in sorted(slow, reverse=True):
            print(f"{duration:5.0f} s  {part}")
