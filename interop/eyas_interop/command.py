"""Running the `eyas` command and reading what it says."""

import json
import os
import pathlib
import subprocess
import time

# No run of the command may take longer, in seconds.
LIMIT = 60


class Ran:
    """How one run ended."""

    def __init__(self, status: int, said: str, complained: str, took: float) -> None:
        self.status = status
        self.said = said
        self.complained = complained
        self.took = took

    @property
    def json(self) -> dict:
        """The one object on standard output."""
        try:
            value = json.loads(self.said)
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
        if self.said:
            text += f", said {self.said.strip()[-400:]}"
        if self.complained:
            text += f", complained {self.complained.strip()[-400:]}"
        return text

    def outline(self) -> str:
        """Winner, and the attempts by transport, family and outcome: enough for one line."""
        try:
            winner, attempts = self.winner, self.attempts
        except RuntimeError as error:
            return str(error)
        parts = [f"{it.get('transport')} {it.get('address')} {it.get('outcome')}" for it in attempts]
        ready = winner.get("ready_ms")
        shown = f"{winner.get('transport')} {winner.get('address')} in {ready} ms"
        return f"status {self.status}, won {shown if winner else 'nobody'}; {'; '.join(parts)}"


class Command:
    """The `eyas` binary, with a home of its own."""

    def __init__(self, binary: pathlib.Path, home: pathlib.Path, usual: list[str]) -> None:
        self.binary = binary
        self.home = home
        self.usual = usual

    def run(self, *words: str, bare: bool = False) -> Ran:
        """Runs it with these words, and with the usual flags unless it shall be bare."""
        command = [str(self.binary), *words, *([] if bare else self.usual)]
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
            raise RuntimeError(f"no end after {LIMIT} s: {' '.join(words)}") from error
        return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - start)
