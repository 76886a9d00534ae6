"""What transports for httpx and httpx2 have in common: requests out, responses in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from . import _errors
from ._client import AsyncClient, Client, aanswer, answer
from ._native import RawResponse
from ._reports import ConnectionInfo
from ._request import Request
from ._response import Response

#: What the version of HTTP at hand says in its own way.
_OWN = {b"host", b"connection", b"transfer-encoding"}

#: Our errors and what httpx calls them.
_CLASSES: tuple[tuple[type[_errors.Error], str], ...] = (
    (_errors.ConnectTimeout, "ConnectTimeout"),
    (_errors.TimeoutException, "ReadTimeout"),
    (_errors.ProxyError, "ProxyError"),
    (_errors.ConnectError, "ConnectError"),
    (_errors.WriteError, "WriteError"),
    (_errors.ReadError, "ReadError"),
    (_errors.InvalidURL, "UnsupportedProtocol"),
    (_errors.LocalProtocolError, "LocalProtocolError"),
    (_errors.Error, "RemoteProtocolError"),
)


class Exchange:
    """A request, and the library whose it is."""

    def __init__(self, library: ModuleType, request: Any) -> None:
        self._library, self._request = library, request

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Errors in the words of the library."""
        try:
            yield
        except _errors.Error as error:
            name = next(name for own, name in _CLASSES if isinstance(error, own))
            raise getattr(self._library, name)(str(error), request=self._request) from error

    def send(self, client: Client) -> Response:
        """Sends the request."""
        with self.translated():
            return answer(client._open(), self._wanted())

    async def asend(self, client: AsyncClient) -> Response:
        """The same, awaited."""
        with self.translated():
            return await aanswer(client._open(), self._wanted())

    def _wanted(self) -> Request:
        request = self._request
        limits: dict[str, float | None] = request.extensions.get("timeout", {})
        body: object = request.stream
        if isinstance(body, self._library.ByteStream):
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


def head(raw: RawResponse) -> dict[str, Any]:
    """The head of a response."""
    return {
        "status_code": raw.status,
        "headers": [(name.encode("ascii"), value) for name, value in raw.headers],
        "extensions": {
            "http_version": raw.version.encode("ascii"),
            "eyas": ConnectionInfo._of(raw.info()),
        },
    }


class Stream:
    """The body of a response."""

    def __init__(self, response: Response, exchange: Exchange) -> None:
        self._response, self._exchange = response, exchange

    def __iter__(self) -> Iterator[bytes]:
        with self._exchange.translated():
            yield from self._response.iter_bytes()

    def close(self) -> None:
        """Gives up what is left."""
        self._response.close()


class AsyncStream:
    """The same, awaited."""

    def __init__(self, response: Response, exchange: Exchange) -> None:
        self._response, self._exchange = response, exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._exchange.translated():
            async for chunk in self._response.aiter_bytes():
                yield chunk

    async def aclose(self) -> None:
        """Gives up what is left."""
        await self._response.aclose()
