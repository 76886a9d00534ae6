"""Reads standard input, or what a web server at a port of this host sends, to the end, and prints how much arrived when,
as JSON. The server may not listen yet."""

import http.client
import json
import os
import sys
import time
from collections.abc import Callable

BLOCK = 1 << 20
# The shares of the bytes between which the rate is measured: after slow start, and before one line runs out of data.
MEASURED_FROM, MEASURED_TO = 0.25, 0.9
# How long the server may take to listen, in seconds.
READY_TIMEOUT = 20


def rate(marks: list[tuple[float, int]]) -> float:
    """Returns the Mbit/s between the first moments at which these shares of all bytes had arrived."""
    total = marks[-1][1]

    def moment_at(share: float) -> tuple[float, int]:
        return next(mark for mark in marks if mark[1] >= share * total)

    (start, before), (stop, after) = moment_at(MEASURED_FROM), moment_at(MEASURED_TO)
    return (after - before) * 8 / max(stop - start, 1e-9) / 1e6


def web(port: int) -> Callable[[], bytes]:
    """Requests the file of a web server at this port."""
    deadline = time.monotonic() + READY_TIMEOUT
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            connection.request("GET", "/file")
            answer = connection.getresponse()
            return lambda: answer.read1(BLOCK)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def main() -> None:
    read = web(int(sys.argv[1])) if len(sys.argv) > 1 else lambda: os.read(0, BLOCK)
    began = time.monotonic()
    marks = [(0.0, 0)]
    while piece := read():
        marks.append((time.monotonic() - began, marks[-1][1] + len(piece)))
    seconds, count = marks[-1]
    json.dump({"bytes": count, "seconds": seconds, "rate": rate(marks) if count else 0.0}, sys.stdout)


if __name__ == "__main__":
    main()
