"""The protocol of the Python programs on standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

# The time limit of a round, in seconds.
LIMIT = float(os.environ.get("ROUND_LIMIT", "20"))


def serve(
    one_round: Callable[[str, str], float],
    reuse: Callable[[str, int, str], float] | None = None,
) -> None:
    """Answers each line `MODE URL`, and `reuse MODE N URL` if supported, with milliseconds, or with
    `error` and the reason.
    """
    for line in sys.stdin:
        try:
            match line.split():
                case ["reuse", mode, count, url] if reuse is not None:
                    seconds = reuse(mode, int(count), url)
                case [mode, url]:
                    seconds = one_round(mode, url)
                case _:
                    raise ValueError(f"unsupported line {line.strip()!r}")
            answer = f"{seconds * 1000:.4f}"
        except Exception as error:  # any exception of a client is a result of the round
            answer = "error " + " ".join(f"{type(error).__name__}: {error}".split())
        print(answer, flush=True)
