"""What attacks on the proxy and the tunnel share: where they lead to, and who uses them honestly."""

import asyncio
import json
import socket
import threading

from eyas_interop.hostile.stage import Server, Stage

# For one answer, in seconds.
PATIENCE = 20
LOCALHOST = "127.0.0.1"


class Echo:
    """Says back what it hears, on as many connections as there are, in a thread of its own."""

    def __init__(self) -> None:
        self.port = 0
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True).start()
        if not self._ready.wait(PATIENCE):
            raise RuntimeError("no echo")

    async def _run(self) -> None:
        server = await asyncio.start_server(self._serve, LOCALHOST, 0, backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()

    @staticmethod
    async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while said := await reader.read(4096):
                writer.write(said)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


def proxy(stage: Stage, *flags: str) -> Server:
    """Starts `eyas proxy`, to be attacked."""
    peer = stage.start([str(stage.eyas), "proxy", "--listen", f"{LOCALHOST}:0", "--json", "--memory", "none", *flags])
    peer.wait_until(lambda: peer.log.read_text().endswith("}\n"))
    return Server(peer, json.loads(peer.log.read_text().splitlines()[0]) | {"url": "socks5h:"}, [])


def request(port: int) -> bytes:
    """SOCKS5 without a password, and what it asks for at once: a port of this host."""
    return b"\x05\x01\x00" + b"\x05\x01\x00\x01" + socket.inet_aton(LOCALHOST) + port.to_bytes(2, "big")


def converse(proxy_port: int, port: int) -> None:
    """Asks for the echo by the proxy, and hears it."""
    with socket.create_connection((LOCALHOST, proxy_port), PATIENCE) as client:
        client.sendall(request(port))
        client.sendall(b"there and back")
        hear(client, 2 + 10, b"\x05\x00\x05\x00")
        hear(client, 14, b"there and back")


def hear(client: socket.socket, length: int, begins: bytes) -> None:
    """Reads so many bytes, which have to begin so."""
    heard = b""
    while len(heard) < length:
        more = client.recv(length - len(heard))
        if not more:
            break
        heard += more
    if len(heard) < length or not heard.startswith(begins):
        raise RuntimeError(f"heard {heard!r}")
