"""Clients of `eyas serve --upstream` that request an endless response and do not read it.

The gateway then does not read from the upstream either, and other clients are served.
"""

import contextlib
import socket
import threading
import time
import urllib.request

from _relay import LOCALHOST, TIMEOUT
from eyas_interop.hostile.stage import Stage, main

CLIENTS = 400
# How long the connections are held, in seconds.
HOLD = 6
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
ENDLESS = 1 << 40


def upstream() -> int:
    """Starts a web server whose response to `/endless` does not end; returns its port."""
    listener = socket.create_server((LOCALHOST, 0), backlog=1024)

    def serve(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while request := client.recv(4096):
                if request.startswith(b"GET /endless"):
                    client.sendall(HEAD % ENDLESS)
                    while True:
                        client.sendall(b"x" * 65536)
                client.sendall(HEAD % 5 + b"brief")

    def accept() -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def attack(stage: Stage) -> None:
    peer = stage.start([str(stage.eyas), "serve", "--listen", f"{LOCALHOST}:0", "--json", "--no-sctp", "--plain",
                        "--upstream", f"http://{LOCALHOST}:{upstream()}"])
    peer.wait_until(lambda: peer.log.read_text().rstrip().endswith("}"))
    victim = stage.listening_server(peer)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def brief() -> None:
        with opener.open(f"http://{LOCALHOST}:{victim.port}/", timeout=TIMEOUT) as response:
            if response.read() != b"brief":
                raise RuntimeError("unexpected response")

    clients = []
    with stage.watched(victim.process) as watch:
        with stage.repeat(brief) as honest:
            for _ in range(CLIENTS):
                client = socket.create_connection((LOCALHOST, victim.port), TIMEOUT)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
                clients.append(client)
            time.sleep(HOLD)
        for client in clients:
            client.close()
        gone = stage.wait_for_usage(victim.process, TIMEOUT, lambda usage: usage.descriptors < 100)
    stage.alive(victim)
    stage.check("their connections are closed", gone)
    stage.memory_within(watch, 150)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
