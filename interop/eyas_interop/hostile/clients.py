"""Honest clients during an attack."""

import pathlib
import tempfile
import threading
import time
from collections.abc import Callable

from ..command import Command

# The pause between two requests, in seconds.
PAUSE = 0.2


class Repeater:
    """Repeats a request until stopped; an exception counts as a failure."""

    def __init__(self, request: Callable[[], None]) -> None:
        self.failures: list[str] = []
        # The durations of the successful requests, in seconds.
        self.times: list[float] = []
        self._request = request
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> "Repeater":
        """Stops after the current request."""
        self._over.set()
        self._thread.join()
        return self

    @property
    def detail(self) -> str:
        """Returns a summary, with the first failure if there was one."""
        text = f"{len(self.times)} of {len(self.times) + len(self.failures)} fetched"
        if self.times:
            text += f", the slowest in {max(self.times):.2f} s"
        return text + (f"; {self.failures[0]}" if self.failures else "")

    def _run(self) -> None:
        while True:
            start = time.monotonic()
            try:
                self._request()
            except (OSError, RuntimeError) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
            else:
                self.times.append(time.monotonic() - start)
            if self._over.wait(PAUSE):
                return


class HonestClient(Repeater):
    """Fetches a URL by `eyas get`, each time on a new connection."""

    def __init__(self, eyas: pathlib.Path, url: str, flags: list[str]) -> None:
        self.url = url
        self.flags = flags
        self._home = tempfile.TemporaryDirectory(prefix="eyas-honest-")
        self._command = Command(eyas, pathlib.Path(self._home.name), [])
        super().__init__(self._fetch)

    def end(self) -> "HonestClient":
        """Stops after the current fetch."""
        super().end()
        self._home.cleanup()
        return self

    def _fetch(self) -> None:
        arguments = ["get", self.url, "--memory", "none", "--output", "/dev/null", "--fail", *self.flags]
        completed = self._command.run(*arguments)
        if completed.status != 0:
            raise RuntimeError(f"{' '.join(self.flags)}: {completed}")
