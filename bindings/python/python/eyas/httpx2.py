"""Transports for httpx2: an existing program changes one line, and its requests race.

    import httpx2
    import eyas.httpx2

    client = httpx2.Client(transport=eyas.httpx2.Transport())
    client = httpx2.AsyncClient(transport=eyas.httpx2.AsyncTransport())

The arguments are those of `eyas.Client`; redirects, cookies, authentication and decompression remain
those of httpx2. `response.extensions["eyas"]` is the connection that carried a response, an `eyas.ConnectionInfo`.
Errors are those of httpx2, and their `__cause__` is the `eyas.Error` with the candidates.
"""

from __future__ import annotations

from typing import Any

import httpx2

from ._client import AsyncClient, Client
from ._httpx import AsyncStream, Exchange, Stream, response_head

__all__ = ["AsyncTransport", "Transport"]


class Transport(httpx2.BaseTransport):
    """A transport for `httpx2.Client`."""

    def __init__(self, **options: Any) -> None:
        self._client = Client(**{"cookies": False, **options})

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request."""
        exchange = Exchange(httpx2, request)
        response = exchange.send(self._client)
        return httpx2.Response(**response_head(response._raw), stream=_Stream(response, exchange))

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


class AsyncTransport(httpx2.AsyncBaseTransport):
    """A transport for `httpx2.AsyncClient`."""

    def __init__(self, **options: Any) -> None:
        self._client = AsyncClient(**{"cookies": False, **options})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request."""
        exchange = Exchange(httpx2, request)
        response = await exchange.asend(self._client)
        return httpx2.Response(**response_head(response._raw), stream=_AsyncStream(response, exchange))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.aclose()


class _Stream(Stream, httpx2.SyncByteStream):
    pass


class _AsyncStream(AsyncStream, httpx2.AsyncByteStream):
    pass
