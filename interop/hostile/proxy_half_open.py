"""Clients of the proxy that say nothing, or half of what they want to say, or say it a byte at a time.

Others get through meanwhile, and each of these is left once its time is over.
"""

import contextlib
import socket
import time

from _relay import LOCALHOST, PATIENCE, Echo, converse, proxy
from eyas_interop.hostile.stage import Stage, main

# A quarter of the places is left for others.
CLIENTS = 3000
# What they say, each a part of them.
SAY = (b"", b"\x05", b"\x05\x01\x00\x05\x01\x00\x03\xff", b"\x04\x01\x00\x50\x00\x00\x00\x01", b"CONNECT a.test:443 HTTP/1.1\r\nX: ")
# How long they go on a byte at a time, and until the last has been left: its time is 30 s.
HOLD, LEFT_WITHIN = 6, 40


def attack(stage: Stage) -> None:
    echo = Echo()
    victim = proxy(stage)
    clients = []
    with stage.watched(victim.process) as watch:
        with stage.neighbour(lambda: converse(victim.port, echo.port)) as honest:
            for number in range(CLIENTS):
                client = socket.create_connection((LOCALHOST, victim.port), PATIENCE)
                client.sendall(SAY[number % len(SAY)])
                clients.append(client)
            until = time.monotonic() + HOLD
            while time.monotonic() < until:
                for client in clients[4::len(SAY)]:
                    with contextlib.suppress(OSError):
                        client.send(b"x")
                time.sleep(1)
            left = stage.settled(victim.process, LEFT_WITHIN, lambda usage: usage.descriptors < 100)
    for client in clients:
        client.close()
    stage.alive(victim)
    stage.check("all are left", left)
    stage.memory_within(watch, 120)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
