"""HTTP/3 clients that request a large file on every available stream, and read some bytes of each.

Unread responses occupy few resources, and do not block other clients.
"""

import asyncio
import ssl

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent

from eyas_interop.hostile.stage import SMALL, SMALL_SIZE, Server, Stage, main

CONNECTIONS = 8
STREAMS = 120
# The window of each stream, in bytes: enough for the header of a response.
WINDOW = 1000
FILE = 64 * 1024 * 1024
# How long the streams are held, in seconds.
HOLD = 8


class NonReading(QuicConnectionProtocol):
    """Ignores all received data."""

    def quic_event_received(self, event: QuicEvent) -> None:
        pass


async def stall(server: Server) -> None:
    """Opens one connection that sends requests and reads nothing; PINGs keep it alive."""
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, max_stream_data=WINDOW
    )
    address = {"host": "127.0.0.1", "port": server.port}
    async with connect(**address, configuration=configuration, create_protocol=NonReading) as client:
        # aioquic would open the windows of streams by itself.
        client._quic._write_stream_limits = lambda **_: None
        http = H3Connection(client._quic)
        head = [
            (b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/large"),
        ]
        for _ in range(STREAMS):
            http.send_headers(client._quic.get_next_available_stream_id(), head, end_stream=True)
        client.transmit()
        for _ in range(HOLD):
            await asyncio.sleep(1)
            await client.ping()


async def stall_all(server: Server) -> list:
    attackers = (stall(server) for _ in range(CONNECTIONS))
    return await asyncio.gather(*attackers, return_exceptions=True)


def attack(stage: Stage) -> None:
    server = stage.serve("--no-sctp", files=stage.files(large=FILE, small=SMALL_SIZE))
    with stage.attacked(server, *SMALL, memory=80, descriptors=300):
        ended = asyncio.run(stall_all(server))
    held = sum(end is None for end in ended)
    stage.check("connections were held", held > 0, f"{held} of {CONNECTIONS} held")


if __name__ == "__main__":
    main(attack)
