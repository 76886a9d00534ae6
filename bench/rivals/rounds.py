"""What every rival in Python does with its standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

# No round may take longer, in seconds.
LIMIT = float(os.environ.get("ROUND_LIMIT", "20"))


def serve(
    one_round: Callable[[str, str], float],
    reuse: Callable[[str, int, str], float] | None = None,
) -> None:
    """Answers each line `MODE URL` with milliseconds, and with `reuse` also each `reuse MODE N URL`;
    or with `error` and what went wrong.
    """
    for line in sys.stdin:
        try:
            match line.split():
                case ["reuse", mode, count, url] if reuse is not None:
                    seconds = reuse(mode, int(count), url)
                case [mode, url]:
                    seconds = one_round(mode, url)
                case _:
                    raise ValueError(f"this client does not know {line.strip()!r}")
            answer = f"{seconds * 1000:.4f}"
        except Exception as error:  # whatever a rival raises is an outcome of the round
            answer = "error " + " ".join(f"{type(error).__name__}: {error}".split())
        print(answer, flush=True)
