"""A WebSocket over HTTP/2 (RFC 8441), by the library h2: what arrives on its stream."""

import pathlib
import socket
import ssl

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RemoteSettingsChanged, ResponseReceived, StreamEnded, StreamReset

# The time limit of a socket operation, in seconds.
TIMEOUT = 30


class Received:
    """The response to an extended CONNECT, and everything that arrived on its stream."""

    def __init__(self) -> None:
        self.is_offered = False
        self.status = b""
        self.fields: dict[bytes, bytes] = {}
        self.bytes = b""
        self.end = ""


def connect(
    port: int, authority: pathlib.Path, path: str, data: bytes, address: str = "127.0.0.1", name: str = "localhost",
) -> Received:
    """Opens a WebSocket, sends this, and reads until its end."""
    context = ssl.create_default_context(cafile=str(authority))
    context.set_alpn_protocols(["h2"])
    with socket.create_connection((address, port), timeout=TIMEOUT) as tcp:
        with context.wrap_socket(tcp, server_hostname=name) as tls:
            return run(tls, H2Connection(H2Configuration(header_encoding=None)), headers(path, name), data)


def run(tls: ssl.SSLSocket, connection: H2Connection, head: list[tuple[str, str]], data: bytes) -> Received:
    """The same, over a TLS connection."""
    received, stream = Received(), 0
    connection.initiate_connection()
    while not received.end:
        tls.sendall(connection.data_to_send())
        for event in connection.receive_data(tls.recv(65536)):
            if isinstance(event, RemoteSettingsChanged) and not stream:
                received.is_offered = connection.remote_settings.enable_connect_protocol == 1
                if not received.is_offered:
                    return received
                stream = connection.get_next_available_stream_id()
                connection.send_headers(stream, head)
            elif isinstance(event, ResponseReceived):
                received.fields = dict(event.headers)
                received.status = received.fields[b":status"]
                connection.send_data(stream, data)
            elif isinstance(event, DataReceived):
                received.bytes += event.data
                connection.acknowledge_received_data(event.flow_controlled_length, stream)
            elif isinstance(event, StreamEnded):
                received.end = "ended"
            elif isinstance(event, StreamReset):
                received.end = "reset"
    return received


def headers(path: str, name: str) -> list[tuple[str, str]]:
    """Extended CONNECT (RFC 8441 §5)."""
    return [
        (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"), (":path", path),
        (":authority", name), ("sec-websocket-version", "13"),
    ]
