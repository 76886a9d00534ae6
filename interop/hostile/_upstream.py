"""A web server behind a gateway, in a process of its own, so that it does not take the CPU time of the attack's other
parts: `/endless` has a response without end, `/sent` tells how many bytes of these were sent, and everything else has a
short one."""

import asyncio
import pathlib
import socket
import sys
import urllib.request

from _relay import LOCALHOST, TIMEOUT
from eyas_interop.hostile.stage import Server, Stage

BRIEF = b"brief"
HEAD = "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n"
ENDLESS = 1 << 40
PIECE = 65_536
# Bytes of endless responses that were passed to the kernel.
sent = 0


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    global sent
    # Little waits in the kernel, so that sending ends soon after the gateway stops reading.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
    try:
        while request := await reader.readuntil(b"\r\n\r\n"):
            if not request.startswith(b"GET /endless"):
                body = str(sent).encode() if request.startswith(b"GET /sent") else BRIEF
                writer.write(HEAD.format(len(body)).encode() + body)
                await writer.drain()
                continue
            writer.write(HEAD.format(ENDLESS).encode())
            while True:
                writer.write(b"x" * PIECE)
                await writer.drain()
                sent += PIECE
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()


async def _run() -> None:
    server = await asyncio.start_server(_serve, LOCALHOST, 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def start(stage: Stage) -> str:
    """Starts it, and returns its URL."""
    peer = stage.start([sys.executable, str(pathlib.Path(__file__))])
    peer.wait_until(lambda: peer.output().endswith("\n"))
    return f"http://{LOCALHOST}:{int(peer.output())}"


def sent_by(url: str) -> int:
    """Returns how many bytes of endless responses it has sent."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/sent", timeout=TIMEOUT) as response:
        return int(response.read())


def gateway(stage: Stage, upstream: str, *flags: str, before: tuple[str, ...] = ()) -> Server:
    """Starts `eyas serve` in front of it, with these words before the command."""
    peer = stage.start([*before, str(stage.eyas), "serve", "--listen", f"{LOCALHOST}:0", "--json", "--no-sctp",
                        "--upstream", upstream, *flags])
    peer.wait_until(lambda: peer.log.read_text().rstrip().endswith("}"))
    return stage.listening_server(peer)


if __name__ == "__main__":
    asyncio.run(_run())
