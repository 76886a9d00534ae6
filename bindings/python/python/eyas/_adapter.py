"""The common part of the adapters for requests and niquests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from types import ModuleType
from typing import Any
from urllib.parse import urldefrag

from . import _errors
from ._client import Client, send
from ._content import encode_content
from ._endpoint import Endpoint
from ._reports import ConnectionInfo
from ._request import Request
from ._response import Response

#: Header fields that eyas sets itself, depending on the version of HTTP.
_SKIPPED_HEADERS = {"connection", "transfer-encoding"}

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

    def __getstate__(self) -> dict[str, Any]:
        """Returns what the library's adapter keeps, and the options: connections are not copied."""
        inherited: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**inherited, "_options": self._clients.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        options = state.pop("_options")
        super().__setstate__(state)  # type: ignore[misc]
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
        #: The caller's options.
        self.options = options
        self._clients: dict[tuple[object, object, str | None], Client] = {}
        # The first client shows whether the options are valid. It opens no connection.
        self.get(True, None, None)

    def get(self, verify: Any, cert: Any, proxy: str | None) -> Client:
        """Returns the client, creating it if needed. The adapter's own `verify` takes precedence."""
        if not {"verify", "endpoint"}.isdisjoint(self.options):
            verify, cert = True, None
        if isinstance(cert, list):
            cert = tuple(cert)
        key = verify, cert, proxy
        client = self._clients.get(key)
        # Without a lock, which a child that is forked meanwhile could not release: one of two threads keeps its client.
        return client or self._clients.setdefault(key, self._create(*key))

    def _create(self, verify: Any, cert: Any, proxy: str | None) -> Client:
        # The library keeps the cookies, and has already looked for proxies in the environment.
        options = {"timeout": None, **self.options, "cookies": False, "trust_env": False}
        if verify is not True or cert is not None:
            _check_paths(verify, cert)
            options["endpoint"] = Endpoint(verify=verify, cert=cert)
        if proxy is not None:
            options["proxy"] = proxy
        return Client(**options)

    def close(self) -> None:
        """Closes the connections of all clients."""
        while self._clients:
            self._clients.popitem()[1].close()


def _check_paths(verify: Any, cert: Any) -> None:
    """Raises what requests raises for a file that does not exist."""
    if not isinstance(verify, bool) and not os.path.exists(verify):
        raise OSError(f"Could not find a suitable TLS CA certificate bundle, invalid path: {verify}")
    paths = (cert, None) if cert is None or isinstance(cert, (str, os.PathLike)) else cert
    for path, what in zip(paths, ("certificate", "key")):
        if path and not os.path.exists(path):
            raise OSError(f"Could not find the TLS {what} file, invalid path: {path}")


def send_prepared(client: Client, request: Any, timeout: Any) -> Response:
    """Sends a prepared request."""
    connect, read = _limits(timeout)
    body, length = _body(request.body)
    return send(
        client._open(),
        Request(
            method=_text(request.method),
            url=urldefrag(_text(request.url))[0],
            headers=[
                (_text(name), value if isinstance(value, bytes) else str(value).encode("latin-1"))
                for name, value in request.headers.items()
                if _text(name).lower() not in _SKIPPED_HEADERS
            ],
            body=body,
            redirects=0,
            connect=connect,
            idle=read,
            total=None,
            length=length,
        ),
    )


def _text(text: str | bytes) -> str:
    return text.decode("ascii") if isinstance(text, bytes) else text


def _limits(timeout: Any) -> tuple[float | None, float | None]:
    """Returns the connect and read timeouts, from a number, a pair, or a `Timeout` of urllib3."""
    if isinstance(timeout, tuple):
        try:
            connect, read = timeout
        except ValueError:
            raise ValueError(
                f"Invalid timeout {timeout}. Pass a (connect, read) timeout tuple, "
                "or a single float to set both timeouts to the same value."
            ) from None
    elif hasattr(timeout, "connect_timeout"):
        connect, read = timeout.connect_timeout, timeout.read_timeout
    else:
        connect = read = timeout
    for limit in (connect, read):
        if limit is not None and not isinstance(limit, (int, float)):
            raise ValueError(
                f"Timeout value connect was {limit}, but it must be an int, float or None."
            )
    return connect, read


def _body(body: Any) -> tuple[object, int | None]:
    """Returns the body, and the length of a file."""
    if body is None:
        return None, None
    encoded = encode_content(body)
    return encoded.body, encoded.length


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
