"""HTTP/2 clients that send requests and reset them at once, as fast as they can (CVE-2023-44487).

A client that resets streams before they are processed gets ENHANCE_YOUR_CALM, and the connection ends; a client
that waits until each request is processed costs no more than those requests.
"""

#= hostile http
## streams that are reset at once (CVE-2023-44487)
#= bound: `PENDING_RESET_STREAMS`, `RESET_STREAMS`

import threading
import time

import _h2
from eyas_interop.hostile.stage import SMALL, SMALL_SIZE, Stage, main

FILE = 64 * 1024 * 1024
# Parallel connections, and streams that each would open and reset.
CONNECTIONS = 8
STREAMS = 20_000
# Streams in one write: a server may have read them all before it processes any.
STREAMS_PER_WRITE = 100
# Streams that a connection may reset before it is ended. The client can send more: the server still reads the
# socket, so that its GOAWAY arrives, but not the frames.
MAX_RESETS = 2_000
# How long the waiting clients continue, in seconds, and the pause of each.
HOLD = 6
PAUSE = 0.002
# RFC 9113 §7.
ENHANCE_YOUR_CALM = 11


def reset_in_bursts(port: int, ended: list[tuple[int, int | None]]) -> None:
    """Opens and resets streams until the connection ends; records those that the server saw, and its error code."""
    attacker = _h2.Connection(port, window=65_535)
    opened = 0
    while opened < STREAMS and attacker.is_open:
        attacker.request_and_reset("/large", STREAMS_PER_WRITE)
        opened += STREAMS_PER_WRITE
    last, reason = attacker.goaway() or (2 * opened, None)
    # Streams of clients have odd numbers (RFC 9113 §5.1.1).
    ended.append(((last + 1) // 2, reason))


def reset_one_by_one(port: int, until: float) -> None:
    """Resets each stream once its request is processed."""
    attacker = _h2.Connection(port, window=65_535)
    while time.monotonic() < until and attacker.is_open:
        attacker.request("/large", 1)
        time.sleep(PAUSE)
        attacker.reset(attacker.next - 2)


def in_parallel(run, *arguments) -> None:
    threads = [threading.Thread(target=run, args=arguments) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def attack(stage: Stage) -> None:
    server = stage.serve("--no-sctp", files=stage.files(large=FILE, small=SMALL_SIZE))
    ended: list[tuple[int, int | None]] = []
    with stage.attacked(server, *SMALL, memory=80, descriptors=300, cpu=15):
        in_parallel(reset_in_bursts, server.port, ended)
        in_parallel(reset_one_by_one, server.port, time.monotonic() + HOLD)
    calmed = sum(reason == ENHANCE_YOUR_CALM for _, reason in ended)
    stage.check("ENHANCE_YOUR_CALM", calmed == CONNECTIONS, f"{calmed} of {CONNECTIONS}: {ended}")
    stage.within("streams until then", max((seen for seen, _ in ended), default=STREAMS), MAX_RESETS)


if __name__ == "__main__":
    main(attack)
