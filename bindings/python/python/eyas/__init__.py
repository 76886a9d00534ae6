"""Connections and HTTP over the best transport that works on the path.

QUIC and TCP, and SCTP on request, race each other over IPv6 and IPv4 (Happy Eyeballs version 3). The first that
works wins, and the result is remembered for the next connection.

    import eyas

    response = eyas.get("https://example.org/")
    print(response.status_code, response.http_version, response.info.transport)
    print(response.race.explain())

`Client` and `AsyncClient` follow the API of httpx, `open_connection` that of asyncio, and `create_connection` that of
socket. Every error is an `eyas.Error` with the candidates and causes.
"""

from __future__ import annotations

try:
    from . import _native as _native
except ImportError as error:
    if "subinterpreters" in str(error):
        raise ImportError(
            "eyas can be used in only one interpreter of a process: use threads or processes "
            "instead of subinterpreters"
        ) from error
    raise

from ._reports import (
    Attempt,
    ConnectionInfo,
    DnsQuery,
    Dropped,
    Entry,
    Plan,
    Race,
    Timings,
    Winner,
)
from ._api import delete, get, head, options, patch, post, put, request, stream
from ._client import AsyncClient, Client
from ._connection import Connection, create_connection
from ._cookies import Cookies
from ._endpoint import Endpoint
from ._errors import (
    AssociationClosed,
    AssociationLost,
    CertificateError,
    ClientClosed,
    ConnectError,
    ConnectTimeout,
    DecodingError,
    Error,
    HTTPStatusError,
    InvalidURL,
    JSONDecodeError,
    LocalProtocolError,
    ProxyError,
    ReadError,
    ReadTimeout,
    RemoteProtocolError,
    ResolveError,
    StreamClosed,
    StreamConsumed,
    TimeoutException,
    TLSError,
    TooManyRedirects,
    TotalTimeout,
    WriteError,
)
from ._headers import Headers
from ._identity import ServerIdentity
from ._race import aplan, arace, plan, race
from ._response import Redirect, Response
from ._server import Listener, Server, create_server, start_server
from ._streams import open_connection
from ._timeout import Timeout
from . import sctp

__version__ = _native.__version__

__all__ = [
    "AssociationClosed",
    "AssociationLost",
    "AsyncClient",
    "Attempt",
    "CertificateError",
    "Client",
    "ClientClosed",
    "ConnectError",
    "ConnectTimeout",
    "Connection",
    "ConnectionInfo",
    "Cookies",
    "DecodingError",
    "DnsQuery",
    "Dropped",
    "Endpoint",
    "Entry",
    "Error",
    "HTTPStatusError",
    "Headers",
    "InvalidURL",
    "JSONDecodeError",
    "Listener",
    "LocalProtocolError",
    "Plan",
    "ProxyError",
    "Race",
    "ReadError",
    "ReadTimeout",
    "Redirect",
    "RemoteProtocolError",
    "ResolveError",
    "Response",
    "Server",
    "ServerIdentity",
    "StreamClosed",
    "StreamConsumed",
    "TLSError",
    "Timeout",
    "TimeoutException",
    "Timings",
    "TooManyRedirects",
    "TotalTimeout",
    "Winner",
    "WriteError",
    "__version__",
    "aplan",
    "arace",
    "create_connection",
    "create_server",
    "delete",
    "get",
    "head",
    "open_connection",
    "options",
    "patch",
    "plan",
    "post",
    "put",
    "race",
    "request",
    "sctp",
    "start_server",
    "stream",
]
