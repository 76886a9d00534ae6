"""HTTP/2 clients that open all windows as far as they go, ask for a large file on every stream, and then
do not read.

What waits for their sockets is bounded, by connection and in all.
"""

import time

import _h2
from eyas_interop.hostile.stage import Stage, main

CONNECTIONS = 40
STREAMS = 100
WINDOW = 2**31 - 1
FILE = 64 * 1024 * 1024
# How long the streams are held, in seconds.
HOLD = 8


def attack(stage: Stage) -> None:
    server = stage.serve("--no-sctp", files=stage.files(large=FILE, small=200_000))
    with (
        stage.watched(server.process) as watch,
        stage.honest(server, "/small", "--http2") as over_h2,
        stage.honest(server, "/small", "--http3-only") as over_h3,
    ):
        attackers = [_h2.Connection(server.port, WINDOW) for _ in range(CONNECTIONS)]
        for attacker in attackers:
            attacker.widen(0, WINDOW - 65_535)
            attacker.ask("/large", STREAMS)
        time.sleep(HOLD)
    stage.alive(server)
    stage.memory_within(watch, 400)
    stage.descriptors_within(watch, 700)
    stage.honest_fetched(over_h2, over_h3)


if __name__ == "__main__":
    main(attack)
