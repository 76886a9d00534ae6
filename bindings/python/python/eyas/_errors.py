"""What can go wrong.

Every class has the word of httpx where httpx has one, and is also the built-in exception that fits, so
that `except ConnectionError` and `except TimeoutError` catch what they say.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from ._response import Response


class Error(Exception):
    """What every error of eyas is.

    `kind` names it as `eyas get --json` does, `url` is what was asked for, `candidates` are the ways
    that were tried with the cause of their failure, and `causes` all causes, what tells most first.
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
    """No candidate came up: each of them is in `candidates`, with its cause."""


class ResolveError(ConnectError):
    """DNS returned no address."""


class TLSError(ConnectError):
    """The security layer failed."""


class CertificateError(TLSError):
    """The peer's certificate was not accepted."""


class ProxyError(ConnectError):
    """The proxy could not be reached, or refused."""


class TimeoutException(Error, TimeoutError):
    """A limit of the caller's was reached."""


class ConnectTimeout(TimeoutException, ConnectError):
    """There was no connection within the time allowed."""


class ReadTimeout(TimeoutException):
    """The peer stayed silent for longer than allowed."""


class TotalTimeout(TimeoutException):
    """The whole exchange took longer than allowed."""


class RemoteProtocolError(Error):
    """The peer broke HTTP, or closed before it answered."""


class ReadError(Error):
    """The body of the response is not complete, or not what its head promised."""


class WriteError(Error):
    """The body of the request could not be had; `__cause__` is what it raised."""


class DecodingError(Error):
    """The body of the response cannot be decompressed."""


class JSONDecodeError(DecodingError, json.JSONDecodeError):
    """The body of the response is not the JSON that it was read as."""

    def __init__(self, msg: str, doc: str = "", pos: int = 0) -> None:
        json.JSONDecodeError.__init__(self, msg, doc, pos)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.msg, self.doc, self.pos), self.__dict__


class TooManyRedirects(Error):
    """There were too many redirects, or one that may not be followed."""


class ClientClosed(Error, RuntimeError):
    """The client was closed."""


class StreamConsumed(Error, RuntimeError):
    """The body was read already, and a stream has one go."""


class StreamClosed(Error, RuntimeError):
    """The response was closed before its body was read."""


class AssociationLost(Error, ConnectionError):
    """The association of SCTP ended, and not in order: the message says how."""


class AssociationClosed(Error, ConnectionError):
    """The association of SCTP is over, or about to end, and takes nothing more."""


class HTTPStatusError(Error):
    """`raise_for_status` found a status of 400 or more in `response`."""

    response: Response


class Facts(TypedDict):
    """What the native part says of an error."""

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


def of(facts: Facts) -> Error:
    """The exception that says this."""
    error = _CLASSES.get(facts["kind"], Error)(facts["message"])
    error.kind = facts["kind"]
    error.url = facts["url"]
    error.candidates = tuple(facts["candidates"])
    error.causes = tuple(facts["causes"])
    return error
