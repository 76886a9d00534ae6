"""`eyas get -o` with a named pipe without a reader, and with a reader that does not read; and a full pipe as standard
output.

None of them blocks the command beyond `--max-time` or a signal, and a signal leaves no partial file.
"""

import contextlib
import os
import signal
import time

import _answers
from eyas_interop.hostile.stage import Stage, main

SHORT = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody"
# More than can arrive before the signal: a gigabyte did, in less than a second.
BODY = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000000\r\n\r\n"
# How long a process may take to end after a signal, in seconds: one second, and time for a busy machine.
TIMEOUT = 10


def attack(stage: Stage) -> None:
    pipe = stage.directory / "pipe"
    os.mkfifo(pipe)
    with _answers.answering(BODY, b"x" * 1000) as url:
        check_timeout(stage, "no reader, --max-time", 28, url, "-o", str(pipe), "--max-time", "2s")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            check_signal(stage, f"no reader, {number.name}", number, url, "-o", str(pipe))
        # The pipe has a reader that does not read.
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        check_timeout(stage, "an idle reader, --max-time", 28, url, "-o", str(pipe), "--max-time", "2s")
        check_signal(stage, "an idle reader, SIGTERM", signal.SIGTERM, url, "-o", str(pipe))
        os.close(reader)
        pipe.unlink()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            check_signal(stage, f"partial file, {number.name}", number, url, "-o", str(stage.directory / "body"))
    with _answers.answering(SHORT) as url:
        reader, writer = full_pipe()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            check_signal(stage, f"a full pipe, {number.name}", number, url, "-o", "/dev/null", "--json", stdout=writer)
        os.close(reader)
        os.close(writer)


def full_pipe() -> tuple[int, int]:
    """Returns both ends of a pipe into which nothing more fits."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    return reader, writer


def check_timeout(stage: Stage, name: str, expected: int, *arguments: str) -> None:
    """Checks that the command ends by itself with this exit code."""
    code, stderr = _answers.finish(_answers.start(stage.eyas, "get", *arguments))
    stage.check(name, code == expected, f"status {code}; {stderr.strip()[:200]}")


def check_signal(stage: Stage, name: str, number: signal.Signals, *arguments: str, stdout: int | None = None) -> None:
    """Checks that the command ends at a signal, with its exit code, and cleans up."""
    process = _answers.start(stage.eyas, "get", "-s", *arguments, stdout=stdout)
    time.sleep(1)
    start = time.monotonic()
    process.send_signal(number)
    code, _ = _answers.finish(process)
    elapsed = time.monotonic() - start
    left = [path.name for path in stage.directory.iterdir() if path.name != "pipe"]
    good = code == 128 + number.value and elapsed < TIMEOUT and not left
    stage.check(name, good,
                f"status {code} after {elapsed:.1f} s, files: {' '.join(left) or 'none'}")


if __name__ == "__main__":
    main(attack)
