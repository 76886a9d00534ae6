"""HTTP/2 clients that ask for the listing of a large directory on every stream there is, and take
nothing of it.

What cannot be sent need not be made: the directory is not read for them.
"""

import time

import _h2
from eyas_interop.hostile.stage import Stage, main

CONNECTIONS = 4
STREAMS = 128
NAMES = 10_000
# How long the streams are held, in seconds.
HOLD = 6


def attack(stage: Stage) -> None:
    files = stage.files(small=200_000)
    many = files / "many"
    many.mkdir()
    for number in range(NAMES):
        (many / f"a file with a name that is not short {number:05}").touch()
    server = stage.serve("--no-sctp", files=files)
    with (
        stage.watched(server.process) as watch,
        stage.honest(server, "/many/", "--http2") as listing,
        stage.honest(server, "/small", "--http3-only") as small,
    ):
        # The second half takes a byte of each, so that the listings are begun.
        attackers = [_h2.Connection(server.port, window=number % 2) for number in range(CONNECTIONS)]
        for attacker in attackers:
            attacker.ask("/many/", STREAMS)
        until = time.monotonic() + HOLD
        while time.monotonic() < until:
            time.sleep(1)
            for attacker in attackers:
                attacker.ping()
    stage.alive(server)
    stage.memory_within(watch, 100)
    stage.cpu_within(watch, 8)
    stage.honest_fetched(listing, small)


if __name__ == "__main__":
    main(attack)
