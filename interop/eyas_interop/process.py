"""Programs that run during the cases: starting them, waiting for them, ending them by process id."""

import pathlib
import signal
import subprocess
import time
from collections.abc import Callable

# How long a peer may take to become ready, in seconds.
READY_TIMEOUT = 60
# How long a peer may take to end after a SIGTERM, in seconds.
END_TIMEOUT = 5


class Peer:
    """A program whose output goes to a file."""

    def __init__(self, name: str, command: list[str], log: pathlib.Path, **options) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as sink:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, **options
            )

    def wait_until(self, ready: Callable[[], bool]) -> "Peer":
        """Waits until it is ready; the error contains the end of its output."""
        deadline = time.monotonic() + READY_TIMEOUT
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {self.tail()}")
            if ready():
                return self
            time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"{self.name} was not ready within {READY_TIMEOUT} s: {self.tail()}")

    def output(self) -> str:
        """Returns all of its output."""
        return self.log.read_text(errors="replace")

    def tail(self) -> str:
        """Returns the end of its output."""
        return self.output()[-600:]

    def stop(self) -> int:
        """Sends SIGTERM, then SIGKILL if necessary; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(END_TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode
