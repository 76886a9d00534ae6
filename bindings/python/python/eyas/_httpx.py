"""The common part of the transports for httpx and httpx2."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from . import _errors
from ._client import AsyncClient, Client, asend, send
from ._native import RawResponse
from ._reports import ConnectionInfo
from ._request import Request
from ._response import Response

#: Header fields that eyas sets itself, depending on the version of HTTP.
_SKIPPED_HEADERS = {b"connection", b"transfer-encoding"}

#: The exceptions of eyas and their names in httpx.
_EXCEPTIONS: tuple[tuple[type[_errors.Error], str], ...] = (
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
    """A request of one of the libraries."""

    def __init__(self, library: ModuleType, request: Any) -> None:
        self._library, self._request = library, request

    @contextmanager
    def translating_errors(self) -> Iterator[None]:
        """Translates errors into exceptions of the library."""
        try:
            yield
        except _errors.Error as error:
            name = next(name for error_type, name in _EXCEPTIONS if isinstance(error, error_type))
            raise getattr(self._library, name)(str(error), request=self._request) from error

    def send(self, client: Client) -> Response:
        """Sends the request."""
        with self.translating_errors():
            return send(client._open(), self._to_eyas())

    async def asend(self, client: AsyncClient) -> Response:
        """Sends the request; the awaitable form of `send`."""
        with self.translating_errors():
            return await asend(client._open(), self._to_eyas())

    def _to_eyas(self) -> Request:
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
                if name.lower() not in _SKIPPED_HEADERS
                and not (name.lower() == b"host" and value == request.url.netloc)
            ],
            body=body,
            redirects=0,
            connect=limits.get("connect"),
            idle=limits.get("read"),
            total=None,
        )


def response_head(raw: RawResponse) -> dict[str, Any]:
    """Returns the arguments of the library's response, apart from its body."""
    return {
        "status_code": raw.status,
        "headers": [(name.encode("ascii"), value) for name, value in raw.headers],
        "extensions": {
            "http_version": raw.version.encode("ascii"),
            "eyas": ConnectionInfo._from_json(raw.info()),
        },
    }


class Stream:
    """The body of a response of a `Client`."""

    def __init__(self, response: Response, exchange: Exchange) -> None:
        self._response, self._exchange = response, exchange

    def __iter__(self) -> Iterator[bytes]:
        with self._exchange.translating_errors():
            yield from self._response.iter_bytes()

    def close(self) -> None:
        """Discards the rest of the body."""
        self._response.close()


class AsyncStream:
    """The body of a response of an `AsyncClient`."""

    def __init__(self, response: Response, exchange: Exchange) -> None:
        self._response, self._exchange = response, exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._exchange.translating_errors():
            async for chunk in self._response.aiter_bytes():
                yield chunk

    async def aclose(self) -> None:
        """Discards the rest of the body."""
        await self._response.aclose()
