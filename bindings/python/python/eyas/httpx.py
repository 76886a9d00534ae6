"""Transports for httpx: an existing program changes one line, and its requests race.

    import httpx
    import eyas.httpx

    client = httpx.Client(transport=eyas.httpx.Transport())
    client = httpx.AsyncClient(transport=eyas.httpx.AsyncTransport())

The arguments are those of `eyas.Client`; redirects, cookies, authentication and decompression are httpx's
part. What a response came over is in `response.extensions["eyas"]`, an `eyas.ConnectionInfo`. Errors are those of
httpx, and their `__cause__` is the `eyas.Error` with the candidates.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from . import _errors
from ._reports import ConnectionInfo
from ._client import AsyncClient, Client, aanswer, answer
from ._native import RawResponse
from ._request import Request
from ._response import Response

__all__ = ["AsyncTransport", "Transport"]

#: What the version of HTTP at hand says in its own way.
_OWN = {b"host", b"connection", b"transfer-encoding"}

_CLASSES: tuple[tuple[type[_errors.Error], type[httpx.TransportError]], ...] = (
    (_errors.ConnectTimeout, httpx.ConnectTimeout),
    (_errors.TimeoutException, httpx.ReadTimeout),
    (_errors.ProxyError, httpx.ProxyError),
    (_errors.ConnectError, httpx.ConnectError),
    (_errors.WriteError, httpx.WriteError),
    (_errors.ReadError, httpx.ReadError),
    (_errors.InvalidURL, httpx.UnsupportedProtocol),
    (_errors.LocalProtocolError, httpx.LocalProtocolError),
    (_errors.Error, httpx.RemoteProtocolError),
)


@contextmanager
def _translated(request: httpx.Request) -> Iterator[None]:
    """Errors in the words of httpx."""
    try:
        yield
    except _errors.Error as error:
        for own, theirs in _CLASSES:
            if isinstance(error, own):
                raise theirs(str(error), request=request) from error
        raise


def _wanted(request: httpx.Request) -> Request:
    limits: dict[str, float | None] = request.extensions.get("timeout", {})
    body: object = request.stream
    if isinstance(body, httpx.ByteStream):
        body = b"".join(body) or None
    return Request(
        method=request.method,
        url=str(request.url),
        headers=[
            (name.decode("ascii"), value)
            for name, value in request.headers.raw
            if name.lower() not in _OWN
        ],
        body=body,
        redirects=0,
        connect=limits.get("connect"),
        idle=limits.get("read"),
        total=None,
    )


def _head(raw: RawResponse) -> dict[str, Any]:
    return {
        "status_code": raw.status,
        "headers": [(name.encode("ascii"), value) for name, value in raw.headers],
        "extensions": {
            "http_version": raw.version.encode("ascii"),
            "eyas": ConnectionInfo._of(raw.info()),
        },
    }


class Transport(httpx.BaseTransport):
    """For `httpx.Client`."""

    def __init__(self, **options: Any) -> None:
        self._client = Client(**options)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request."""
        with _translated(request):
            response = answer(self._client._open(), _wanted(request))
        return httpx.Response(**_head(response._raw), stream=_Stream(response, request))

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()


class AsyncTransport(httpx.AsyncBaseTransport):
    """For `httpx.AsyncClient`."""

    def __init__(self, **options: Any) -> None:
        self._client = AsyncClient(**options)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request."""
        with _translated(request):
            response = await aanswer(self._client._open(), _wanted(request))
        return httpx.Response(**_head(response._raw), stream=_AsyncStream(response, request))

    async def aclose(self) -> None:
        """Closes its connections."""
        await self._client.aclose()


class _Stream(httpx.SyncByteStream):
    def __init__(self, response: Response, request: httpx.Request) -> None:
        self._response, self._request = response, request

    def __iter__(self) -> Iterator[bytes]:
        with _translated(self._request):
            yield from self._response.iter_bytes()

    def close(self) -> None:
        self._response.close()


class _AsyncStream(httpx.AsyncByteStream):
    def __init__(self, response: Response, request: httpx.Request) -> None:
        self._response, self._request = response, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated(self._request):
            async for chunk in self._response.aiter_bytes():
                yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()
