"""The exceptions.

They are named as in httpx, where httpx has a counterpart, and also derive from the matching built-in exception, so
that `except ConnectionError` and `except TimeoutError` work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from ._response import Response


class Error(Exception):
    """The base class of all exceptions of eyas.

    `kind` is the kind of error as in `eyas get --json`, `url` the requested URL. `candidates` are the candidates that
    were tried, each with the cause of its failure, and `causes` all causes, most informative first.
    """

    kind: str = "error"
    url: str | None = None
    candidates: Sequence[tuple[str, str]] = ()
    causes: Sequence[str] = ()


class InvalidURL(Error, ValueError):
    """The URL or the host cannot be used."""


class LocalProtocolError(Error, ValueError):
    """The request cannot be sent as it is."""


class ConnectError(Error, ConnectionError):
    """No candidate could be connected; `candidates` has the cause for each."""


class ResolveError(ConnectError):
    """DNS returned no address."""


class TLSError(ConnectError):
    """The security layer failed."""


class CertificateError(TLSError):
    """The peer's certificate is not valid."""


class ProxyError(ConnectError):
    """The proxy could not be reached, or rejected the request."""


class TimeoutException(Error, TimeoutError):
    """A time limit was reached."""


class ConnectTimeout(TimeoutException, ConnectError):
    """No connection was established within the time limit."""


class ReadTimeout(TimeoutException):
    """The peer sent nothing for longer than the time limit."""


class TotalTimeout(TimeoutException):
    """The whole exchange took longer than the time limit."""


class RemoteProtocolError(Error):
    """The peer violated the protocol, or closed the connection without a response."""


class ReadError(Error):
    """The body of the response is incomplete, or does not match its header fields."""


class WriteError(Error):
    """The source of the request body raised an exception, which is the `__cause__`."""


class DecodingError(Error):
    """The body of the response cannot be decompressed."""


class JSONDecodeError(DecodingError, json.JSONDecodeError):
    """The body of the response is not valid JSON."""

    def __init__(self, msg: str, doc: str = "", pos: int = 0) -> None:
        json.JSONDecodeError.__init__(self, msg, doc, pos)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.msg, self.doc, self.pos), self.__dict__


class TooManyRedirects(Error):
    """There were too many redirects, or one that may not be followed."""


class ClientClosed(Error, RuntimeError):
    """The client was closed."""


class StreamConsumed(Error, RuntimeError):
    """The body was already read; a stream can be read only once."""


class StreamClosed(Error, RuntimeError):
    """The response was closed before its body was read."""


class AssociationLost(Error, ConnectionError):
    """The SCTP association ended abnormally, as the message explains."""


class AssociationClosed(Error, ConnectionError):
    """The SCTP association has been shut down, or is about to be, and accepts nothing more."""


class HTTPStatusError(Error):
    """`raise_for_status` found a status other than 2xx in `response`."""

    response: Response


class ErrorFields(TypedDict):
    """The fields of an error, as the native part passes them."""

    kind: str
    message: str
    url: str | None
    candidates: list[tuple[str, str]]
    causes: list[str]


_CLASSES: dict[str, type[Error]] = {
    "url": InvalidURL,
    "request": LocalProtocolError,
    "dns": ResolveError,
    "connect": ConnectError,
    "tls": TLSError,
    "certificate": CertificateError,
    "proxy": ProxyError,
    "connect-timeout": ConnectTimeout,
    "total-timeout": TotalTimeout,
    "idle-timeout": ReadTimeout,
    "protocol": RemoteProtocolError,
    "redirect": TooManyRedirects,
    "body-reset": ReadError,
    "body-truncated": ReadError,
    "body-length": ReadError,
    "body-too-large": ReadError,
    "body-decode": DecodingError,
    "body-json": JSONDecodeError,
    "status": HTTPStatusError,
    "request-body": WriteError,
    "closed": ClientClosed,
    "association-lost": AssociationLost,
    "association-closed": AssociationClosed,
}


def from_native(fields: ErrorFields) -> Error:
    """Creates an exception from its fields."""
    error = _CLASSES.get(fields["kind"], Error)(fields["message"])
    error.kind = fields["kind"]
    error.url = fields["url"]
    error.candidates = tuple(fields["candidates"])
    error.causes = tuple(fields["causes"])
    return error
