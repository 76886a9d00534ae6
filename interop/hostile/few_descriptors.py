"""Crowds of clients where there are few descriptors: at `eyas serve`, with an upstream and without, and at `eyas proxy`.

Each client that is admitted finds the descriptors that it needs, the others are closed at once, and honest clients are
served. Running out of descriptors, clients would get errors, or wait for others to leave.
"""

import contextlib
import socket
import time

import _h2
import _relay
import _upstream
from _relay import LOCALHOST, TIMEOUT, Echo
from eyas_interop.hostile.stage import Server, Stage, main

DESCRIPTORS = 256
LIMITED = ("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", "--")
# Where the crowd comes from, and how many from each address.
ADDRESSES, EACH = tuple(f"127.0.0.{host}" for host in range(2, 7)), 100
# How long it stays, in seconds.
HOLD = 4
# Of each HTTP/2 connection.
STREAMS = 120
# What servers report when descriptors run out, for clients and for connections to others.
EXHAUSTED = ("no descriptors are left", "Too many open files", "too many descriptors")


def crowd(server: Server, request: bytes) -> list[socket.socket]:
    """Opens all connections and sends this on each."""
    clients = []
    for _ in range(EACH):
        for address in ADDRESSES:
            with contextlib.suppress(OSError):
                client = socket.create_connection((LOCALHOST, server.port), TIMEOUT, source_address=(address, 0))
                clients.append(client)
                client.sendall(request)
    return clients


def answered(clients: list[socket.socket], good: bytes) -> tuple[int, list[bytes]]:
    """Returns how many received this first, and what others received."""
    count, others = 0, []
    for client in clients:
        # Those that were closed at once.
        with contextlib.suppress(OSError):
            client.settimeout(TIMEOUT)
            received = b""
            while len(received) < len(good) and (more := client.recv(len(good) - len(received))):
                received += more
            if received == good:
                count += 1
            elif received:
                others.append(received)
    return count, others


def finish(stage: Stage, what: str, server: Server, clients: list[socket.socket], good: bytes, least: int,
           turned_away: bytes = b"") -> None:
    """Checks what the crowd received; those without a place may receive `turned_away`."""
    count, others = answered(clients, good)
    others = [other for other in others if other != turned_away]
    stage.check(f"{what}: nobody receives an error", not others, f"{others[:3]}")
    stage.check(f"{what}: clients that are served", count >= least, f"{count}, at least {least}")
    output = server.peer.output()
    stage.check(f"{what}: it does not run out of descriptors", not any(text in output for text in EXHAUSTED), output[-300:])
    for client in clients:
        client.close()


def listening(stage: Stage, *flags: str) -> Server:
    peer = stage.start([*LIMITED, str(stage.eyas), "serve", "--listen", f"{LOCALHOST}:0", "--json", "--no-sctp",
                        "--plain", "--no-files", *flags])
    peer.wait_until(lambda: peer.log.read_text().rstrip().endswith("}"))
    return stage.listening_server(peer)


def attack(stage: Stage) -> None:
    server = listening(stage)
    with stage.attacked(server, ("/bytes/1000",), memory=60, cpu=10):
        clients = crowd(server, b"GET /bytes/9 HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(HOLD)
    finish(stage, "serve", server, clients, b"HTTP/1.1 200", DESCRIPTORS // 3)

    upstream = _upstream.start(stage)
    gateway = _upstream.gateway(stage, upstream, "--plain", before=LIMITED)
    with stage.attacked(gateway, ("/",), memory=100, cpu=10):
        clients = crowd(gateway, b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(HOLD)
    finish(stage, "gateway", gateway, clients, b"HTTP/1.1 200", DESCRIPTORS // 6)

    # Streams of HTTP/2, of which each takes a connection to the upstream and none to the gateway.
    gateway = _upstream.gateway(stage, upstream, before=LIMITED)
    with stage.watched(gateway.process):
        attackers = [_h2.Connection(gateway.port, window=1) for _ in range(3)]
        for attacker in attackers:
            attacker.request("/endless", STREAMS)
        time.sleep(HOLD)
    stage.alive(gateway)
    output = gateway.peer.output()
    stage.check("streams: it does not run out of descriptors", not any(text in output for text in EXHAUSTED), output[-300:])

    echo = Echo()
    proxy = _relay.proxy(stage, before=LIMITED)
    with stage.watched(proxy.process) as watch:
        clients = crowd(proxy, _relay.request(echo.port))
        time.sleep(HOLD)
    stage.cpu_within(watch, 10)
    finish(stage, "proxy", proxy, clients, b"\x05\x00\x05\x00", DESCRIPTORS // 6, b"\x05\x00\x05\x01")


if __name__ == "__main__":
    main(attack)
