"""`eyas serve --upstream https://…` in front of servers with HTTP/3, which then restart without it."""

import contextlib
import http.client
import json
import re
import sys
import threading
from collections.abc import Iterator

from .. import servers
from ..process import Peer
from ..world import World
from .case import for_each_server

# Where the servers listen, on the client's loopback.
HOST, PORT = "127.0.0.1", 4443
# Long enough for anything here, in seconds: the gateway gives up a silent connection after 10.
TIMEOUT = 40
# How each server names the versions.
NAMES = {"caddy": ("caddy HTTP/3.0", "caddy HTTP/2.0"), "hypercorn": ("hypercorn HTTP/3", "hypercorn HTTP/2")}


def start(world: World, peer: str, identity, http3: bool) -> Peer:
    """Starts a server, with HTTP/3 or without."""
    if peer == "caddy":
        configuration = servers.caddy_configuration(identity)
        server = configuration["apps"]["http"]["servers"]["main"]
        server["listen"] = [f"{HOST}:{PORT}"]
        server["protocols"] = ["h1", "h2", "h3"] if http3 else ["h1", "h2"]
        file = world.file("json")
        file.write_text(json.dumps(configuration))
        command = [str(world.binary("caddy")), "run", "--config", str(file)]
    else:
        command = [sys.executable, "-m", "hypercorn", "eyas_interop.hypercorn_app:app", "--bind", f"{HOST}:{PORT}"]
        command += ["--quic-bind", f"{HOST}:{PORT}"] if http3 else []
        command += ["--certfile", str(identity.chain), "--keyfile", str(identity.key)]
    started = servers.start(f"{peer}-{'h3' if http3 else 'h2'}", command, world.directory)
    return started.wait_until(lambda: servers.answers_tls(HOST, PORT))


@contextlib.contextmanager
def gateway(world: World) -> Iterator[int]:
    """Runs a gateway in the clear for the duration of a case, and gives its port."""
    command = [
        str(world.eyas_binary), "serve", "--plain", "--listen", "127.0.0.1:0", "--json", "--no-sctp",
        "--upstream", f"https://{HOST}:{PORT}", "--upstream-cacert", str(world.authority.file),
    ]
    running = Peer("eyas serve --upstream", command, world.file("log"))
    try:
        listening = lambda: re.search(r'"address": "127.0.0.1:(\d+)"', running.tail())
        running.wait_until(lambda: listening() is not None)
        yield int(listening().group(1))
    finally:
        running.stop()


def ask(port: int, method: str, body: bytes | None = None) -> str:
    """Returns the response to a request, or why there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request(method, "/", body)
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
        return text if response.status == 200 else f"{response.status} {text}"
    except OSError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()


def case_gateway_over_http3(world: World, peer: str) -> None:
    """Pages and a body over HTTP/3, and over HTTP/2 once there is no HTTP/3 any more."""
    check = world.report.check
    # The name is what `answers_tls` asks for.
    identity = world.authority.issue(f"loopback-{peer}", [HOST, "caddy.eyas.test"])
    (over_http3, over_http2), upload = NAMES[peer], b"x" * 3_000_000
    upstream = start(world, peer, identity, http3=True)
    try:
        with gateway(world) as port:
            # A busy machine may need another race to show it.
            for _ in range(3):
                page = ask(port, "GET")
                if page.startswith(over_http3):
                    break
            check(peer, "behind a gateway, over HTTP/3", page.startswith(f"{over_http3} GET"), page.strip())
            back = ask(port, "POST", upload)
            good = back.startswith(f"{over_http3} POST") and (peer == "caddy" or str(len(upload)) in back)
            check(peer, "a body, over HTTP/3", good, back.strip())
            upstream.stop()
            upstream = start(world, peer, identity, http3=False)
            pages: list[str] = []
            threads = [threading.Thread(target=lambda: pages.append(ask(port, "GET"))) for _ in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            good = len(pages) == 10 and all(page.startswith(f"{over_http2} GET") for page in pages)
            check(peer, "restarted without HTTP/3", good, str(sorted(set(pages))))
    finally:
        upstream.stop()


CASES = [*for_each_server(case_gateway_over_http3)]
