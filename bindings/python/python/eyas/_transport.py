"""A connection as an asyncio transport."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _native
from ._connection import Connection

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: The maximum number of bytes to read at once.
_MAX_READ = 64 * 1024
#: The default high-water mark of the write buffer, in bytes.
_HIGH_WATER = 64 * 1024


class Transport(asyncio.Transport):
    """Reads for a protocol and writes its data, each in a separate task."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        raw: _native.RawConnection,
        connection: Connection,
        protocol: asyncio.Protocol,
    ) -> None:
        super().__init__(_ExtraInfo(connection))
        self._loop, self._raw, self._protocol = loop, raw, protocol
        self._buffer = bytearray()
        self._high, self._low = _HIGH_WATER, _HIGH_WATER // 4
        self._protocol_paused = False
        self._eof = self._closing = self._disconnected = False
        self._reading_allowed = asyncio.Event()
        self._reading_allowed.set()
        self._write_task: asyncio.Task[None] | None = None
        self._read_task = loop.create_task(self._read_all())
        # A server's callback may write at once.
        protocol.connection_made(self)

    # Reading.

    async def _read_all(self) -> None:
        try:
            while True:
                data = await self._raw.aread(_MAX_READ)
                await self._reading_allowed.wait()
                if not data:
                    break
                self._protocol.data_received(data)
        except Exception as error:
            self._disconnect(error)
            return
        if not self._protocol.eof_received():
            self.close()

    def pause_reading(self) -> None:
        self._reading_allowed.clear()

    def resume_reading(self) -> None:
        self._reading_allowed.set()

    def is_reading(self) -> bool:
        return self._reading_allowed.is_set() and not self._closing

    # Writing.

    def write(self, data: Buffer) -> None:
        if self._disconnected:
            return
        if self._eof:
            raise RuntimeError("cannot write after write_eof() or close()")
        self._buffer += data
        self._start_writing()
        if len(self._buffer) > self._high and not self._protocol_paused:
            self._protocol_paused = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        if not self._eof:
            self._eof = True
            self._start_writing()

    def can_write_eof(self) -> bool:
        return True

    def _start_writing(self) -> None:
        if self._write_task is None and not self._disconnected:
            self._write_task = self._loop.create_task(self._write_all())

    async def _write_all(self) -> None:
        """Writes the buffered data, then ends the stream and the connection, if requested."""
        try:
            while self._buffer:
                data = bytes(self._buffer)
                self._buffer.clear()
                await self._raw.awrite(data)
                self._maybe_resume_protocol()
            closing = self._closing
            if closing:
                await self._raw.aclose()
            elif self._eof:
                await self._raw.ashut_down()
        except Exception as error:
            self._disconnect(error)
            return
        self._write_task = None
        if self._disconnected:
            return
        if closing:
            self._disconnect(None)
        elif self._buffer or self._closing:
            # Written or closed while the end of the stream was being sent.
            self._start_writing()

    def _maybe_resume_protocol(self) -> None:
        if self._protocol_paused and len(self._buffer) <= self._low:
            self._protocol_paused = False
            self._protocol.resume_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = _HIGH_WATER if low is None else 4 * low
        self._low = high // 4 if low is None else low
        self._high = high
        if not 0 <= self._low <= self._high:
            raise ValueError(f"low ({self._low}) must be between 0 and high ({self._high})")

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    # Closing.

    def close(self) -> None:
        """Closes the connection once the buffered data is written."""
        if self._closing:
            return
        self._closing = True
        self._read_task.cancel()
        self._eof = True
        self._start_writing()

    def abort(self) -> None:
        """Closes the connection immediately, discarding the buffered data."""
        self._buffer.clear()
        if self._write_task is not None:
            self._write_task.cancel()
        self._disconnect(None)

    def is_closing(self) -> bool:
        return self._closing

    def _disconnect(self, error: Exception | None) -> None:
        if self._disconnected:
            return
        self._disconnected = self._closing = self._eof = True
        self._read_task.cancel()
        self._raw.abort()
        self._loop.call_soon(self._protocol.connection_lost, error)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol


class _ExtraInfo(Mapping[str, Any]):
    """The values of `get_extra_info`, determined on access."""

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
