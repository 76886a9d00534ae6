"""`eyas get -o` with a named pipe that nobody reads, and with a reader that falls asleep.

Neither holds the command beyond `--max-time` or a signal, and a signal leaves no half of a file.
"""

import os
import signal
import time

import _answers
from eyas_interop.hostile.stage import Stage, main

# More than arrives on any machine before the signal: a gigabyte did, in less than a second.
BODY = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000000\r\n\r\n"
# What a process that was told to end may take, in seconds: its own second, and a busy machine's.
SOON = 10


def attack(stage: Stage) -> None:
    pipe = stage.directory / "pipe"
    os.mkfifo(pipe)
    with _answers.answering(BODY, b"x" * 1000) as url:
        in_time(stage, "nobody reads, --max-time", 28, url, "-o", str(pipe), "--max-time", "2s")
        for how in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            told(stage, f"nobody reads, {how.name}", how, url, "-o", str(pipe))
        # A pipe has a reader, and it does not read.
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        in_time(stage, "the reader sleeps, --max-time", 28, url, "-o", str(pipe), "--max-time", "2s")
        told(stage, "the reader sleeps, SIGTERM", signal.SIGTERM, url, "-o", str(pipe))
        os.close(reader)
        pipe.unlink()
        for how in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            told(stage, f"half of a file, {how.name}", how, url, "-o", str(stage.directory / "body"))


def in_time(stage: Stage, name: str, wanted: int, *arguments: str) -> None:
    """The command gives up by itself."""
    code, said = _answers.ended(_answers.start(stage.eyas, "get", *arguments))
    stage.check(name, code == wanted, f"status {code}; {said.strip()[:200]}")


def told(stage: Stage, name: str, how: signal.Signals, *arguments: str) -> None:
    """The command ends when it is told to, with the code of the signal, and cleans up."""
    process = _answers.start(stage.eyas, "get", "-s", *arguments)
    time.sleep(1)
    began = time.monotonic()
    process.send_signal(how)
    code, _ = _answers.ended(process)
    took = time.monotonic() - began
    left = [path.name for path in stage.directory.iterdir() if path.name != "pipe"]
    good = code == 128 + how.value and took < SOON and not left
    stage.check(name, good,
                f"status {code} after {took:.1f} s, files: {' '.join(left) or 'none'}")


if __name__ == "__main__":
    main(attack)
