"""Connections that block, with the words of socket."""

from __future__ import annotations

import io
import socket
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from . import _endpoint, _native
from ._closing import Closing
from ._reports import ConnectionInfo, Race
from ._endpoint import Endpoint, Verify
from ._target import Target, address
from ._timeout import CallLimit

if TYPE_CHECKING:
    from typing_extensions import Buffer


def create_connection(
    place: tuple[str, int],
    timeout: float | None = None,
    *,
    tls: bool = True,
    transports: Sequence[str] | None = None,
    alpn: Sequence[str] = (),
    server_hostname: str | None = None,
    sctp_udp_port: int | None = None,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> Connection:
    """Races to a host and port, as `socket.create_connection` connects to one.

    `transports` are those that the peer may be reached over, most wanted first: QUIC and TCP unless
    said, TCP alone without `tls`. `alpn` are the application protocols to offer, `server_hostname` is
    whom the certificate has to name if not the host, `sctp_udp_port` the peer's UDP port for SCTP inside
    UDP. `timeout` bounds the race, and then each call.
    """
    native = _endpoint.of(endpoint, verify)._native
    target = Target.of(place, transports, tls, alpn, server_hostname, timeout, sctp_udp_port)
    connection = Connection(_native.connect(native, target))
    connection.settimeout(timeout)
    return connection


class Connection(CallLimit, Closing):
    """A connection over whichever transport won, to be used like a socket.

    One thread may read while another one writes.
    """

    def __init__(self, raw: _native.RawConnection) -> None:
        self._raw = raw

    @property
    def info(self) -> ConnectionInfo:
        """What it is, where it runs, and why it was chosen."""
        return ConnectionInfo._of(self._raw.info())

    @property
    def race(self) -> Race:
        """The race that led to it, as far as it has run by now; one that was accepted has none."""
        text = self._raw.race()
        if text is None:
            raise LookupError("the connection was accepted here, and the race was its peer's")
        return Race._of(text)

    def recv(self, size: int) -> bytes:
        """At least a byte and at most so many; nothing at the end."""
        if size < 0:
            raise ValueError("the size of what is read is not negative")
        return self._raw.read(size, self._timeout) if size else b""

    def recv_into(self, buffer: Buffer, size: int = 0) -> int:
        """Reads into a buffer, and says how much."""
        view = memoryview(buffer).cast("B")
        data = self.recv(size or len(view))
        view[: len(data)] = data
        return len(data)

    def sendall(self, data: Buffer) -> None:
        """Writes all of it."""
        self._raw.write(bytes(data), self._timeout)

    def send(self, data: Buffer) -> int:
        """Writes all of it, and says how much that was."""
        whole = bytes(data)
        self._raw.write(whole, self._timeout)
        return len(whole)

    def shutdown(self, how: int = socket.SHUT_WR) -> None:
        """Tells the peer that nothing more comes; with `SHUT_WR` what it says can still be read."""
        if how == socket.SHUT_RD:
            raise ValueError("reading ends with the connection: close it, or shut down writing")
        self._raw.shut_down()

    def close(self) -> None:
        """Closes it, once a call that is under way in another thread has come to its end.

        Over QUIC it waits for the peer to be done, one that was accepted for the peer to close it, two
        seconds at most: what is under way would be lost with the connection.
        """
        self._raw.close()

    def getpeername(self) -> tuple[str, int] | None:
        """The peer's address and port."""
        return address(self.info.remote)

    def getsockname(self) -> tuple[str, int] | None:
        """Our address and port, where the transport tells."""
        return address(self.info.local)

    def makefile(
        self,
        mode: str = "r",
        buffering: int = -1,
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """A file of it, as `socket.makefile` makes one; closing the file leaves it open."""
        if not set(mode) <= set("rwb") or len(set(mode)) != len(mode):
            raise ValueError(f"a mode is made of r, w and b, and {mode!r} is not")
        reads, writes = "r" in mode or "w" not in mode, "w" in mode
        raw = _Raw(self, reads, writes)
        size = io.DEFAULT_BUFFER_SIZE if buffering < 0 else buffering
        if size == 0:
            if "b" not in mode:
                raise ValueError("text needs a buffer")
            return cast("IO[bytes]", raw)
        buffer: Any
        if reads and writes:
            buffer = io.BufferedRWPair(raw, raw, size)
        elif reads:
            buffer = io.BufferedReader(raw, size)
        else:
            buffer = io.BufferedWriter(raw, size)
        if "b" in mode:
            return cast("IO[bytes]", buffer)
        return io.TextIOWrapper(buffer, encoding, errors, newline)

    def _leave(self, error: BaseException | None) -> None:
        self.close()

    def __repr__(self) -> str:
        info = self.info
        return f"<eyas.Connection {info.transport} to {info.remote}>"


class _Raw(io.RawIOBase):
    """A connection as an unbuffered file."""

    def __init__(self, connection: Connection, reads: bool, writes: bool) -> None:
        self._connection, self._reads, self._writes = connection, reads, writes

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return self._writes

    def readinto(self, buffer: Buffer) -> int:
        if not self._reads:
            raise io.UnsupportedOperation("this file is not for reading")
        return self._connection.recv_into(buffer)

    def write(self, data: Buffer) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("this file is not for writing")
        return self._connection.send(data)
