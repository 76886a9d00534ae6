"""HTTP clients, blocking and for asyncio, with the API of httpx."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import AsyncIterable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING

from . import _endpoint, _native, _timeout, _url
from ._body_source import AsyncIterableSource, BodySource, IterableSource
from ._content import is_repeatable
from ._context import AsyncContextManager, ContextManager
from ._cookies import Cookies, CookieTypes
from ._endpoint import Endpoint, Verify
from ._errors import ClientClosed
from ._headers import Headers, HeaderTypes
from ._request import (
    BODY_OPTIONS,
    MAX_REDIRECTS,
    OPTIONS,
    AsyncBodyOptions,
    AuthTypes,
    BodyOptions,
    Defaults,
    Options,
    ParamTypes,
    Request,
    build_request,
    check_options,
)
from ._response import Response
from ._timeout import TimeoutTypes

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclasses.dataclass(frozen=True)
class _ClientOptions:
    """The options of the native client."""

    policy: str
    http1: bool
    http2: bool
    http3: bool
    transports: list[str] | None
    #: The cookies of redirects and responses, if they are kept.
    cookies: Cookies | None
    proxy: str | None
    trust_env: bool
    max_body: int | None
    connect: float | None


class _Base:
    """The common part of both clients.

    `http1`, `http2` and `http3` enable the versions of HTTP. `policy` is the order in which HTTP/3 and the older
    versions are tried: `race`, `alt-svc`, `serial` or `race+alt-svc`. `transports` restricts the race further. `verify`
    are the trusted roots; alternatively, pass an `endpoint`. `timeout` and `follow_redirects` are the defaults of
    requests. `cookies` are sent with every request, and those that servers set are kept and sent back; `False` keeps none.
    `proxy` is used for all requests; without one, the proxies of
    the environment are used, unless `trust_env` is false. `max_body` limits the bodies of responses, in bytes after
    decompression.
    """

    def __init__(
        self,
        *,
        base_url: str = "",
        params: ParamTypes = None,
        headers: HeaderTypes = None,
        auth: AuthTypes = None,
        verify: Verify = True,
        endpoint: Endpoint | None = None,
        http1: bool = True,
        http2: bool = True,
        http3: bool = True,
        policy: str = "race",
        transports: Sequence[str] | None = None,
        timeout: TimeoutTypes = _timeout.DEFAULT,
        follow_redirects: bool = False,
        max_redirects: int = MAX_REDIRECTS,
        cookies: CookieTypes | bool = True,
        proxy: str | None = None,
        trust_env: bool = True,
        max_body: int | None = None,
    ) -> None:
        self.endpoint = _endpoint.endpoint_for(endpoint, verify)
        if isinstance(transports, str):
            raise TypeError(f"transports must be a sequence of names, such as ({transports!r},)")
        self._defaults = Defaults(
            base_url=_url.text_of(base_url),
            params=params,
            headers=Headers(headers),
            cookies=Cookies(None if isinstance(cookies, bool) else cookies),
            auth=auth,
            timeout=_timeout.as_timeout(timeout),
            follow_redirects=follow_redirects,
            max_redirects=max_redirects,
        )
        self._options = _ClientOptions(
            policy=policy,
            http1=http1,
            http2=http2,
            http3=http3,
            transports=None if transports is None else list(transports),
            cookies=None if cookies is False else self._defaults.cookies,
            proxy=proxy,
            trust_env=trust_env,
            max_body=max_body,
            connect=self._defaults.timeout.connect,
        )
        self._native: _native.HttpClient | None = None
        self._process = 0
        self.is_closed = False
        self._open()

    @property
    def headers(self) -> Headers:
        """The header fields of every request, apart from those that eyas adds itself."""
        return self._defaults.headers

    @headers.setter
    def headers(self, headers: HeaderTypes) -> None:
        self._defaults.headers = Headers(headers)

    @property
    def cookies(self) -> Cookies:
        """The cookies, those given and those received."""
        return self._defaults.cookies

    @cookies.setter
    def cookies(self, cookies: CookieTypes) -> None:
        # The native part has the same object.
        self._defaults.cookies.jar = Cookies(cookies).jar

    def _open(self) -> _native.HttpClient:
        if self.is_closed:
            raise ClientClosed("the client is closed; create another one")
        process = os.getpid()
        if self._native is None or self._process != process:
            # In a child that was forked, the connections remain the parent's.
            self._native = _native.HttpClient(self.endpoint._native, self._options)
            self._process = process
        return self._native

    def _close(self) -> None:
        self.is_closed, self._native = True, None


class Client(_Base, ContextManager):
    """An HTTP client whose calls block. It is thread-safe.

    Use it as a context manager, or call `close`, to close its connections.
    """

    def request(self, method: str, url: str, **options: Unpack[BodyOptions]) -> Response:
        """Sends a request and reads the response."""
        check_options("request", options, BODY_OPTIONS)
        with _Stream(self, method, url, options) as response:
            response.read()
        return response

    def stream(
        self, method: str, url: str, **options: Unpack[BodyOptions]
    ) -> AbstractContextManager[Response]:
        """Sends a request; the context manager returns the response before its body is read."""
        check_options("stream", options, BODY_OPTIONS)
        return _Stream(self, method, url, options)

    def get(self, url: str, **options: Unpack[Options]) -> Response:
        """Sends a GET request."""
        check_options("get", options, OPTIONS)
        return self.request("GET", url, **options)

    def head(self, url: str, **options: Unpack[Options]) -> Response:
        """Sends a HEAD request."""
        check_options("head", options, OPTIONS)
        return self.request("HEAD", url, **options)

    def options(self, url: str, **options: Unpack[Options]) -> Response:
        """Sends an OPTIONS request."""
        check_options("options", options, OPTIONS)
        return self.request("OPTIONS", url, **options)

    def delete(self, url: str, **options: Unpack[Options]) -> Response:
        """Sends a DELETE request."""
        check_options("delete", options, OPTIONS)
        return self.request("DELETE", url, **options)

    def post(self, url: str, **options: Unpack[BodyOptions]) -> Response:
        """Sends a POST request."""
        check_options("post", options, BODY_OPTIONS)
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Unpack[BodyOptions]) -> Response:
        """Sends a PUT request."""
        check_options("put", options, BODY_OPTIONS)
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Unpack[BodyOptions]) -> Response:
        """Sends a PATCH request."""
        check_options("patch", options, BODY_OPTIONS)
        return self.request("PATCH", url, **options)

    def close(self) -> None:
        """Closes the connections, once the requests in progress have ended."""
        self._close()

    def _exit(self, error: BaseException | None) -> None:
        self.close()


class AsyncClient(_Base, AsyncContextManager):
    """An HTTP client for asyncio. Cancelling a call ends everything that it has started.

    Use it as a context manager, or call `aclose`, to close its connections.
    """

    async def request(
        self, method: str, url: str, **options: Unpack[AsyncBodyOptions]
    ) -> Response:
        """Sends a request and reads the response."""
        check_options("request", options, BODY_OPTIONS)
        async with _AsyncStream(self, method, url, options) as response:
            await response.aread()
        return response

    def stream(
        self, method: str, url: str, **options: Unpack[AsyncBodyOptions]
    ) -> AbstractAsyncContextManager[Response]:
        """Sends a request; the context manager returns the response before its body is read."""
        check_options("stream", options, BODY_OPTIONS)
        return _AsyncStream(self, method, url, options)

    async def get(self, url: str, **options: Unpack[Options]) -> Response:
        """Sends a GET request."""
        check_options("get", options, OPTIONS)
        return await self.request("GET", url, **options)

    async def head(self, url: str, **options: Unpack[Options]) -> Response:
        """Sends a HEAD request."""
        check_options("head", options, OPTIONS)
        return await self.request("HEAD", url, **options)

    async def options(self, url: str, **options: Unpack[Options]) -> Response:
        """Sends an OPTIONS request."""
        check_options("options", options, OPTIONS)
        return await self.request("OPTIONS", url, **options)

    async def delete(self, url: str, **options: Unpack[Options]) -> Response:
        """Sends a DELETE request."""
        check_options("delete", options, OPTIONS)
        return await self.request("DELETE", url, **options)

    async def post(self, url: str, **options: Unpack[AsyncBodyOptions]) -> Response:
        """Sends a POST request."""
        check_options("post", options, BODY_OPTIONS)
        return await self.request("POST", url, **options)

    async def put(self, url: str, **options: Unpack[AsyncBodyOptions]) -> Response:
        """Sends a PUT request."""
        check_options("put", options, BODY_OPTIONS)
        return await self.request("PUT", url, **options)

    async def patch(self, url: str, **options: Unpack[AsyncBodyOptions]) -> Response:
        """Sends a PATCH request."""
        check_options("patch", options, BODY_OPTIONS)
        return await self.request("PATCH", url, **options)

    async def aclose(self) -> None:
        """Closes the connections, once the requests in progress have ended."""
        self._close()

    async def _exit(self, error: BaseException | None) -> None:
        await self.aclose()


class _Stream(AbstractContextManager[Response]):
    """Sends a request, and closes its response in the end."""

    def __init__(self, client: Client, method: str, url: str, options: BodyOptions) -> None:
        self._client = client
        self._arguments = method, url, client._defaults, options

    def __enter__(self) -> Response:
        request = build_request(*self._arguments)
        if isinstance(request.body, AsyncIterable):
            raise TypeError("an asynchronous iterable as a body needs an eyas.AsyncClient")
        self._response = send(self._client._open(), request)
        return self._response

    def __exit__(self, *_: object) -> None:
        self._response.close()


class _AsyncStream(AbstractAsyncContextManager[Response]):
    """Sends a request, and closes its response in the end."""

    def __init__(
        self, client: AsyncClient, method: str, url: str, options: AsyncBodyOptions
    ) -> None:
        self._client = client
        self._arguments = method, url, client._defaults, options

    async def __aenter__(self) -> Response:
        self._response = await asend(self._client._open(), build_request(*self._arguments))
        return self._response

    async def __aexit__(self, *_: object) -> None:
        self._response.close()


def send(native: _native.HttpClient, request: Request) -> Response:
    """Sends a request and waits for the response, but does not read its body."""
    source = BodySource()
    if isinstance(request.body, Iterable) and not isinstance(request.body, bytes):
        source = _iterable_source(request, request.body)
    with source.attributing_errors():
        return Response(native.send(request), source)


async def asend(native: _native.HttpClient, request: Request) -> Response:
    """Sends a request, whose body may be an asynchronous iterable, and waits for the response."""
    source = BodySource()
    if isinstance(request.body, AsyncIterable):
        source = AsyncIterableSource(request.body)
        request.body = source.upload
    elif isinstance(request.body, Iterable) and not isinstance(request.body, bytes):
        source = _iterable_source(request, request.body)
    try:
        with source.attributing_errors():
            return Response(await native.asend(request), source)
    except BaseException:
        source.stop()
        raise


def _iterable_source(request: Request, chunks: Iterable[bytes]) -> IterableSource:
    """Makes an iterable the body of a request, which may have to send it again."""
    request.body = source = IterableSource(chunks)
    request.is_repeatable = is_repeatable(chunks)
    return source
