"""HTTP/2 clients that ask for a large file on every stream there is, and take one byte of each.

What they are owed must not be held for them: neither in memory, nor as open files. One PING each few
seconds is no progress.
"""

import time

import _h2
from eyas_interop.hostile.stage import Stage, main

CONNECTIONS = 40
STREAMS = 128
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
        attackers = [_h2.Connection(server.port, window=1) for _ in range(CONNECTIONS)]
        for attacker in attackers:
            attacker.ask("/large", STREAMS)
        until = time.monotonic() + HOLD
        while time.monotonic() < until:
            time.sleep(1)
            for attacker in attackers:
                attacker.ping()
    sent = sum(attacker.sent for attacker in attackers)
    print(f"      {stage.name}: {sent / 1000:.0f} kB sent by {CONNECTIONS} connections", flush=True)
    stage.alive(server)
    stage.memory_within(watch, 150)
    stage.descriptors_within(watch, 600)
    stage.cpu_within(watch, 10)
    stage.honest_fetched(over_h2, over_h3)


if __name__ == "__main__":
    main(attack)
