"""Transports for httpx2: an existing program changes one line, and its requests race.

    import httpx2
    import eyas.httpx2

    client = httpx2.Client(transport=eyas.httpx2.Transport())
    client = httpx2.AsyncClient(transport=eyas.httpx2.AsyncTransport())

The arguments are those of `eyas.Client`; redirects, cookies, authentication and decompression are httpx2's
part. What a response came over is in `response.extensions["eyas"]`, an `eyas.ConnectionInfo`. Errors are those of
httpx2, and their `__cause__` is the `eyas.Error` with the candidates.
"""

from __future__ import annotations

from typing import Any

import httpx2

from ._client import AsyncClient, Client
from ._httpx import AsyncStream, Exchange, Stream, head

__all__ = ["AsyncTransport", "Transport"]


class Transport(httpx2.BaseTransport):
    """For `httpx2.Client`."""

    def __init__(self, **options: Any) -> None:
        self._client = Client(**options)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request."""
        exchange = Exchange(httpx2, request)
        response = exchange.send(self._client)
        return httpx2.Response(**head(response._raw), stream=_Stream(response, exchange))

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()


class AsyncTransport(httpx2.AsyncBaseTransport):
    """For `httpx2.AsyncClient`."""

    def __init__(self, **options: Any) -> None:
        self._client = AsyncClient(**options)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request."""
        exchange = Exchange(httpx2, request)
        response = await exchange.asend(self._client)
        return httpx2.Response(**head(response._raw), stream=_AsyncStream(response, exchange))

    async def aclose(self) -> None:
        """Closes its connections."""
        await self._client.aclose()


class _Stream(Stream, httpx2.SyncByteStream):
    pass


class _AsyncStream(AsyncStream, httpx2.AsyncByteStream):
    pass
