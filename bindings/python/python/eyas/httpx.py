"""Transports for httpx: an existing program changes one line, and its requests race.

    import httpx
    import eyas.httpx

    client = httpx.Client(transport=eyas.httpx.Transport())
    client = httpx.AsyncClient(transport=eyas.httpx.AsyncTransport())

The arguments are those of `eyas.Client`; redirects, cookies, authentication and decompression remain
those of httpx. `response.extensions["eyas"]` is the connection that carried a response, an `eyas.ConnectionInfo`.
Errors are those of httpx, and their `__cause__` is the `eyas.Error` with the candidates.
"""

from __future__ import annotations

from typing import Any

import httpx

from ._client import AsyncClient, Client
from ._httpx import AsyncStream, Exchange, Stream, response_head

__all__ = ["AsyncTransport", "Transport"]


class Transport(httpx.BaseTransport):
    """A transport for `httpx.Client`."""

    def __init__(self, **options: Any) -> None:
        self._client = Client(**{"cookies": False, **options})

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request."""
        exchange = Exchange(httpx, request)
        response = exchange.send(self._client)
        return httpx.Response(**response_head(response._raw), stream=_Stream(response, exchange))

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


class AsyncTransport(httpx.AsyncBaseTransport):
    """A transport for `httpx.AsyncClient`."""

    def __init__(self, **options: Any) -> None:
        self._client = AsyncClient(**{"cookies": False, **options})

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request."""
        exchange = Exchange(httpx, request)
        response = await exchange.asend(self._client)
        return httpx.Response(**response_head(response._raw), stream=_AsyncStream(response, exchange))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.aclose()


class _Stream(Stream, httpx.SyncByteStream):
    pass


class _AsyncStream(AsyncStream, httpx.AsyncByteStream):
    pass
