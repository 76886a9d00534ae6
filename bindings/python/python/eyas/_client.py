"""HTTP clients, blocking and for asyncio, with the words of httpx."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from . import _endpoint, _headers, _native, _timeout
from ._closing import AsyncClosing, Closing
from ._endpoint import Endpoint, Verify
from ._errors import ClientClosed
from ._headers import Headers, HeaderTypes
from ._request import (
    MAX_REDIRECTS,
    AsyncBodyOptions,
    BodyOptions,
    Defaults,
    Options,
    ParamTypes,
    Request,
    build,
)
from ._response import Response
from ._source import AwaitedSource, IteratedSource, Source
from ._timeout import Timeout

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclasses.dataclass(frozen=True)
class _Setup:
    """What the native client is made of."""

    policy: str
    http1: bool
    http2: bool
    http3: bool
    transports: list[str] | None
    headers: list[tuple[str, bytes]]
    cookies: bool
    proxy: str | None
    trust_env: bool
    max_body: int | None
    connect: float | None


class _Base:
    """What both clients are made of.

    `http1`, `http2` and `http3` are the versions that may be spoken; `policy` is the order in which
    HTTP/3 and the older ones are tried: `race`, `alt-svc`, `serial` or `race+alt-svc`; `transports`
    restricts the race further. `verify` is whom to trust, unless an `endpoint` says so. `timeout` and
    `follow_redirects` hold for requests that do not say otherwise. `cookies` keeps cookies and sends
    them back. `proxy` is one for everything; those of the environment are used unless `trust_env` is
    off. `max_body` bounds the bodies of responses, in bytes after decompression.
    """

    def __init__(
        self,
        *,
        base_url: str = "",
        params: ParamTypes = None,
        headers: HeaderTypes = None,
        auth: tuple[str, str] | None = None,
        verify: Verify = True,
        endpoint: Endpoint | None = None,
        http1: bool = True,
        http2: bool = True,
        http3: bool = True,
        policy: str = "race",
        transports: Sequence[str] | None = None,
        timeout: Timeout | float | None = _timeout.DEFAULT,
        follow_redirects: bool = False,
        max_redirects: int = MAX_REDIRECTS,
        cookies: bool = False,
        proxy: str | None = None,
        trust_env: bool = True,
        max_body: int | None = None,
    ) -> None:
        self.endpoint = _endpoint.of(endpoint, verify)
        self._defaults = Defaults(
            base_url=base_url,
            params=params,
            auth=auth,
            timeout=_timeout.of(timeout),
            follow_redirects=follow_redirects,
            max_redirects=max_redirects,
        )
        setup = _Setup(
            policy=policy,
            http1=http1,
            http2=http2,
            http3=http3,
            transports=None if transports is None else list(transports),
            headers=_headers.to_send(Headers(headers)),
            cookies=cookies,
            proxy=proxy,
            trust_env=trust_env,
            max_body=max_body,
            connect=self._defaults.timeout.connect,
        )
        self._native: _native.HttpClient | None = _native.HttpClient(self.endpoint._native, setup)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._native is None

    def _open(self) -> _native.HttpClient:
        if self._native is None:
            raise ClientClosed("the client was closed; make another one")
        return self._native


class Client(_Base, Closing):
    """An HTTP client whose calls block. Safe for threads.

    Use it as a context manager, or close it: that closes its connections.
    """

    def request(self, method: str, url: str, **options: Unpack[BodyOptions]) -> Response:
        """Sends a request and reads its response."""
        with self.stream(method, url, **options) as response:
            response.read()
        return response

    @contextmanager
    def stream(self, method: str, url: str, **options: Unpack[BodyOptions]) -> Iterator[Response]:
        """Sends a request and gives its response before the body is read."""
        request = build(method, url, self._defaults, options)
        if isinstance(request.body, AsyncIterable):
            raise TypeError("a body that is made by a coroutine needs an eyas.AsyncClient")
        response = answer(self._open(), request)
        try:
            yield response
        finally:
            response.close()

    def get(self, url: str, **options: Unpack[Options]) -> Response:
        """A GET request."""
        return self.request("GET", url, **options)

    def head(self, url: str, **options: Unpack[Options]) -> Response:
        """A HEAD request."""
        return self.request("HEAD", url, **options)

    def options(self, url: str, **options: Unpack[Options]) -> Response:
        """An OPTIONS request."""
        return self.request("OPTIONS", url, **options)

    def delete(self, url: str, **options: Unpack[Options]) -> Response:
        """A DELETE request."""
        return self.request("DELETE", url, **options)

    def post(self, url: str, **options: Unpack[BodyOptions]) -> Response:
        """A POST request."""
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Unpack[BodyOptions]) -> Response:
        """A PUT request."""
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Unpack[BodyOptions]) -> Response:
        """A PATCH request."""
        return self.request("PATCH", url, **options)

    def close(self) -> None:
        """Closes its connections, once what is in flight has come to its end."""
        self._native = None

    def _leave(self, error: BaseException | None) -> None:
        self.close()


class AsyncClient(_Base, AsyncClosing):
    """An HTTP client for asyncio. Cancelling a call ends what it had begun.

    Use it as a context manager, or close it: that closes its connections.
    """

    async def request(
        self, method: str, url: str, **options: Unpack[AsyncBodyOptions]
    ) -> Response:
        """Sends a request and reads its response."""
        async with self.stream(method, url, **options) as response:
            await response.aread()
        return response

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, **options: Unpack[AsyncBodyOptions]
    ) -> AsyncIterator[Response]:
        """Sends a request and gives its response before the body is read."""
        response = await aanswer(self._open(), build(method, url, self._defaults, options))
        try:
            yield response
        finally:
            await response.aclose()

    async def get(self, url: str, **options: Unpack[Options]) -> Response:
        """A GET request."""
        return await self.request("GET", url, **options)

    async def head(self, url: str, **options: Unpack[Options]) -> Response:
        """A HEAD request."""
        return await self.request("HEAD", url, **options)

    async def options(self, url: str, **options: Unpack[Options]) -> Response:
        """An OPTIONS request."""
        return await self.request("OPTIONS", url, **options)

    async def delete(self, url: str, **options: Unpack[Options]) -> Response:
        """A DELETE request."""
        return await self.request("DELETE", url, **options)

    async def post(self, url: str, **options: Unpack[AsyncBodyOptions]) -> Response:
        """A POST request."""
        return await self.request("POST", url, **options)

    async def put(self, url: str, **options: Unpack[AsyncBodyOptions]) -> Response:
        """A PUT request."""
        return await self.request("PUT", url, **options)

    async def patch(self, url: str, **options: Unpack[AsyncBodyOptions]) -> Response:
        """A PATCH request."""
        return await self.request("PATCH", url, **options)

    async def aclose(self) -> None:
        """Closes its connections, once what is in flight has come to its end."""
        self._native = None

    async def _leave(self, error: BaseException | None) -> None:
        await self.aclose()


def answer(native: _native.HttpClient, request: Request) -> Response:
    """Sends a request and waits for its response, whose body is still to be read."""
    source = Source()
    if isinstance(request.body, Iterable) and not isinstance(request.body, bytes):
        request.body = source = IteratedSource(request.body)
    with source.blamed():
        return Response(native.send(request), source)


async def aanswer(native: _native.HttpClient, request: Request) -> Response:
    """The same, awaited; a coroutine may make the body."""
    source = Source()
    if isinstance(request.body, AsyncIterable):
        source = AwaitedSource(request.body)
        request.body = source.upload
    elif isinstance(request.body, Iterable) and not isinstance(request.body, bytes):
        request.body = source = IteratedSource(request.body)
    try:
        with source.blamed():
            return Response(await native.asend(request), source)
    except BaseException:
        source.stop()
        raise
