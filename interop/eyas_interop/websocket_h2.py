"""A WebSocket over HTTP/2 (RFC 8441), by the library h2: what is heard on its stream."""

import pathlib
import socket
import ssl

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RemoteSettingsChanged, ResponseReceived, StreamEnded, StreamReset

# Nothing here takes so long, in seconds.
WITHIN = 30


class Heard:
    """The response to an extended CONNECT, and all that came on its stream."""

    def __init__(self) -> None:
        self.is_offered = False
        self.status = b""
        self.bytes = b""
        self.end = ""


def connect(port: int, authority: pathlib.Path, path: str, says: bytes) -> Heard:
    """Opens one, says this, and listens to the end."""
    context = ssl.create_default_context(cafile=str(authority))
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", port), timeout=WITHIN) as tcp:
        with context.wrap_socket(tcp, server_hostname="localhost") as tls:
            return speak(tls, H2Connection(H2Configuration(header_encoding=None)), path, says)


def speak(tls: ssl.SSLSocket, connection: H2Connection, path: str, says: bytes) -> Heard:
    """The same over a connection of TLS."""
    heard, stream = Heard(), 0
    connection.initiate_connection()
    while not heard.end:
        tls.sendall(connection.data_to_send())
        for event in connection.receive_data(tls.recv(65536)):
            if isinstance(event, RemoteSettingsChanged) and not stream:
                heard.is_offered = connection.remote_settings.enable_connect_protocol == 1
                if not heard.is_offered:
                    return heard
                stream = connection.get_next_available_stream_id()
                connection.send_headers(stream, head(path))
            elif isinstance(event, ResponseReceived):
                heard.status = dict(event.headers)[b":status"]
                connection.send_data(stream, says)
            elif isinstance(event, DataReceived):
                heard.bytes += event.data
                connection.acknowledge_received_data(event.flow_controlled_length, stream)
            elif isinstance(event, StreamEnded):
                heard.end = "ended"
            elif isinstance(event, StreamReset):
                heard.end = "reset"
    return heard


def head(path: str) -> list[tuple[str, str]]:
    """Extended CONNECT (RFC 8441 §5)."""
    return [
        (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"), (":path", path),
        (":authority", "localhost"), ("sec-websocket-version", "13"),
    ]
