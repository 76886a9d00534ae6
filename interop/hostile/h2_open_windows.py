"""HTTP/2 clients that open all windows to the maximum, request a large file on every stream, and then
do not read.

The data queued for their sockets is bounded, per connection and in total.
"""

#= hostile http
## open windows, and nothing read from the socket
#= bound: `STREAM_SEND_BUFFER`, `buffered_bytes_per_connection`, `buffered_bytes`

import time

import _h2
from eyas_interop.hostile.stage import SMALL, SMALL_SIZE, Stage, main

CONNECTIONS = 40
STREAMS = 100
WINDOW = 2**31 - 1
FILE = 64 * 1024 * 1024
# How long the streams are held, in seconds.
HOLD = 8


def attack(stage: Stage) -> None:
    server = stage.serve("--no-sctp", files=stage.files(large=FILE, small=SMALL_SIZE))
    with stage.attacked(server, *SMALL, memory=400, descriptors=700):
        attackers = [_h2.Connection(server.port, WINDOW) for _ in range(CONNECTIONS)]
        for attacker in attackers:
            attacker.widen(0, WINDOW - 65_535)
            attacker.request("/large", STREAMS)
        time.sleep(HOLD)


if __name__ == "__main__":
    main(attack)
