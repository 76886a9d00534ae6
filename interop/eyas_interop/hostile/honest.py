"""Honest clients beside an attack: `eyas get`, again and again."""

import pathlib
import tempfile
import threading
import time

from ..command import Command

# Between two requests, in seconds.
PAUSE = 0.2


class Honest:
    """Fetches a URL until it is told to stop, each time on a new connection."""

    def __init__(self, eyas: pathlib.Path, url: str, flags: list[str]) -> None:
        self.url = url
        self.flags = flags
        self.failures: list[str] = []
        # How long each fetch that came to its end took, in seconds.
        self.times: list[float] = []
        self._home = tempfile.TemporaryDirectory(prefix="eyas-honest-")
        self._command = Command(eyas, pathlib.Path(self._home.name), [])
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> "Honest":
        """Lets the last fetch finish."""
        self._over.set()
        self._thread.join()
        self._home.cleanup()
        return self

    @property
    def detail(self) -> str:
        """In words, with the first failure if there was one."""
        text = f"{len(self.times)} of {len(self.times) + len(self.failures)} fetched"
        if self.times:
            text += f", the slowest in {max(self.times):.2f} s"
        return text + (f"; {self.failures[0]}" if self.failures else "")

    def _run(self) -> None:
        while True:
            self._fetch()
            if self._over.wait(PAUSE):
                return

    def _fetch(self) -> None:
        begun = time.monotonic()
        words = ["get", self.url, "--memory", "none", "--output", "/dev/null", "--fail", *self.flags]
        try:
            ran = self._command.run(*words)
        except RuntimeError as error:
            self.failures.append(str(error))
            return
        if ran.status == 0:
            self.times.append(time.monotonic() - begun)
        else:
            self.failures.append(f"{' '.join(self.flags)}: {ran}")
