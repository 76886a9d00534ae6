"""Connections for asyncio: its own streams, over whichever transport won."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from . import _endpoint, _native
from ._connection import Connection
from ._endpoint import Endpoint, Verify
from ._target import Target
from ._transport import Transport

#: The most that a reader keeps before it lets the peer wait, in bytes: asyncio's own.
LIMIT = 2**16


async def open_connection(
    host: str,
    port: int,
    *,
    tls: bool = True,
    transports: Sequence[str] | None = None,
    alpn: Sequence[str] = (),
    server_hostname: str | None = None,
    sctp_udp_port: int | None = None,
    timeout: float | None = None,
    limit: int = LIMIT,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Races to a host and port, and gives a reader and a writer, as `asyncio.open_connection` does.

    `transports` are those that the peer may be reached over, most wanted first: QUIC and TCP unless
    said, TCP alone without `tls`. `alpn` are the application protocols to offer, `server_hostname` is
    whom the certificate has to name if not the host, `sctp_udp_port` the peer's UDP port for SCTP inside
    UDP. `timeout` bounds the race, in seconds.

    `writer.get_extra_info("info")` is what the connection is, an `eyas.ConnectionInfo`, and
    `writer.get_extra_info("race")` how the race ran, an `eyas.Race`.
    """
    native = _endpoint.of(endpoint, verify)._native
    target = Target.of((host, port), transports, tls, alpn, server_hostname, timeout, sctp_udp_port)
    raw = await _native.aconnect(native, target)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport = Transport(loop, raw, Connection(raw), protocol)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
