"""Blocking connections, with the API of socket."""

from __future__ import annotations

import io
import socket
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from . import _endpoint, _native
from ._context import ContextManager
from ._reports import ConnectionInfo, Race
from ._endpoint import Endpoint, Verify
from ._target import Target, address
from ._timeout import CallLimit

if TYPE_CHECKING:
    from typing_extensions import Buffer


def create_connection(
    address: tuple[str, int],
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
    """Races to a host and port; the counterpart of `socket.create_connection`.

    `transports` are the transports to race, most preferred first: by default QUIC and TCP, or only TCP without `tls`.
    `alpn` lists the application protocols to offer. `server_hostname` is the name that the certificate must contain, if
    it is not the host. `sctp_udp_port` is the peer's UDP port for SCTP inside UDP. `timeout` limits the race, and then
    each call.
    """
    native = _endpoint.endpoint_for(endpoint, verify)._native
    target = Target.create(address, transports, tls, alpn, server_hostname, timeout, sctp_udp_port)
    connection = Connection(_native.connect(native, target))
    connection.settimeout(timeout)
    return connection


class Connection(CallLimit, ContextManager):
    """A connection over the transport that won the race. It is used like a socket.

    One thread may read while another writes.
    """

    def __init__(self, raw: _native.RawConnection) -> None:
        self._raw = raw

    @property
    def info(self) -> ConnectionInfo:
        """The description of the connection, and why it was chosen."""
        return ConnectionInfo._from_json(self._raw.info())

    @property
    def race(self) -> Race:
        """The race for this connection so far. An accepted connection has none."""
        text = self._raw.race()
        if text is None:
            raise LookupError("the connection was accepted, so the race took place at the peer")
        return Race._from_json(text)

    def recv(self, size: int) -> bytes:
        """Reads between 1 and `size` bytes; returns none at the end."""
        if size < 0:
            raise ValueError("size must not be negative")
        return self._raw.read(size, self._timeout) if size else b""

    def recv_into(self, buffer: Buffer, size: int = 0) -> int:
        """Reads into a buffer; returns the number of bytes."""
        view = memoryview(buffer).cast("B")
        data = self.recv(size or len(view))
        view[: len(data)] = data
        return len(data)

    def sendall(self, data: Buffer) -> None:
        """Writes all of the data."""
        self._raw.write(bytes(data), self._timeout)

    def send(self, data: Buffer) -> int:
        """Writes all of the data; returns the number of bytes."""
        data = bytes(data)
        self._raw.write(data, self._timeout)
        return len(data)

    def shutdown(self, how: int = socket.SHUT_WR) -> None:
        """Ends the outgoing direction. With `SHUT_WR`, the connection can still be read."""
        if how == socket.SHUT_RD:
            raise ValueError("reading cannot be shut down alone: use SHUT_WR, or close the connection")
        self._raw.shut_down()

    def close(self) -> None:
        """Closes the connection, once the calls in progress in other threads have ended.

        Over QUIC and SCTP it first waits until the peer has everything that was written, but two seconds at most: the
        rest completes in the background, and the exit of the process waits for that for ten seconds at most. Over TCP,
        the kernel takes care of it.
        """
        self._raw.close()

    def getpeername(self) -> tuple[str, int] | None:
        """Returns the peer's address and port."""
        return address(self.info.remote)

    def getsockname(self) -> tuple[str, int] | None:
        """Returns the local address and port, if the transport knows them."""
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
        """Returns a file, like `socket.makefile`. Closing the file leaves the connection open."""
        if not set(mode) <= set("rwb") or len(set(mode)) != len(mode):
            raise ValueError(f"invalid mode {mode!r} (only r, w and b are allowed)")
        reads, writes = "r" in mode or "w" not in mode, "w" in mode
        raw = _Raw(self, reads, writes)
        size = io.DEFAULT_BUFFER_SIZE if buffering < 0 else buffering
        if size == 0:
            if "b" not in mode:
                raise ValueError("unbuffered streams must be binary")
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

    def _exit(self, error: BaseException | None) -> None:
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
            raise io.UnsupportedOperation("not readable")
        return self._connection.recv_into(buffer)

    def write(self, data: Buffer) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("not writable")
        return self._connection.send(data)
