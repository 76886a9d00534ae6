"""A WebSocket over HTTP/3 (RFC 9220), by the library aioquic: what arrives on its stream."""

import asyncio
import pathlib

from aioquic.asyncio.client import connect as connect_quic
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection, Setting
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent, StreamReset

from .websocket_h2 import TIMEOUT, Received, headers


class WebSocketClient(QuicConnectionProtocol):
    """Opens one WebSocket, sends bytes once it is open, and notes what arrives."""

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.received, self.ended, self.settings = Received(), asyncio.Event(), asyncio.Event()
        self.stream = None
        self.data = b""

    def quic_event_received(self, event: QuicEvent) -> None:
        for parsed in self.http.handle_event(event):
            self.handle(parsed)
        if self.http.received_settings is not None:
            self.settings.set()
        if isinstance(event, StreamReset) and event.stream_id == self.stream:
            self.end(f"reset {event.error_code:#x}")
        elif isinstance(event, ConnectionTerminated):
            self.end(f"closed {event.error_code:#x}")
            self.settings.set()

    def handle(self, event: H3Event) -> None:
        if isinstance(event, HeadersReceived):
            self.received.fields = dict(event.headers)
            self.received.status = self.received.fields[b":status"]
            # A refused one is over.
            if self.received.status == b"200":
                self.http.send_data(self.stream, self.data, end_stream=False)
                self.transmit()
        elif isinstance(event, DataReceived):
            self.received.bytes += event.data
        if isinstance(event, HeadersReceived | DataReceived) and event.stream_ended:
            self.end("ended")

    def end(self, how: str) -> None:
        self.received.end = self.received.end or how
        self.ended.set()

    async def run(self, head: list[tuple[str, str]], data: bytes) -> Received:
        """Sends the request, and returns what has arrived by its end."""
        await self.settings.wait()
        settings = self.http.received_settings or {}
        self.received.is_offered = settings.get(Setting.ENABLE_CONNECT_PROTOCOL) == 1
        if self.received.is_offered:
            self.data, self.stream = data, self._quic.get_next_available_stream_id()
            self.http.send_headers(self.stream, [(name.encode(), value.encode()) for name, value in head])
            self.transmit()
            await self.ended.wait()
        return self.received


def connect(
    port: int, authority: pathlib.Path, path: str, data: bytes, address: str = "127.0.0.1", name: str = "localhost",
    further: tuple[tuple[str, str], ...] = (), protocol: str = "websocket",
) -> Received:
    """Opens a WebSocket, sends this, and reads until its end."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name=name)
    configuration.load_verify_locations(cafile=str(authority))
    fields = [(key, protocol if key == ":protocol" else value) for key, value in headers(path, name)]

    async def run() -> Received:
        opened = connect_quic(address, port, configuration=configuration, create_protocol=WebSocketClient)
        async with asyncio.timeout(TIMEOUT), opened as client:
            return await client.run([*fields, *further], data)

    return asyncio.run(run())
