"""Connections that sit at the address of the metrics and ask nothing.

Whoever wants to know what the server does is answered all the same.
"""

import socket
import urllib.error
import urllib.request

from eyas_interop.hostile.stage import Stage, main

CONNECTIONS = 64
ASKED = 5
# For one answer, in seconds.
PATIENCE = 3


def attack(stage: Stage) -> None:
    server = stage.serve("--no-sctp", "--metrics", "0")
    port = int(server.metrics.rpartition(":")[2].partition("/")[0])
    idle, answered, why = [], 0, ""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with stage.attacked(server, ("/bytes/1000",), memory=40, descriptors=60):
        for _ in range(CONNECTIONS):
            idle.append(socket.create_connection(("127.0.0.1", port), PATIENCE))
        for _ in range(ASKED):
            try:
                with opener.open(server.metrics, timeout=PATIENCE) as page:
                    answered += b"eyas_requests_total" in page.read()
            except (urllib.error.URLError, OSError) as error:
                why = str(error)
    for connection in idle:
        connection.close()
    detail = f"{answered} of {ASKED} answered beside {len(idle)} idle connections {why}"
    stage.check("answers", answered == ASKED, detail)


if __name__ == "__main__":
    main(attack)
