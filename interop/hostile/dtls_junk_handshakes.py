"""Two thousand first datagrams of DTLS handshakes per second, from many addresses and ports.

The server keeps no state for unverified addresses: honest handshakes take no longer than before.
"""

import socket
import subprocess
import threading
import time

import _dtls
from eyas_interop.hostile.stage import Server, Stage, main

# Datagrams per second, and the duration in seconds.
RATE = 2000
DURATION = 12
SOCKETS = 400
# The number of connections before the attack, for comparison.
BASELINE_CONNECTIONS = 5
# The time limit of a client, in seconds.
TIMEOUT = 20


def connect(stage: Stage, server: Server) -> float:
    """Opens an association inside DTLS and ends it; returns the duration in seconds."""
    start = time.monotonic()
    command = [str(stage.eyas), "pipe", "--memory", "none", "--messages", "-v", "-k",
               "--sctp-udp-port", str(server.sctp_udp_port), f"sctp-udp://127.0.0.1:{server.port}"]
    completed = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT,
                               check=False)
    if completed.returncode or b"under dtls" not in completed.stderr:
        raise RuntimeError(f"status {completed.returncode}: {completed.stderr[-300:]!r}")
    return time.monotonic() - start


def flood(port: int, stop: threading.Event) -> None:
    sockets = []
    for number in range(SOCKETS):
        source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        source.bind((f"127.0.{1 + number % 20}.{2 + number // 20}", 0))
        source.setblocking(False)
        sockets.append(source)
    start, sent = time.monotonic(), 0
    while not stop.wait(0.005):
        while sent < (time.monotonic() - start) * RATE:
            datagram = _dtls.client_hello() if sent % 2 else _dtls.junk()
            try:
                sockets[sent % SOCKETS].sendto(datagram, ("127.0.0.1", port))
            except OSError:
                # Equivalent to a lost packet.
                pass
            sent += 1


def attack(stage: Stage) -> None:
    server = stage.serve()
    before = [connect(stage, server) for _ in range(BASELINE_CONNECTIONS)]
    stop = threading.Event()
    attacker = threading.Thread(target=flood, args=(server.sctp_udp_port, stop), daemon=True)
    during: list[float] = []
    failed = ""
    with stage.attacked(server, memory=40, descriptors=20, cpu=8):
        attacker.start()
        until = time.monotonic() + DURATION
        while time.monotonic() < until and not failed:
            try:
                during.append(connect(stage, server))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed = str(error)
        stop.set()
        attacker.join()
    detail = failed or f"{len(during)} connected"
    stage.check("honest clients", bool(during) and not failed, detail)
    # A handshake waits one second for each lost flight; two may be lost.
    stage.within("the slowest honest client", max(during, default=TIMEOUT), 2 * max(before) + 2, "s")


if __name__ == "__main__":
    main(attack)
