"""Idle connections to the metrics address that send no request.

Requests for the metrics are answered nevertheless.
"""

import socket
import urllib.error
import urllib.request

from eyas_interop.hostile.stage import Stage, main

CONNECTIONS = 64
REQUESTS = 5
# The time limit of one answer, in seconds.
TIMEOUT = 3


def attack(stage: Stage) -> None:
    server = stage.serve("--no-sctp", "--metrics", "0")
    port = int(server.metrics.rpartition(":")[2].partition("/")[0])
    idle, answered, error_text = [], 0, ""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with stage.attacked(server, ("/bytes/1000",), memory=40, descriptors=60):
        for _ in range(CONNECTIONS):
            idle.append(socket.create_connection(("127.0.0.1", port), TIMEOUT))
        for _ in range(REQUESTS):
            try:
                with opener.open(server.metrics, timeout=TIMEOUT) as page:
                    answered += b"eyas_requests_total" in page.read()
            except (urllib.error.URLError, OSError) as error:
                error_text = str(error)
    for connection in idle:
        connection.close()
    detail = f"{answered} of {REQUESTS} answered, with {len(idle)} idle connections {error_text}"
    stage.check("answers", answered == REQUESTS, detail)


if __name__ == "__main__":
    main(attack)
