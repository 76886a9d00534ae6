"""Servers for every transport, blocking and for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from . import _native
from ._context import AsyncContextManager, ContextManager
from ._connection import Connection
from ._identity import ServerIdentity
from ._listen_options import ListenOptions
from ._sctp_config import Config
from ._streams import LIMIT
from ._target import address
from ._timeout import CallLimit
from ._transport import Transport

#: The callback for each connection, called with its reader and writer.
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], "Awaitable[None] | None"]


def _listen(
    host: str | None,
    port: int,
    transports: Sequence[str] | None,
    identity: ServerIdentity | None,
    alpn: Sequence[str],
    sctp_udp_port: int | None,
    sctp_addresses: Sequence[str],
    sctp: Config | None,
) -> _native.RawListener:
    """Starts to listen. The default transports are QUIC and TCP, or only TCP without an identity."""
    if transports is None:
        transports = ("tcp",) if identity is None else ("quic", "tcp")
    options = ListenOptions.create(host, port, transports, alpn, sctp_udp_port, sctp_addresses, sctp)
    return _native.RawListener(options, None if identity is None else identity._native)


def create_server(
    address: tuple[str | None, int],
    *,
    transports: Sequence[str] | None = None,
    identity: ServerIdentity | None = None,
    alpn: Sequence[str] = (),
    sctp_udp_port: int | None = None,
    sctp_addresses: Sequence[str] = (),
    sctp: Config | None = None,
) -> Listener:
    """Listens on an address and port; the counterpart of `socket.create_server`, with blocking calls.

    The address is a local one; `None` or `""` means all of them. Port 0 picks a free port, the same for all
    `transports`. These are QUIC and TCP by default, or only TCP without an `identity`. The `identity` is the server's
    certificate for TLS; without one there is no security. `alpn` lists the application protocols to accept, most
    preferred first. SCTP inside UDP uses `sctp_udp_port`, 9899 by default. `sctp_addresses` are further local addresses
    for SCTP, and `sctp` is the configuration of its associations.
    """
    return Listener(
        _listen(*address, transports, identity, alpn, sctp_udp_port, sctp_addresses, sctp)
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
    """Listens on an address and port; the counterpart of `asyncio.start_server`.

    `client_connected_cb`, a function or coroutine function, is called with the reader and writer of each connection
    whose handshake is complete. The other arguments are those of `eyas.create_server`.
    """
    raw = _listen(host, port, transports, identity, alpn, sctp_udp_port, sctp_addresses, sctp)
    return Server(raw, client_connected_cb, limit)


class _Base:
    """The common part of both."""

    def __init__(self, raw: _native.RawListener) -> None:
        self._raw = raw
        local = address(raw.address())
        assert local is not None
        #: The local address and port.
        self.address = local
        #: The UDP port for SCTP inside UDP, if that is enabled.
        self.sctp_udp_port = raw.sctp_udp_port()


class Listener(_Base, CallLimit, ContextManager):
    """Accepts connections. It is used like a listening socket."""

    def accept(self) -> tuple[Connection, tuple[str, int]]:
        """Returns the next connection whose handshake is complete, and the peer's address and port."""
        while (raw := self._raw.accepted()) is None:
            self._raw.accept(self._timeout)
        connection = Connection(raw)
        peer = connection.getpeername()
        assert peer is not None
        return connection, peer

    def getsockname(self) -> tuple[str, int]:
        """Returns the local address and port."""
        return self.address

    def close(self) -> None:
        """Stops listening, and ends `accept` in other threads. Accepted connections stay open."""
        self._raw.close()

    def _exit(self, error: BaseException | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<eyas.Listener at {self.address}>"


class Server(_Base, AsyncContextManager):
    """Accepts connections in a task, like `asyncio.Server`."""

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
        """Returns whether the server accepts connections."""
        return not self._task.done()

    async def serve_forever(self) -> None:
        """Waits until the server is closed; closes it when cancelled."""
        try:
            await asyncio.shield(self._task)
        finally:
            self.close()

    def close(self) -> None:
        """Stops listening. Accepted connections stay open."""
        self._raw.close()

    async def wait_closed(self) -> None:
        """Waits until the server is closed."""
        await asyncio.shield(self._task)

    async def _exit(self, error: BaseException | None) -> None:
        self.close()
        await self.wait_closed()

    def __repr__(self) -> str:
        return f"<eyas.Server at {self.address}>"
