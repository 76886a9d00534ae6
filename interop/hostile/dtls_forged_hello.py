"""Datagrams like the first of a DTLS handshake, forged from the address of an association in clear.

They know neither its tag nor its ports, and take nothing from it: a download goes on to its end.
"""

import tempfile
import threading
import time
from pathlib import Path

import _dtls
from eyas_interop.command import Command
from eyas_interop.hostile.stage import Stage, main

# What the client fetches, in bytes.
RESPONSE = 60_000_000
# After so many datagrams of the server the first is forged, in the middle of the response.
UNDER_WAY = 500
# How many are forged, and the pause between them in seconds.
FORGED = 50
PAUSE = 0.02


def forge(relay: _dtls.Relay, over: threading.Event) -> None:
    while relay.answers < UNDER_WAY and not over.wait(0.005):
        pass
    for number in range(FORGED):
        relay.forge(_dtls.client_hello() if number % 2 else _dtls.junk())
        if over.wait(PAUSE):
            return


def attack(stage: Stage) -> None:
    server = stage.serve()
    relay = _dtls.Relay(server.sctp_udp_port)
    over = threading.Event()
    forger = threading.Thread(target=forge, args=(relay, over), daemon=True)
    words = [
        "get", server.url(f"/bytes/{RESPONSE}"), "--memory", "none", "--output", "/dev/null", "--fail",
        "--json", "--http1.1", "--prefer", "sctp-udp", "--head-start", "2s", "--max-time", "35s",
        "--sctp-udp-port", str(relay.port), *server.trust,
    ]
    with (
        tempfile.TemporaryDirectory(prefix="eyas-client-") as home,
        stage.attacked(server, ("/bytes/200000", "--http2"), memory=60, descriptors=40, cpu=30),
    ):
        forger.start()
        begun = time.monotonic()
        ran = Command(stage.eyas, Path(home), []).run(*words)
        took = time.monotonic() - begun
        over.set()
        forger.join()
    transport = ran.json["connection"]["transport"] if ran.status == 0 else str(ran)
    whole = ran.status == 0 and transport == "sctp-udp"
    stage.check("the download came to its end", whole,
                f"{transport}, {took:.1f} s, {relay.answers} datagrams")


if __name__ == "__main__":
    main(attack)
