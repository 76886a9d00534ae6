"""An authorized key that opens all sessions of a tunnel server, and all channels, that it gets, where there are few
descriptors. Another key is served nevertheless, over each transport.
"""

import contextlib
import socket
import time

from _relay import LOCALHOST, TIMEOUT, Echo
from _tunnel import TRANSPORTS, Ends, free_port
from eyas_interop.hostile.stage import Stage, main

DESCRIPTORS = 256
LIMITED = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", "--")
# More sessions than the server has with so few descriptors, and more channels.
SESSIONS, CHANNELS = 24, 300
# The duration of the attack once they are there, in seconds.
HOLD = 8


def attack(stage: Stage) -> None:
    echo = Echo()
    ends = Ends(stage, ("key", "greedy"), before=LIMITED)
    first = free_port(socket.SOCK_STREAM)
    greedy = [stage.start([str(stage.eyas), "tunnel", *ends.client("-L", f"{first}:{LOCALHOST}:{echo.port}", over="tcp",
                                                                  key="greedy")])]
    greedy[0].wait_until(lambda: "leads to" in greedy[0].tail())
    turns = iter(range(1_000_000))
    held = []
    with stage.watched(ends.victim.process) as watch:
        for _ in range(CHANNELS):
            with contextlib.suppress(OSError):
                program = socket.create_connection((LOCALHOST, first), TIMEOUT)
                program.sendall(b"x")
                held.append(program)
        for _ in range(SESSIONS):
            port = free_port(socket.SOCK_STREAM)
            flags = ends.client("-L", f"{port}:{LOCALHOST}:{echo.port}", over="tcp", key="greedy")
            greedy.append(stage.start([str(stage.eyas), "tunnel", *flags]))
        time.sleep(2)
        with stage.repeat(lambda: ends.connect_and_echo(echo.port, TRANSPORTS[next(turns) % len(TRANSPORTS)])) as honest:
            time.sleep(HOLD)
    stage.alive(ends.victim)
    output = ends.victim.peer.output()
    stage.check("the key has its share of sessions", "got no session: this key has" in output, output[-300:])
    stage.check("it does not run out of descriptors", "no descriptors are left" not in output, output[-300:])
    stage.within("descriptors", watch.peak.descriptors, DESCRIPTORS - 10)
    stage.memory_within(watch, 120)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
