"""HTTP/2 clients that request the listing of a large directory on every available stream, and read
nothing.

A listing that cannot be sent need not be generated: the directory is not read for them.
"""

import _h2
from eyas_interop.hostile.stage import SMALL_SIZE, Stage, main

CONNECTIONS = 4
STREAMS = 128
NAMES = 10_000
# How long the streams are held, in seconds.
HOLD = 6


def attack(stage: Stage) -> None:
    files = stage.files(small=SMALL_SIZE)
    many = files / "many"
    many.mkdir()
    for number in range(NAMES):
        (many / f"a file with a name that is not short {number:05}").touch()
    server = stage.serve("--no-sctp", files=files)
    honest = (("/many/", "--http2"), ("/small", "--http3-only"))
    with stage.attacked(server, *honest, memory=100, cpu=8):
        # Half of them read one byte of each listing, so that its generation begins.
        attackers = [_h2.Connection(server.port, window=number % 2) for number in range(CONNECTIONS)]
        for attacker in attackers:
            attacker.request("/many/", STREAMS)
        _h2.hold(attackers, HOLD)


if __name__ == "__main__":
    main(attack)
