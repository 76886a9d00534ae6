"""Unauthorized clients of a tunnel server: silent or invalid TCP connections, junk over UDP, unauthorized keys.

Clients with a key are served nevertheless, over each transport, and open sessions stay open.
"""

import contextlib
import os
import socket
import threading
import time

from _relay import LOCALHOST, TIMEOUT, Echo, expect
from _tunnel import TRANSPORTS, Ends, free_port
from eyas_interop.hostile.stage import Stage, main

# More than the limit of simultaneous handshakes; each closed one is replaced.
UNAUTHORIZED = 600
# What they send: nothing, half a TLS record, another protocol.
BEGINNINGS = (b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n")
# How long the refusal of a key may take on a busy machine, in seconds: less than until a client that hears nothing gives up.
REFUSAL = 12
# The duration of the attack, in seconds.
HOLD = 12


def flood(ends: Ends, stop: threading.Event) -> None:
    """Sends unauthorized traffic over TCP and UDP until stopped."""
    connections: list[socket.socket] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        while not stop.wait(0.005):
            connection = socket.create_connection((LOCALHOST, ends.port), TIMEOUT)
            connections.append(connection)
            with contextlib.suppress(OSError):
                connection.sendall(BEGINNINGS[len(connections) % len(BEGINNINGS)])
            if len(connections) > UNAUTHORIZED:
                connections.pop(0).close()
            for port in (ends.port, ends.sctp):
                with contextlib.suppress(OSError):
                    udp.sendto(os.urandom(1200), (LOCALHOST, port))
    for connection in connections:
        connection.close()


def attack(stage: Stage) -> None:
    echo = Echo()
    ends = Ends(stage, ("key",), ("unauthorized",))
    local_port = free_port(socket.SOCK_STREAM)
    client = stage.start([str(stage.eyas), "tunnel", *ends.client("-L", f"{local_port}:{LOCALHOST}:{echo.port}")])
    client.wait_until(lambda: "leads to" in client.tail())
    stop = threading.Event()
    attackers = threading.Thread(target=flood, args=(ends, stop))
    refusal = 0.0
    turns = iter(range(1_000_000))
    with socket.create_connection((LOCALHOST, local_port), TIMEOUT) as program, \
            stage.watched(ends.victim.process) as watch:
        attackers.start()
        try:
            with stage.repeat(lambda: ends.connect_and_echo(echo.port, TRANSPORTS[next(turns) % len(TRANSPORTS)])) as honest:
                until = time.monotonic() + HOLD
                while time.monotonic() < until:
                    program.sendall(b"key")
                    expect(program, 3, b"key")
                    begun = time.monotonic()
                    refused = ends.run(*ends.client("--stdio", f"{LOCALHOST}:9", key="unauthorized", over="quic"))
                    refusal = max(refusal, time.monotonic() - begun)
                    time.sleep(0.5)
        finally:
            stop.set()
            attackers.join()
        gone = stage.wait_for_usage(ends.victim.process, TIMEOUT, lambda usage: usage.descriptors < 60)
    stage.alive(ends.victim)
    stage.check("an unauthorized key", refused.returncode == 58, str(refused)[-200:])
    stage.within("until it is refused", refusal, REFUSAL, "s")
    stage.check("the open session is not disturbed", "reconnect" not in client.tail(), client.tail()[-200:])
    stage.check("their connections are closed", gone)
    stage.within("descriptors grew", watch.grown_descriptors, 500)
    stage.memory_within(watch, 80)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
