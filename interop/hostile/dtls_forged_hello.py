"""Datagrams like the first of a DTLS handshake, with the source address of an unencrypted association.

They contain neither its tag nor its ports, and must not disturb it: a download completes.
"""

import tempfile
import threading
import time
from pathlib import Path

import _dtls
from eyas_interop.command import Command
from eyas_interop.hostile.stage import Stage, main

# The size of the client's download, in bytes.
RESPONSE = 60_000_000
# The number of the server's datagrams before the first forged one, during the response.
GENUINE_DATAGRAMS = 500
# The number of forged datagrams, and the pause between them, in seconds.
FORGED_DATAGRAMS = 50
PAUSE = 0.02


def forge(relay: _dtls.Relay, stop: threading.Event) -> None:
    while relay.answers < GENUINE_DATAGRAMS and not stop.wait(0.005):
        pass
    for number in range(FORGED_DATAGRAMS):
        relay.forge(_dtls.client_hello() if number % 2 else _dtls.junk())
        if stop.wait(PAUSE):
            return


def attack(stage: Stage) -> None:
    server = stage.serve()
    relay = _dtls.Relay(server.sctp_udp_port)
    stop = threading.Event()
    forger = threading.Thread(target=forge, args=(relay, stop), daemon=True)
    arguments = [
        "get", server.url(f"/bytes/{RESPONSE}"), "--memory", "none", "--output", "/dev/null", "--fail",
        "--json", "--http1.1", "--prefer", "sctp-udp", "--head-start", "2s", "--max-time", "35s",
        "--sctp-udp-port", str(relay.port), *server.trust,
    ]
    with (
        tempfile.TemporaryDirectory(prefix="eyas-client-") as home,
        stage.attacked(server, ("/bytes/200000", "--http2"), memory=60, descriptors=40, cpu=30),
    ):
        forger.start()
        start = time.monotonic()
        completed = Command(stage.eyas, Path(home), []).run(*arguments)
        elapsed = time.monotonic() - start
        stop.set()
        forger.join()
    transport = completed.json["connection"]["transport"] if completed.status == 0 else str(completed)
    complete = completed.status == 0 and transport == "sctp-udp"
    stage.check("the download completed", complete,
                f"{transport}, {elapsed:.1f} s, {relay.answers} datagrams")


if __name__ == "__main__":
    main(attack)
