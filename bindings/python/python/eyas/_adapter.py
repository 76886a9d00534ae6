"""What adapters for requests and niquests have in common: requests out, responses in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from types import ModuleType
from typing import Any
from urllib.parse import urldefrag

from . import _errors
from ._client import Client, answer
from ._endpoint import Endpoint
from ._reports import ConnectionInfo
from ._request import Request
from ._response import Response

#: What the version of HTTP at hand says in its own way.
_OWN = {"host", "connection", "transfer-encoding"}
#: What is read at once of a file that is sent, in bytes.
_CHUNK = 64 * 1024

#: Our errors and what `requests.exceptions` calls them.
_CLASSES: tuple[tuple[type[_errors.Error], str], ...] = (
    (_errors.ConnectTimeout, "ConnectTimeout"),
    (_errors.TimeoutException, "ReadTimeout"),
    (_errors.ProxyError, "ProxyError"),
    (_errors.TLSError, "SSLError"),
    (_errors.ConnectError, "ConnectionError"),
    (_errors.InvalidURL, "InvalidURL"),
    (_errors.LocalProtocolError, "InvalidHeader"),
    (_errors.Error, "ConnectionError"),
)


class Races:
    """Sends requests by eyas, for what is an `HTTPAdapter` otherwise."""

    #: The library, and the urllib3 that it reads responses with.
    _library: ModuleType
    _urllib3: ModuleType
    #: Makes the library's response of one of urllib3.
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
        with self._translated(request):
            client = self._clients.of(verify, cert, proxy)
            answered = send(client, request, timeout)
        raw = self._urllib3.HTTPResponse(
            body=Body(answered, self._failed),
            headers=self._urllib3.HTTPHeaderDict(answered.headers.multi_items()),
            status=answered.status_code,
            reason=answered.reason_phrase,
            preload_content=False,
            original_response=Head(answered),
            request_method=request.method,
        )
        response = self.build_response(request, raw)
        if not stream:
            _ = response.content
        return response

    def close(self) -> None:
        """Closes its connections."""
        self._clients.close()

    @contextmanager
    def _translated(self, request: Any) -> Iterator[None]:
        """Errors in the words of requests."""
        exceptions = self._library.exceptions
        try:
            yield
        except _errors.WriteError as error:
            if error.__cause__ is None:
                raise exceptions.ConnectionError(error, request=request) from error
            # What makes the body is the caller's, and so is what it raises.
            raise error.__cause__ from None
        except _errors.Error as error:
            name = next(name for own, name in _CLASSES if isinstance(error, own))
            raise getattr(exceptions, name)(error, request=request) from error

    def _failed(self, error: _errors.Error) -> Exception:
        """What the library expects of a body that fails."""
        exceptions = self._urllib3.exceptions
        if isinstance(error, _errors.WriteError) and isinstance(error.__cause__, Exception):
            return error.__cause__
        if isinstance(error, _errors.TimeoutException):
            timeout: Exception = exceptions.ReadTimeoutError(None, None, str(error))
            return timeout
        broken: Exception = exceptions.ProtocolError(str(error), error)
        return broken


class Clients:
    """A client for each way to trust, to show a certificate, and to take a proxy."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = {"timeout": None, **options}
        self._clients: dict[tuple[object, object, str | None], Client] = {}
        self._lock = threading.Lock()

    def of(self, verify: Any, cert: Any, proxy: str | None) -> Client:
        """The client for these; made if it is not there. Trust of the adapter's own goes first."""
        if not {"verify", "endpoint"}.isdisjoint(self._options):
            verify, cert = True, None
        with self._lock:
            client = self._clients.get((verify, cert, proxy))
            if client is None:
                client = self._made(verify, cert, proxy)
                self._clients[verify, cert, proxy] = client
            return client

    def _made(self, verify: Any, cert: Any, proxy: str | None) -> Client:
        options = dict(self._options)
        if verify is not True or cert is not None:
            pair = (cert, cert) if isinstance(cert, str) else cert
            options["endpoint"] = Endpoint(verify=verify, cert=pair)
        if proxy is not None:
            options["proxy"] = proxy
        # The library has looked there already.
        return Client(**{**options, "trust_env": False})

    def close(self) -> None:
        """Closes the connections of all of them."""
        with self._lock:
            clients = list(self._clients.values())
            self._clients.clear()
        for client in clients:
            client.close()


def send(client: Client, request: Any, timeout: Any) -> Response:
    """Sends a prepared request."""
    connect, read = _limits(timeout)
    return answer(
        client._open(),
        Request(
            method=str(request.method),
            url=urldefrag(_text(request.url))[0],
            headers=[
                (_text(name), value if isinstance(value, bytes) else str(value).encode())
                for name, value in request.headers.items()
                if _text(name).lower() not in _OWN
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
    """Seconds to connect and to wait for the peer: a number, a pair, or what urllib3 has for it."""
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


class Head:
    """The head of a response as the cookie jar of the standard library wants it."""

    def __init__(self, response: Response) -> None:
        self.msg = Message()
        for name, value in response.headers.multi_items():
            self.msg[name] = value
        #: What it came over.
        self.info: ConnectionInfo = response.info

    def isclosed(self) -> bool:
        """The connection is not for others to take back."""
        return False

    def close(self) -> None:
        """There is nothing to close but the body."""


class Body:
    """The body of a response as the file that urllib3 reads."""

    def __init__(
        self, response: Response, failed: Callable[[_errors.Error], Exception]
    ) -> None:
        self._response, self._failed = response, failed
        self._chunks = response.iter_bytes()
        self._kept = b""
        self.closed = False

    def read(self, size: int | None = None) -> bytes:
        """So many bytes or fewer, none at the end; everything without a size."""
        if size is None or size < 0:
            whole = [self._kept]
            self._kept = b""
            while piece := self._next():
                whole.append(piece)
            return b"".join(whole)
        data = self._kept or self._next()
        self._kept = data[size:]
        return data[:size]

    read1 = read

    def _next(self) -> bytes:
        try:
            return next((chunk for chunk in self._chunks if chunk), b"")
        except _errors.Error as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Gives up what is left."""
        self.closed = True
        self._response.close()


def info_of(response: Any) -> ConnectionInfo:
    """What a response came over."""
    head = getattr(response.raw, "_original_response", None)
    if not isinstance(head, Head):
        raise TypeError("the response did not come over an adapter of eyas")
    return head.info
