"""A client of HTTP/2 that sends what it is told to, right or not."""

import socket
import ssl
import struct
import time
from collections.abc import Iterable

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS, PING, WINDOW_UPDATE = 1, 4, 6, 8
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4
# For anything that must happen at all, in seconds.
PATIENCE = 20


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """RFC 9113 §4.1."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class Connection:
    """A connection under TLS with an initial window of so many bytes for each response."""

    def __init__(self, port: int, window: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        tcp = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.tls = context.wrap_socket(tcp, server_hostname="localhost")
        self.encoder = hpack.Encoder()
        self.next = 1
        # Bytes of HTTP/2 sent so far.
        self.sent = 0
        self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window)))

    def send(self, data: bytes) -> None:
        """Sends bytes; a server that has closed is no error."""
        try:
            self.tls.sendall(data)
            self.sent += len(data)
        except OSError:
            pass

    def ask(self, path: str, streams: int) -> None:
        """GET on so many new streams."""
        head = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        asked = b""
        for _ in range(streams):
            asked += frame(HEADERS, END_STREAM | END_HEADERS, self.next, self.encoder.encode(head))
            self.next += 2
        self.send(asked)

    def ping(self) -> None:
        """A sign of life that takes nothing of any response."""
        self.send(frame(PING, 0, 0, b"8 octets"))

    def widen(self, stream: int, by: int) -> None:
        """Opens the window of a stream, or that of the connection, which is stream 0."""
        self.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by)))


def hold(connections: Iterable[Connection], seconds: float) -> None:
    """Keeps connections for so long, with a sign of life each second."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(1)
        for connection in connections:
            connection.ping()
