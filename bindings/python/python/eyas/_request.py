"""Requests, built from the arguments of a call."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, Union
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

from . import _headers, _timeout
from ._headers import Headers, HeaderTypes
from ._timeout import Timeout

#: The types accepted as a value in a query, and as a query.
Param = Union[str, int, float, bool, None]
ParamTypes = Union[
    Mapping[str, Union[Param, Sequence[Param]]], Sequence[tuple[str, Param]], str, None
]
#: The types accepted as a body, and those that also allow asynchronous iterables.
Content = Union[str, bytes, bytearray, memoryview, Iterable[bytes], None]
AsyncContent = Union[Content, AsyncIterable[bytes]]

#: The default maximum number of redirects, as in httpx.
MAX_REDIRECTS = 20


class Options(TypedDict, total=False):
    """The options of a request.

    `params` are appended to the query of the URL, and `headers` take precedence over those of the client.
    `auth` is a name and a password. `timeout` and `follow_redirects` override the client's settings.
    """

    params: ParamTypes
    headers: HeaderTypes
    auth: tuple[str, str] | None
    timeout: Timeout | float | None
    follow_redirects: bool


class BodyOptions(Options, total=False):
    """The options of a request with a body: `content` unchanged, `data` as a form, `json` as JSON."""

    content: Content
    data: Mapping[str, str] | None
    json: Any


class AsyncBodyOptions(Options, total=False):
    """The options of a request with a body, whose `content` may be an asynchronous iterable."""

    content: AsyncContent
    data: Mapping[str, str] | None
    json: Any


@dataclasses.dataclass(frozen=True)
class Defaults:
    """The client's defaults for requests."""

    base_url: str
    params: ParamTypes
    auth: tuple[str, str] | None
    timeout: Timeout
    follow_redirects: bool
    max_redirects: int


@dataclasses.dataclass
class Request:
    """A request, as the native part reads it."""

    method: str
    url: str
    headers: list[tuple[str, bytes]]
    body: object
    redirects: int
    connect: float | None
    idle: float | None
    total: float | None


def build_request(
    method: str, url: str, defaults: Defaults, options: AsyncBodyOptions | BodyOptions
) -> Request:
    """Builds a request from the arguments of a call."""
    fields = Headers(options.get("headers"))
    body, media_type = _body(options)
    added: list[tuple[str, bytes]] = []
    if media_type is not None and "content-type" not in fields:
        added.append(("content-type", media_type))
    auth = options.get("auth") or defaults.auth
    if auth is not None and "authorization" not in fields:
        pair = base64.b64encode(f"{auth[0]}:{auth[1]}".encode())
        added.append(("authorization", b"Basic " + pair))
    timeout = _timeout.as_timeout(options.get("timeout", defaults.timeout))
    full_url = _absolute(defaults.base_url, url)
    for params in (defaults.params, options.get("params")):
        full_url = _with_query(full_url, params)
    follows = options.get("follow_redirects", defaults.follow_redirects)
    return Request(
        method=method.upper(),
        url=full_url,
        headers=_headers.to_send(fields) + added,
        body=body,
        redirects=defaults.max_redirects if follows else 0,
        connect=timeout.connect,
        idle=timeout.read,
        total=timeout.total,
    )


def _body(options: AsyncBodyOptions | BodyOptions) -> tuple[object, bytes | None]:
    """Returns the body and its content type."""
    content, data, value = options.get("content"), options.get("data"), options.get("json")
    if sum(given is not None for given in (content, data, value)) > 1:
        raise ValueError("a request has only one body: content, data or json")
    if value is not None:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode(), b"application/json"
    if data is not None:
        return urlencode(data).encode(), b"application/x-www-form-urlencoded"
    if isinstance(content, str):
        return content.encode(), b"text/plain; charset=utf-8"
    if isinstance(content, (bytearray, memoryview)):
        return bytes(content), None
    return content, None


def _with_query(url: str, params: ParamTypes) -> str:
    """Appends parameters to the query of a URL."""
    if not params:
        return url
    if isinstance(params, str):
        query = params
    else:
        pairs = params.items() if isinstance(params, Mapping) else params
        query = urlencode([(name, _text(one)) for name, value in pairs for one in _each(value)])
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="&".join(filter(None, [parts.query, query]))))


def _each(value: Param | Sequence[Param]) -> Sequence[Param]:
    if value is None or isinstance(value, (str, int, float)):
        return [value]
    return value


def _text(value: Param) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _absolute(base_url: str, url: str) -> str:
    """Returns the URL, relative to the base URL of the client."""
    if not base_url or "://" in url:
        return url
    return urljoin(base_url.rstrip("/") + "/", url.lstrip("/"))
