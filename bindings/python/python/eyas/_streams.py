"""Connections for asyncio: its own streams, over the transport that won the race."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from . import _endpoint, _native
from ._connection import Connection
from ._endpoint import Endpoint, Verify
from ._target import Target
from ._transport import Transport

#: The default buffer limit of readers, in bytes, as in asyncio.
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
    """Races to a host and port; the counterpart of `asyncio.open_connection`. Returns a reader and a writer.

    `transports` are the transports to race, most preferred first: by default QUIC and TCP, or only TCP without `tls`.
    `alpn` lists the application protocols to offer. `server_hostname` is the name that the certificate must contain, if
    it is not the host. `sctp_udp_port` is the peer's UDP port for SCTP inside UDP. `timeout` limits the race, in
    seconds.

    `writer.get_extra_info("info")` returns an `eyas.ConnectionInfo`, and `writer.get_extra_info("race")` an
    `eyas.Race`.
    """
    native = _endpoint.endpoint_for(endpoint, verify)._native
    target = Target.create((host, port), transports, tls, alpn, server_hostname, timeout, sctp_udp_port)
    raw = await _native.aconnect(native, target)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport = Transport(loop, raw, Connection(raw), protocol)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
