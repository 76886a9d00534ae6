"""Datagrams that look like the first of a DTLS handshake, and a relay that can insert some among a client's."""

import secrets
import socket
import struct
import threading


def junk() -> bytes:
    """Returns the shortest datagram that ever opened a session: the header of a handshake record, and zeros."""
    return b"\x16\xfe\xfd" + bytes(28)


def _extension(kind: int, content: bytes) -> bytes:
    return struct.pack(">HH", kind, len(content)) + content


def client_hello() -> bytes:
    """Returns a valid ClientHello without a cookie, for DTLS 1.3 (RFC 9147 §5.3) and 1.2."""
    key = b"\x00\x1d\x00\x20" + secrets.token_bytes(32)
    extensions = b"".join([
        _extension(43, b"\x04\xfe\xfc\xfe\xfd"),
        _extension(10, b"\x00\x02\x00\x1d"),
        _extension(51, struct.pack(">H", len(key)) + key),
        _extension(13, b"\x00\x02\x04\x03"),
        _extension(23, b""),
    ])
    body = b"\xfe\xfd" + secrets.token_bytes(32) + b"\x00\x00" + b"\x00\x04\x13\x01\xc0\x2b" + b"\x01\x00"
    body += struct.pack(">H", len(extensions)) + extensions
    length = struct.pack(">I", len(body))[1:]
    message = b"\x01" + length + bytes(5) + length + body
    return b"\x16\xfe\xfd" + bytes(8) + struct.pack(">H", len(message)) + message


class Relay:
    """Relays one client's datagrams to a server and back, so that the attacker can send from the client's address."""

    def __init__(self, server: int) -> None:
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for side in (self.front, self.back):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            side.bind(("127.0.0.1", 0))
        self.back.connect(("127.0.0.1", server))
        self.port = self.front.getsockname()[1]
        self.client: tuple[str, int] | None = None
        # Datagrams that the server has sent.
        self.answers = 0
        for run in (self._forward, self._return):
            threading.Thread(target=run, daemon=True).start()

    def forge(self, datagram: bytes) -> None:
        """Sends a datagram to the server as if it were the client's."""
        self.back.send(datagram)

    def _forward(self) -> None:
        while True:
            data, self.client = self.front.recvfrom(65536)
            try:
                self.back.send(data)
            except OSError:
                # Equivalent to a lost packet.
                continue

    def _return(self) -> None:
        while True:
            try:
                data = self.back.recv(65536)
            except OSError:
                continue
            self.answers += 1
            if self.client:
                self.front.sendto(data, self.client)
