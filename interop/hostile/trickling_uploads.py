"""Trickling uploads from three addresses, on as many connections as the server accepts.

Some connection slots remain for others.
"""

import contextlib
import resource
import socket
import threading
import time

from eyas_interop.hostile.stage import Stage, main

# The server's limit of connections.
CONNECTIONS = 4096
ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
HEAD = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
# How long the uploads continue, in seconds.
HOLD = 8
TIMEOUT = 5


def open_uploads(address: str, port: int, count: int, into: list[socket.socket]) -> None:
    """Opens connections from an address and starts an upload on each."""
    for _ in range(count):
        with contextlib.suppress(OSError):
            upload = socket.create_connection(("127.0.0.1", port), TIMEOUT, source_address=(address, 0))
            upload.sendall(HEAD)
            into.append(upload)


def attack(stage: Stage) -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    each = min(CONNECTIONS, (limit - 100)) // len(ADDRESSES) + 1
    server = stage.serve("--no-sctp", "--plain")
    uploads: list[socket.socket] = []
    with stage.watched(server.process) as watch:
        threads = [
            threading.Thread(target=open_uploads, args=(address, server.port, each, uploads)) for address in ADDRESSES
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with stage.honest(server, "/bytes/1000") as honest:
            until = time.monotonic() + HOLD
            while time.monotonic() < until:
                for upload in uploads:
                    with contextlib.suppress(OSError):
                        upload.send(b"x")
                time.sleep(1)
    for upload in uploads:
        upload.close()
    stage.alive(server)
    stage.within("connection slots taken", watch.grown_descriptors, CONNECTIONS - 300)
    stage.memory_within(watch, 300)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
