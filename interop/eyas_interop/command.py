"""Running the `eyas` command and reading its output."""

import json
import os
import pathlib
import subprocess
import time

# The time limit of one run of the command, in seconds.
LIMIT = 60


class Run:
    """A finished run."""

    def __init__(self, status: int, stdout: str, stderr: str, elapsed: float) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.elapsed = elapsed

    @property
    def json(self) -> dict:
        """The single JSON object on standard output."""
        try:
            value = json.loads(self.stdout)
        except ValueError as error:
            raise RuntimeError(f"no JSON ({error}): {self}") from error
        if not isinstance(value, dict):
            raise RuntimeError(f"not an object: {self}")
        return value

    @property
    def winner(self) -> dict:
        """The winner of the race; empty if there is none."""
        return self.json.get("winner") or {}

    @property
    def attempts(self) -> list[dict]:
        """The attempts of the race."""
        return self.json.get("attempts") or []

    def __str__(self) -> str:
        text = f"status {self.status}"
        if self.stdout:
            text += f", stdout {self.stdout.strip()[-400:]}"
        if self.stderr:
            text += f", stderr {self.stderr.strip()[-400:]}"
        return text

    def outline(self) -> str:
        """Returns the winner, and the transport, address and outcome of each attempt, on one line."""
        try:
            winner, attempts = self.winner, self.attempts
        except RuntimeError as error:
            return str(error)
        parts = [f"{it.get('transport')} {it.get('address')} {it.get('outcome')}" for it in attempts]
        ready = winner.get("ready_ms")
        shown = f"{winner.get('transport')} {winner.get('address')} in {ready} ms"
        return f"status {self.status}, {f'won {shown}' if winner else 'no winner'}; {'; '.join(parts)}"


class Command:
    """The `eyas` binary with its own home directory."""

    def __init__(self, binary: pathlib.Path, home: pathlib.Path, default_flags: list[str]) -> None:
        self.binary = binary
        self.home = home
        self.default_flags = default_flags

    def run(self, *arguments: str, bare: bool = False) -> Run:
        """Runs it with these arguments, and with the default flags unless `bare`."""
        command = [str(self.binary), *arguments, *([] if bare else self.default_flags)]
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.lower().endswith("_proxy") and not name.startswith(("EYAS_", "XDG_"))
        }
        environment["HOME"] = str(self.home)
        start = time.monotonic()
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=LIMIT, env=environment, cwd=self.home, check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"no end after {LIMIT} s: {' '.join(arguments)}") from error
        return Run(done.returncode, done.stdout, done.stderr, time.monotonic() - start)
