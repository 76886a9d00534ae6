"""SCTP clients that request a response, announce a zero window, and answer the server's probes.

Their pending responses stay within a memory budget, however many they are, and they count against the
limit of connections per address until the last byte is sent, even if HTTP has finished with them.
"""

import urllib.request

import _sctp
from eyas_interop.hostile.stage import Server, Stage, main

# More than the default limit of 2,048 per address.
ASSOCIATIONS = 3600
# Opened at a time.
CONCURRENT_HANDSHAKES = 20
# Fits the send buffer of an association, so that HTTP finishes with it at once.
RESPONSE = 900_000
# How long they are held, in seconds.
HOLD = 12
REQUEST = f"GET /bytes/{RESPONSE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
PORTS = range(10_000, 10_000 + ASSOCIATIONS)


def gauge(server: Server, name: str) -> float:
    """Returns a metric of the server."""
    text = urllib.request.urlopen(server.metrics, timeout=20).read().decode()
    return float(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[1])


def attack(stage: Stage) -> None:
    # Without TLS: the attack is below TLS, and Python has no TLS over SCTP.
    server = stage.serve("--plain", "--metrics", "0")
    crowd = _sctp.Crowd(server.sctp_udp_port, server.port, REQUEST)
    # One address has a quarter of SCTP's 256 MiB, and half of that again as the minimum of each
    # association; then there are 30 kB of HTTP for each. Without bounds they took 900 kB each, more
    # than 3 GB.
    with stage.attacked(server, ("/bytes/200000",), memory=300, descriptors=60, cpu=30):
        for _ in range(2):
            # Repeats the unanswered ones.
            missing = [port for port in PORTS if port not in crowd.theirs]
            for begin in range(0, len(missing), CONCURRENT_HANDSHAKES):
                for port in missing[begin:begin + CONCURRENT_HANDSHAKES]:
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
