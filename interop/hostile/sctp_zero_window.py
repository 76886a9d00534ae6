"""SCTP clients that ask for a response, tell the server of a window of zero, and answer its probes.

What they are owed takes memory within a budget, however many they are, and they count against the
connections that one address may have until the last byte of it is gone, the HTTP side being done or not.
"""

import urllib.request

import _sctp
from eyas_interop.hostile.stage import Server, Stage, main

# More than one address may have, by default 2,048.
ASSOCIATIONS = 3600
# Begun at a time.
AT_ONCE = 20
# Fits the send buffer of an association, so that the HTTP side is done with it at once.
RESPONSE = 900_000
# How long they are held, in seconds.
HOLD = 12
REQUEST = f"GET /bytes/{RESPONSE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
PORTS = range(10_000, 10_000 + ASSOCIATIONS)


def gauge(server: Server, name: str) -> float:
    """A figure that the server tells of itself."""
    text = urllib.request.urlopen(server.metrics, timeout=20).read().decode()
    return float(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[1])


def attack(stage: Stage) -> None:
    # In clear: the attack is one below TLS, and Python has none for SCTP.
    server = stage.serve("--plain", "--metrics", "0")
    crowd = _sctp.Crowd(server.sctp_udp_port, server.port, REQUEST)
    # Budgets of 256 MiB for SCTP and 128 MiB for HTTP, 64 KiB for each association in any case, and
    # what keeping them costs. Without budgets they took 900 kB each, more than 3 GB.
    with stage.attacked(server, ("/bytes/200000",), memory=800, descriptors=60, cpu=30):
        for _ in range(2):
            # Who got no answer asks again.
            missing = [port for port in PORTS if port not in crowd.theirs]
            for begin in range(0, len(missing), AT_ONCE):
                for port in missing[begin:begin + AT_ONCE]:
                    crowd.open(port)
                crowd.serve(0.05)
            crowd.serve(3)
        crowd.serve(HOLD)
        held = gauge(server, "eyas_sctp_associations")
    print(f"      {stage.name}: {len(crowd.theirs)} opened with {crowd.sent / 1000:.0f} kB, "
          f"{len(crowd.aborted)} aborted", flush=True)
    stage.within("associations that were not opened", ASSOCIATIONS - len(crowd.theirs), 50)
    stage.within("associations held for one address", held, 2048)


if __name__ == "__main__":
    main(attack)
