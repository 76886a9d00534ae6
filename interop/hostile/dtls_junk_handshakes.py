"""Two thousand first datagrams of DTLS handshakes a second, from many addresses and ports.

Nothing is kept of who has not shown where it is: honest handshakes take no longer than before.
"""

import socket
import subprocess
import threading
import time

import _dtls
from eyas_interop.hostile.stage import Server, Stage, main

# Datagrams a second, and for how long, in seconds.
RATE = 2000
DURATION = 12
SOCKETS = 400
# Connections before the attack, to compare with.
BEFORE = 5
# A client gets this long, in seconds.
PATIENCE = 20


def connect(stage: Stage, server: Server) -> float:
    """Opens an association inside DTLS and ends it; how long it took, in seconds."""
    begun = time.monotonic()
    command = [str(stage.eyas), "pipe", "--memory", "none", "--messages", "-v", "-k",
               "--sctp-udp-port", str(server.sctp_udp_port), f"sctp-udp://127.0.0.1:{server.port}"]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
                         check=False)
    if ran.returncode or b"under dtls" not in ran.stderr:
        raise RuntimeError(f"status {ran.returncode}: {ran.stderr[-300:]!r}")
    return time.monotonic() - begun


def flood(port: int, over: threading.Event) -> None:
    sockets = []
    for number in range(SOCKETS):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind((f"127.0.{1 + number % 20}.{2 + number // 20}", 0))
        one.setblocking(False)
        sockets.append(one)
    begun, sent = time.monotonic(), 0
    while not over.wait(0.005):
        while sent < (time.monotonic() - begun) * RATE:
            datagram = _dtls.client_hello() if sent % 2 else _dtls.junk()
            try:
                sockets[sent % SOCKETS].sendto(datagram, ("127.0.0.1", port))
            except OSError:
                # As good as lost on the way.
                pass
            sent += 1


def attack(stage: Stage) -> None:
    server = stage.serve()
    before = [connect(stage, server) for _ in range(BEFORE)]
    over = threading.Event()
    attacker = threading.Thread(target=flood, args=(server.sctp_udp_port, over), daemon=True)
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
        over.set()
        attacker.join()
    detail = failed or f"{len(during)} connected"
    stage.check("honest clients", bool(during) and not failed, detail)
    # A handshake that loses a flight waits a second for it, and another for the next.
    stage.within("the slowest honest client", max(during, default=PATIENCE), 2 * max(before) + 2, "s")


if __name__ == "__main__":
    main(attack)
