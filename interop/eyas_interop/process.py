"""Programs that run beside the cases: started, waited for, and ended by their own id."""

import pathlib
import signal
import subprocess
import time
from collections.abc import Callable

# How long a peer may take until it answers, in seconds.
READY_WITHIN = 60
# How long a peer may take to end after it was asked to, in seconds.
END_WITHIN = 5


class Peer:
    """One program; its output goes to a file."""

    def __init__(self, name: str, command: list[str], log: pathlib.Path, **options) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as sink:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, **options
            )

    def wait_until(self, ready: Callable[[], bool]) -> "Peer":
        """Waits until it answers; an error holds the end of what it said."""
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {self.said()}")
            if ready():
                return self
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"{self.name} did not answer within {READY_WITHIN} s: {self.said()}")

    def all(self) -> str:
        """All of its output."""
        return self.log.read_text(errors="replace")

    def said(self) -> str:
        """The end of its output."""
        return self.all()[-600:]

    def stop(self) -> int:
        """Asks it to end, then makes it; gives its status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(END_WITHIN)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode
