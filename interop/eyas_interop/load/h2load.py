"""Runs h2load and reads its log, which has a line for each request."""

import math
import pathlib
import subprocess

# The warm-up of both generators, in seconds.
WARM_UP = 2
# The measured time after the warm-up, in seconds.
SECONDS = 10
# How much longer a run may take, in seconds.
EXTRA_TIME = 60


class Measured:
    """Responses per second, and the distribution of their times in milliseconds."""

    def __init__(self, per_second: float, mean: float, quantiles: dict[str, float]) -> None:
        self.per_second = per_second
        self.mean = mean
        self.quantiles = quantiles

    def rows(self) -> dict[str, float]:
        """Returns every figure with its name."""
        return {"answered/s": self.per_second, "mean ms": self.mean, **self.quantiles}


def run(
    url: str, connections: int, rate: int, flags: list[str], directory: pathlib.Path
) -> Measured:
    """Runs a constant rate over persistent connections, after a warm-up."""
    log = directory / "h2load.log"
    log.unlink(missing_ok=True)
    command = [
        "h2load", *flags, f"--clients={connections}", f"--rps={rate / connections:g}",
        f"--warm-up-time={WARM_UP}", f"--duration={SECONDS}", f"--log-file={log}", url,
    ]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=WARM_UP + SECONDS + EXTRA_TIME, check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"h2load ended with {done.returncode}: {done.stderr[-300:]}")
    return read(log.read_text())


def read(log: str) -> Measured:
    """Reads a log, whose columns are the start of a request, its status and its duration, in microseconds."""
    rows = [line.split("\t") for line in log.splitlines() if line]
    good = [row for row in rows if row[1] == "200"]
    if len(good) < 100:
        raise RuntimeError(f"h2load logged {len(good)} responses")
    times = sorted(int(row[2]) / 1e3 for row in good)
    # First and last start; the gap after the last counts too.
    starts = [int(row[0]) / 1e6 for row in good]
    span = (max(starts) - min(starts)) * len(starts) / (len(starts) - 1)
    quantile = lambda share: times[min(len(times) - 1, math.ceil(share * len(times)) - 1)]
    quantiles = {"p50 ms": quantile(0.5), "p90 ms": quantile(0.9), "p99 ms": quantile(0.99)}
    return Measured(len(good) / span, sum(times) / len(times), quantiles)
