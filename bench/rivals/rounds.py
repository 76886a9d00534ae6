"""What every rival in Python does with its standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Callable


def serve(one_round: Callable[[str, str], float]) -> None:
    """Answers each line `MODE URL` with milliseconds, or with `error` and what went wrong."""
    for line in sys.stdin:
        mode, url = line.split()
        try:
            answer = f"{one_round(mode, url) * 1000:.4f}"
        except Exception as error:  # whatever a rival raises is an outcome of the round
            answer = "error " + " ".join(f"{type(error).__name__}: {error}".split())
        print(answer, flush=True)
