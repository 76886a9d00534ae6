"""How long the parts of a run took: where to look when it has become slow."""

import contextlib
import time
from collections.abc import Iterator


class Times:
    """A stopwatch for each part of the run."""

    def __init__(self) -> None:
        self._took: list[tuple[str, float]] = []

    @contextlib.contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Counts the time of a block to a part."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._took.append((part, time.monotonic() - start))

    def show(self, at_least: float) -> None:
        """Prints the parts that took some seconds, the slowest first."""
        slow = [(took, part) for part, took in self._took if took >= at_least]
        for took, part in sorted(slow, reverse=True):
            print(f"{took:5.0f} s  {part}")
