"""HTTP/2 clients that request a large file on every available stream, and read one byte of each.

Their responses must not be held for them: neither in memory, nor as open files. One PING every few
seconds is no progress.
"""

import _h2
from eyas_interop.hostile.stage import SMALL, SMALL_SIZE, Stage, main

CONNECTIONS = 40
STREAMS = 128
FILE = 64 * 1024 * 1024
# How long the streams are held, in seconds.
HOLD = 8


def attack(stage: Stage) -> None:
    server = stage.serve("--no-sctp", files=stage.files(large=FILE, small=SMALL_SIZE))
    with stage.attacked(server, *SMALL, memory=150, descriptors=600, cpu=10):
        attackers = [_h2.Connection(server.port, window=1) for _ in range(CONNECTIONS)]
        for attacker in attackers:
            attacker.request("/large", STREAMS)
        _h2.hold(attackers, HOLD)
    sent = sum(attacker.sent for attacker in attackers)
    print(f"      {stage.name}: {sent / 1000:.0f} kB sent by {CONNECTIONS} connections", flush=True)


if __name__ == "__main__":
    main(attack)
