"""HTTP/2 clients that ask and take it back at once, as fast as they can (CVE-2023-44487).

Whoever resets streams that nobody has looked at yet is told to calm down, and the connection ends; whoever
waits until each request is begun costs no more than those requests do.
"""

import threading
import time

import _h2
from eyas_interop.hostile.stage import SMALL, SMALL_SIZE, Stage, main

FILE = 64 * 1024 * 1024
# Connections at a time, and streams that each would open and reset.
CONNECTIONS = 8
STREAMS = 20_000
# Of them in one piece. A server may not have looked at any when it has read the last.
AT_ONCE = 100
# Streams that a connection may get reset before it is ended: what was on its way counts, too.
MOST = 2_000
# How long those go on that wait for their requests to be begun, in seconds, and the pause of each.
HOLD = 6
PAUSE = 0.002
# RFC 9113 §7.
ENHANCE_YOUR_CALM = 11


def reset_in_bursts(port: int, ended: list[tuple[int, int | None]]) -> None:
    """Opens and resets until the connection ends: how many streams that were, and the reason it was given."""
    attacker = _h2.Connection(port, window=65_535)
    opened = 0
    while opened < STREAMS and attacker.is_open:
        attacker.ask_and_reset("/large", AT_ONCE)
        opened += AT_ONCE
    ended.append((opened, attacker.goaway()))


def reset_one_by_one(port: int, until: float) -> None:
    """Resets each stream once its request is begun."""
    attacker = _h2.Connection(port, window=65_535)
    while time.monotonic() < until and attacker.is_open:
        attacker.ask("/large", 1)
        time.sleep(PAUSE)
        attacker.reset(attacker.next - 2)


def all_at_once(run, *arguments) -> None:
    threads = [threading.Thread(target=run, args=arguments) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def attack(stage: Stage) -> None:
    server = stage.serve("--no-sctp", files=stage.files(large=FILE, small=SMALL_SIZE))
    ended: list[tuple[int, int | None]] = []
    with stage.attacked(server, *SMALL, memory=80, descriptors=300, cpu=15):
        all_at_once(reset_in_bursts, server.port, ended)
        all_at_once(reset_one_by_one, server.port, time.monotonic() + HOLD)
    told = sum(reason == ENHANCE_YOUR_CALM for _, reason in ended)
    stage.check("told to calm down", told == CONNECTIONS, f"{told} of {CONNECTIONS}: {ended}")
    stage.within("streams until then", max((opened for opened, _ in ended), default=STREAMS), MOST)


if __name__ == "__main__":
    main(attack)
