"""Clients of the proxy that send nothing, or half a request, or a request byte by byte.

Other clients are served meanwhile, and each of these is closed at its timeout.
"""

import contextlib
import socket
import time

from _relay import LOCALHOST, TIMEOUT, Echo, echo_through_proxy, proxy
from eyas_interop.hostile.stage import Stage, main

# A quarter of the connection slots remains for others.
CLIENTS = 3000
# What they send, each by a part of them.
BEGINNINGS = (b"", b"\x05", b"\x05\x01\x00\x05\x01\x00\x03\xff", b"\x04\x01\x00\x50\x00\x00\x00\x01", b"CONNECT a.test:443 HTTP/1.1\r\nX: ")
# How long they send byte by byte, and how long until the last is closed: the timeout is 30 s.
HOLD, CLOSE_TIMEOUT = 6, 40


def attack(stage: Stage) -> None:
    echo = Echo()
    victim = proxy(stage)
    clients = []
    with stage.watched(victim.process) as watch:
        with stage.repeat(lambda: echo_through_proxy(victim.port, echo.port)) as honest:
            for number in range(CLIENTS):
                client = socket.create_connection((LOCALHOST, victim.port), TIMEOUT)
                client.sendall(BEGINNINGS[number % len(BEGINNINGS)])
                clients.append(client)
            until = time.monotonic() + HOLD
            while time.monotonic() < until:
                for client in clients[4::len(BEGINNINGS)]:
                    with contextlib.suppress(OSError):
                        client.send(b"x")
                time.sleep(1)
            closed = stage.wait_for_usage(victim.process, CLOSE_TIMEOUT, lambda usage: usage.descriptors < 100)
    for client in clients:
        client.close()
    stage.alive(victim)
    stage.check("all are closed", closed)
    stage.memory_within(watch, 120)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
