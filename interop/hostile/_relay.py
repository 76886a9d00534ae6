"""Shared code of the attacks on the proxy and the tunnel: a destination, and honest clients."""

import asyncio
import json
import socket
import threading

from eyas_interop.hostile.stage import Server, Stage

# The time limit of one answer, in seconds.
TIMEOUT = 20
LOCALHOST = "127.0.0.1"


class Echo:
    """An echo server for any number of connections, in its own thread."""

    def __init__(self) -> None:
        self.port = 0
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True).start()
        if not self._ready.wait(TIMEOUT):
            raise RuntimeError("the echo server did not start")

    async def _run(self) -> None:
        server = await asyncio.start_server(self._serve, LOCALHOST, 0, backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()

    @staticmethod
    async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(4096):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


def proxy(stage: Stage, *flags: str, before: tuple[str, ...] = ()) -> Server:
    """Starts `eyas proxy` as the victim, with these words before the command."""
    peer = stage.start([*before, str(stage.eyas), "proxy", "--listen", f"{LOCALHOST}:0", "--json", "--memory", "none", *flags])
    peer.wait_until(lambda: peer.log.read_text().endswith("}\n"))
    line = next(line for line in peer.log.read_text().splitlines() if line.startswith("{"))
    return Server(peer, json.loads(line) | {"url": "socks5h:"}, [])


def request(port: int) -> bytes:
    """Returns a SOCKS5 request without a password for a port of this host, sent in one piece."""
    return b"\x05\x01\x00" + b"\x05\x01\x00\x01" + socket.inet_aton(LOCALHOST) + port.to_bytes(2, "big")


def echo_through_proxy(proxy_port: int, port: int) -> None:
    """Connects to the echo server through the proxy, and checks the echo."""
    with socket.create_connection((LOCALHOST, proxy_port), TIMEOUT) as client:
        client.sendall(request(port))
        client.sendall(b"there and back")
        expect(client, 2 + 10, b"\x05\x00\x05\x00")
        expect(client, 14, b"there and back")


def expect(client: socket.socket, length: int, begins: bytes) -> None:
    """Reads this many bytes, which must begin with `begins`."""
    received = b""
    while len(received) < length:
        more = client.recv(length - len(received))
        if not more:
            break
        received += more
    if len(received) < length or not received.startswith(begins):
        raise RuntimeError(f"received {received!r}")
