"""Servers: connections that come in over every transport, blocking and for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from . import _native
from ._closing import AsyncClosing, Closing
from ._connection import Connection
from ._identity import ServerIdentity
from ._place import Place
from ._sctp_config import Config
from ._streams import LIMIT
from ._target import address
from ._timeout import CallLimit
from ._transport import Transport

#: What is called with the reader and the writer of each connection.
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], "Awaitable[None] | None"]


def _bound(
    host: str | None,
    port: int,
    transports: Sequence[str] | None,
    identity: ServerIdentity | None,
    alpn: Sequence[str],
    sctp_udp_port: int | None,
    sctp_addresses: Sequence[str],
    sctp: Config | None,
) -> _native.RawListener:
    """Over QUIC and TCP unless other transports are named; QUIC always has TLS."""
    if transports is None:
        transports = ("tcp",) if identity is None else ("quic", "tcp")
    place = Place.of(host, port, transports, alpn, sctp_udp_port, sctp_addresses, sctp)
    return _native.RawListener(place, None if identity is None else identity._native)


def create_server(
    place: tuple[str | None, int],
    *,
    transports: Sequence[str] | None = None,
    identity: ServerIdentity | None = None,
    alpn: Sequence[str] = (),
    sctp_udp_port: int | None = None,
    sctp_addresses: Sequence[str] = (),
    sctp: Config | None = None,
) -> Listener:
    """Listens at an address and a port, as `socket.create_server` does, with calls that block.

    The address is one of this host, `None` or `""` all of them; port 0 takes a free one, the same for all
    `transports`: QUIC and TCP unless said, TCP alone without an `identity`. That is who the server is,
    under TLS, and without one there is no security. `alpn` are the application protocols to serve, best
    first. SCTP inside UDP is served at `sctp_udp_port`, 9899 unless said, and SCTP at `sctp_addresses` of
    this host, too; `sctp` is how its associations behave.
    """
    return Listener(
        _bound(*place, transports, identity, alpn, sctp_udp_port, sctp_addresses, sctp)
    )


async def start_server(
    client_connected_cb: Connected,
    host: str | None = None,
    port: int = 0,
    *,
    transports: Sequence[str] | None = None,
    identity: ServerIdentity | None = None,
    alpn: Sequence[str] = (),
    sctp_udp_port: int | None = None,
    sctp_addresses: Sequence[str] = (),
    sctp: Config | None = None,
    limit: int = LIMIT,
) -> Server:
    """Listens at an address and a port, as `asyncio.start_server` does.

    `client_connected_cb` is called with the reader and the writer of each connection whose handshake is
    complete, and may be a coroutine. The others are as for `eyas.create_server`.
    """
    raw = _bound(host, port, transports, identity, alpn, sctp_udp_port, sctp_addresses, sctp)
    return Server(raw, client_connected_cb, limit)


class _Base:
    """What both have."""

    def __init__(self, raw: _native.RawListener) -> None:
        self._raw = raw
        where = address(raw.address())
        assert where is not None
        #: The address and the port that is listened at.
        self.address = where
        #: The UDP port at which SCTP inside UDP is awaited, if it is.
        self.sctp_udp_port = raw.sctp_udp_port()


class Listener(_Base, CallLimit, Closing):
    """Accepts connections, to be used like a socket that listens."""

    def accept(self) -> tuple[Connection, tuple[str, int]]:
        """The next connection whose handshake is complete, and the peer's address and port."""
        while (raw := self._raw.accepted()) is None:
            self._raw.accept(self._timeout)
        connection = Connection(raw)
        peer = connection.getpeername()
        assert peer is not None
        return connection, peer

    def getsockname(self) -> tuple[str, int]:
        """The address and the port that is listened at."""
        return self.address

    def close(self) -> None:
        """Stops listening, and ends `accept` in other threads; accepted connections live on."""
        self._raw.close()

    def _leave(self, error: BaseException | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<eyas.Listener at {self.address}>"


class Server(_Base, AsyncClosing):
    """Accepts connections in a task, as `asyncio.Server` does."""

    def __init__(self, raw: _native.RawListener, connected: Connected, limit: int) -> None:
        super().__init__(raw)
        self._connected, self._limit = connected, limit
        self._task = asyncio.get_running_loop().create_task(self._accept())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while (raw := self._raw.accepted()) is None:
                try:
                    await self._raw.aaccept()
                except OSError:
                    # It was closed.
                    return
            reader = asyncio.StreamReader(limit=self._limit, loop=loop)
            protocol = asyncio.StreamReaderProtocol(reader, self._connected, loop=loop)
            Transport(loop, raw, Connection(raw), protocol)

    def is_serving(self) -> bool:
        """Whether it takes in connections."""
        return not self._task.done()

    async def serve_forever(self) -> None:
        """Waits until it is closed, and closes it if it is cancelled."""
        try:
            await asyncio.shield(self._task)
        finally:
            self.close()

    def close(self) -> None:
        """Stops listening; accepted connections live on."""
        self._raw.close()

    async def wait_closed(self) -> None:
        """Waits until it is closed."""
        await asyncio.shield(self._task)

    async def _leave(self, error: BaseException | None) -> None:
        self.close()
        await self.wait_closed()

    def __repr__(self) -> str:
        return f"<eyas.Server at {self.address}>"
