"""The common part of the adapters for requests and niquests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from types import ModuleType
from typing import Any
from urllib.parse import urldefrag

from . import _errors
from ._client import Client, send
from ._endpoint import Endpoint
from ._reports import ConnectionInfo
from ._request import Request
from ._response import Response

#: Header fields that eyas sets itself, depending on the version of HTTP.
_SKIPPED_HEADERS = {"host", "connection", "transfer-encoding"}
#: The chunk size for files that are sent, in bytes.
_CHUNK = 64 * 1024

#: The exceptions of eyas and their names in `requests.exceptions`.
_EXCEPTIONS: tuple[tuple[type[_errors.Error], str], ...] = (
    (_errors.ConnectTimeout, "ConnectTimeout"),
    (_errors.TimeoutException, "ReadTimeout"),
    (_errors.ProxyError, "ProxyError"),
    (_errors.TLSError, "SSLError"),
    (_errors.ConnectError, "ConnectionError"),
    (_errors.InvalidURL, "InvalidURL"),
    (_errors.LocalProtocolError, "InvalidHeader"),
    (_errors.Error, "ConnectionError"),
)


class RacingAdapter:
    """A mixin for an `HTTPAdapter` that sends requests with eyas."""

    #: The library, and the urllib3 with which it reads responses.
    _library: ModuleType
    _urllib3: ModuleType
    #: Creates the library's response from one of urllib3.
    build_response: Callable[[Any, Any], Any]

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._clients = Clients(options)

    def send(
        self,
        request: Any,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
        **_: Any,
    ) -> Any:
        """Sends a request."""
        proxy = self._library.utils.select_proxy(request.url or "", proxies)
        with self._translating_errors(request):
            client = self._clients.get(verify, cert, proxy)
            received = send_prepared(client, request, timeout)
        raw = self._urllib3.HTTPResponse(
            body=Body(received, self._body_error),
            headers=self._urllib3.HTTPHeaderDict(received.headers.multi_items()),
            status=received.status_code,
            reason=received.reason_phrase,
            preload_content=False,
            original_response=OriginalResponse(received),
            request_method=request.method,
        )
        response = self.build_response(request, raw)
        if not stream:
            _ = response.content
        return response

    def close(self) -> None:
        """Closes the connections."""
        self._clients.close()

    @contextmanager
    def _translating_errors(self, request: Any) -> Iterator[None]:
        """Translates errors into exceptions of the library."""
        exceptions = self._library.exceptions
        try:
            yield
        except _errors.WriteError as error:
            if error.__cause__ is None:
                raise exceptions.ConnectionError(error, request=request) from error
            # The caller's own iterator raised an exception: it is passed on unchanged.
            raise error.__cause__ from None
        except _errors.Error as error:
            name = next(name for error_type, name in _EXCEPTIONS if isinstance(error, error_type))
            raise getattr(exceptions, name)(error, request=request) from error

    def _body_error(self, error: _errors.Error) -> Exception:
        """Returns the exception that the library expects if reading a body fails."""
        exceptions = self._urllib3.exceptions
        if isinstance(error, _errors.WriteError) and isinstance(error.__cause__, Exception):
            return error.__cause__
        if isinstance(error, _errors.TimeoutException):
            timeout: Exception = exceptions.ReadTimeoutError(None, None, str(error))
            return timeout
        broken: Exception = exceptions.ProtocolError(str(error), error)
        return broken


class Clients:
    """A client for each combination of trusted roots, client certificate and proxy."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = {"timeout": None, **options}
        self._clients: dict[tuple[object, object, str | None], Client] = {}
        self._lock = threading.Lock()

    def get(self, verify: Any, cert: Any, proxy: str | None) -> Client:
        """Returns the client, creating it if needed. The adapter's own `verify` takes precedence."""
        if not {"verify", "endpoint"}.isdisjoint(self._options):
            verify, cert = True, None
        with self._lock:
            client = self._clients.get((verify, cert, proxy))
            if client is None:
                client = self._create(verify, cert, proxy)
                self._clients[verify, cert, proxy] = client
            return client

    def _create(self, verify: Any, cert: Any, proxy: str | None) -> Client:
        options = dict(self._options)
        if verify is not True or cert is not None:
            pair = (cert, cert) if isinstance(cert, str) else cert
            options["endpoint"] = Endpoint(verify=verify, cert=pair)
        if proxy is not None:
            options["proxy"] = proxy
        # The library has already looked for proxies there.
        return Client(**{**options, "trust_env": False})

    def close(self) -> None:
        """Closes the connections of all clients."""
        with self._lock:
            clients = list(self._clients.values())
            self._clients.clear()
        for client in clients:
            client.close()


def send_prepared(client: Client, request: Any, timeout: Any) -> Response:
    """Sends a prepared request."""
    connect, read = _limits(timeout)
    return send(
        client._open(),
        Request(
            method=str(request.method),
            url=urldefrag(_text(request.url))[0],
            headers=[
                (_text(name), value if isinstance(value, bytes) else str(value).encode())
                for name, value in request.headers.items()
                if _text(name).lower() not in _SKIPPED_HEADERS
            ],
            body=_body(request.body),
            redirects=0,
            connect=connect,
            idle=read,
            total=None,
        ),
    )


def _text(text: str | bytes) -> str:
    return text.decode("ascii") if isinstance(text, bytes) else text


def _limits(timeout: Any) -> tuple[float | None, float | None]:
    """Returns the connect and read timeouts, from a number, a pair, or a `Timeout` of urllib3."""
    if isinstance(timeout, tuple):
        connect, read = timeout
        return connect, read
    if timeout is None or isinstance(timeout, (int, float)):
        return timeout, timeout
    return timeout.connect_timeout, timeout.read_timeout


def _body(body: Any) -> object:
    if isinstance(body, str):
        return body.encode()
    if hasattr(body, "read"):
        return _chunks(body)
    return body or None if isinstance(body, (bytes, bytearray, type(None))) else body


def _chunks(file: Any) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk.encode() if isinstance(chunk, str) else chunk


class OriginalResponse:
    """The head of a response, in the form that the standard library's cookie jar expects."""

    def __init__(self, response: Response) -> None:
        self.msg = Message()
        for name, value in response.headers.multi_items():
            self.msg[name] = value
        #: The connection that carried the response.
        self.info: ConnectionInfo = response.info

    def isclosed(self) -> bool:
        """Returns false, because urllib3 must not reuse the connection."""
        return False

    def close(self) -> None:
        """Does nothing, because only the body can be closed."""


class Body:
    """The body of a response, as a file for urllib3."""

    def __init__(
        self, response: Response, to_library_error: Callable[[_errors.Error], Exception]
    ) -> None:
        self._response, self._to_library_error = response, to_library_error
        self._chunks = response.iter_bytes()
        self._buffer = b""
        self.closed = False

    def read(self, size: int | None = None) -> bytes:
        """Reads at most `size` bytes, or everything if there is no size; returns none at the end."""
        if size is None or size < 0:
            chunks = [self._buffer]
            self._buffer = b""
            while chunk := self._next():
                chunks.append(chunk)
            return b"".join(chunks)
        data = self._buffer or self._next()
        self._buffer = data[size:]
        return data[:size]

    read1 = read

    def _next(self) -> bytes:
        try:
            return next((chunk for chunk in self._chunks if chunk), b"")
        except _errors.Error as error:
            raise self._to_library_error(error) from error

    def close(self) -> None:
        """Discards the rest of the body."""
        self.closed = True
        self._response.close()


def connection_info(response: Any) -> ConnectionInfo:
    """Returns the connection that carried a response."""
    head = getattr(response.raw, "_original_response", None)
    if not isinstance(head, OriginalResponse):
        raise TypeError("the response was not received by an adapter of eyas")
    return head.info
