"""A connection as a transport of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _native
from ._connection import Connection

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: The most that is read at once, in bytes.
_READ = 64 * 1024
#: What may wait to be written before the protocol is asked to pause, in bytes.
_HIGH = 64 * 1024


class Transport(asyncio.Transport):
    """Reads into a protocol and writes what it is given, each in a task of its own."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        raw: _native.RawConnection,
        connection: Connection,
        protocol: asyncio.Protocol,
    ) -> None:
        super().__init__(_Extra(connection))
        self._loop, self._raw, self._protocol = loop, raw, protocol
        self._waiting = bytearray()
        self._high, self._low = _HIGH, _HIGH // 4
        self._protocol_paused = False
        self._eof = self._closing = self._lost = False
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._sender: asyncio.Task[None] | None = None
        self._receiver = loop.create_task(self._receive())
        # A server's callback may write at once.
        protocol.connection_made(self)

    # Reading.

    async def _receive(self) -> None:
        try:
            while True:
                data = await self._raw.aread(_READ)
                await self._may_read.wait()
                if not data:
                    break
                self._protocol.data_received(data)
        except Exception as error:
            self._end(error)
            return
        if not self._protocol.eof_received():
            self.close()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def is_reading(self) -> bool:
        return self._may_read.is_set() and not self._closing

    # Writing.

    def write(self, data: Buffer) -> None:
        if self._lost:
            return
        if self._eof:
            raise RuntimeError("nothing can be written after write_eof() or close()")
        self._waiting += data
        self._send()
        if len(self._waiting) > self._high and not self._protocol_paused:
            self._protocol_paused = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        if not self._eof:
            self._eof = True
            self._send()

    def can_write_eof(self) -> bool:
        return True

    def _send(self) -> None:
        if self._sender is None and not self._lost:
            self._sender = self._loop.create_task(self._send_all())

    async def _send_all(self) -> None:
        """Writes what waits; then ends the stream and the connection, if that was asked for."""
        try:
            while self._waiting:
                data = bytes(self._waiting)
                self._waiting.clear()
                await self._raw.awrite(data)
                self._go_on()
            closing = self._closing
            if closing:
                await self._raw.aclose()
            elif self._eof:
                await self._raw.ashut_down()
        except Exception as error:
            self._end(error)
            return
        self._sender = None
        if self._lost:
            return
        if closing:
            self._end(None)
        elif self._waiting or self._closing:
            # It came while the end of the stream went out.
            self._send()

    def _go_on(self) -> None:
        if self._protocol_paused and len(self._waiting) <= self._low:
            self._protocol_paused = False
            self._protocol.resume_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = _HIGH if low is None else 4 * low
        self._low = high // 4 if low is None else low
        self._high = high
        if not 0 <= self._low <= self._high:
            raise ValueError(f"low ({self._low}) has to be between 0 and high ({self._high})")

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return len(self._waiting)

    # The end.

    def close(self) -> None:
        """Writes what waits, tells the peer that this is the end, and closes."""
        if self._closing:
            return
        self._closing = True
        self._receiver.cancel()
        self._eof = True
        self._send()

    def abort(self) -> None:
        """Closes at once; what waits is not written."""
        self._waiting.clear()
        if self._sender is not None:
            self._sender.cancel()
        self._end(None)

    def is_closing(self) -> bool:
        return self._closing

    def _end(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = self._closing = self._eof = True
        self._receiver.cancel()
        self._raw.abort()
        self._loop.call_soon(self._protocol.connection_lost, error)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol


class _Extra(Mapping[str, Any]):
    """What `get_extra_info` knows, found out when it is asked for."""

    _NAMES = ("info", "race", "peername", "sockname")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getitem__(self, name: str) -> Any:
        if name == "info":
            return self._connection.info
        if name == "race":
            try:
                return self._connection.race
            except LookupError:
                raise KeyError(name) from None
        if name == "peername":
            return self._connection.getpeername()
        if name == "sockname":
            return self._connection.getsockname()
        raise KeyError(name)

    def __iter__(self) -> Any:
        return iter(self._NAMES)

    def __len__(self) -> int:
        return len(self._NAMES)
