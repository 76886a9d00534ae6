"""Clients of `eyas serve --upstream` that request an endless response and do not read it.

The gateway then does not read from the upstream either, and other clients are served.
"""

import socket
import time
import urllib.request

import _upstream
from _relay import LOCALHOST, TIMEOUT
from eyas_interop.hostile.stage import Stage, main

CLIENTS = 200
# How long the upstream may take to fill all buffers on the way, in seconds, after which it sends nothing more.
FILLED = 30


def attack(stage: Stage) -> None:
    upstream = _upstream.start(stage)
    victim = _upstream.gateway(stage, upstream, "--plain")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def brief() -> None:
        with opener.open(f"http://{LOCALHOST}:{victim.port}/", timeout=TIMEOUT) as response:
            if response.read() != _upstream.BRIEF:
                raise RuntimeError("unexpected response")

    clients = []
    with stage.watched(victim.process) as watch:
        with stage.repeat(brief) as honest:
            for _ in range(CLIENTS):
                client = socket.create_connection((LOCALHOST, victim.port), TIMEOUT)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
                clients.append(client)
            before, after, deadline = -1, 0, time.monotonic() + FILLED
            while before != after and time.monotonic() < deadline:
                before = after
                time.sleep(2)
                after = _upstream.sent_by(upstream)
        for client in clients:
            client.close()
        gone = stage.wait_for_usage(victim.process, TIMEOUT, lambda usage: usage.descriptors < 100)
    stage.alive(victim)
    stage.check("their connections are closed", gone)
    stage.check("the upstream is not read for nobody", before == after, f"{after} bytes sent, {after - before} at the end")
    stage.memory_within(watch, 150)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
