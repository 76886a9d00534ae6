"""A client of HTTP/2 that sends what it is told to, right or not."""

import socket
import ssl
import struct
import time
from collections.abc import Iterable

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4
# Why a stream is reset: it is no longer wanted (RFC 9113 §7).
CANCEL = 8
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
        # Whether the server has taken all of it.
        self.is_open = True
        self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window)))

    def send(self, data: bytes) -> None:
        """Sends bytes; a server that has closed is no error."""
        try:
            self.tls.sendall(data)
            self.sent += len(data)
        except OSError:
            self.is_open = False

    def ask(self, path: str, streams: int) -> None:
        """GET on so many new streams."""
        self.send(b"".join(self._heads(path, streams)))

    def ask_and_reset(self, path: str, streams: int) -> None:
        """GET on so many new streams, each taken back in the next frame."""
        heads = self._heads(path, streams)
        self.send(b"".join(head + self._taken_back(self.next - 2 * (streams - number))
                           for number, head in enumerate(heads)))

    def reset(self, stream: int) -> None:
        """Takes a request back."""
        self.send(self._taken_back(stream))

    def goaway(self) -> int | None:
        """Why the server ended the connection, once it has."""
        said = b""
        try:
            while piece := self.tls.recv(65_536):
                said += piece
        except OSError:
            pass
        while len(said) >= 9:
            length, kind = int.from_bytes(said[:3], "big"), said[3]
            if kind == GOAWAY:
                return int.from_bytes(said[13:17], "big")
            said = said[9 + length:]
        return None

    def _heads(self, path: str, streams: int) -> list[bytes]:
        head = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        heads = []
        for _ in range(streams):
            heads.append(frame(HEADERS, END_STREAM | END_HEADERS, self.next, self.encoder.encode(head)))
            self.next += 2
        return heads

    @staticmethod
    def _taken_back(stream: int) -> bytes:
        return frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL))

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
