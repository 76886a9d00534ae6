"""From the arguments of a call to a request."""

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

#: What is taken for one value of a query, and for a query.
Param = Union[str, int, float, bool, None]
ParamTypes = Union[
    Mapping[str, Union[Param, Sequence[Param]]], Sequence[tuple[str, Param]], str, None
]
#: What is taken for a body, and what for one that a coroutine makes.
Content = Union[str, bytes, bytearray, memoryview, Iterable[bytes], None]
AsyncContent = Union[Content, AsyncIterable[bytes]]

#: Redirects that are followed, as with httpx.
MAX_REDIRECTS = 20


class Options(TypedDict, total=False):
    """What every request may say for itself.

    `params` go behind the query that the URL has, `headers` before those of the client, `auth` is a
    name and a password. `timeout` and `follow_redirects` stand in place of what the client says.
    """

    params: ParamTypes
    headers: HeaderTypes
    auth: tuple[str, str] | None
    timeout: Timeout | float | None
    follow_redirects: bool


class BodyOptions(Options, total=False):
    """The same with a body: `content` as it is, `data` as a form, `json` as JSON."""

    content: Content
    data: Mapping[str, str] | None
    json: Any


class AsyncBodyOptions(Options, total=False):
    """The same, where a coroutine may make the `content`."""

    content: AsyncContent
    data: Mapping[str, str] | None
    json: Any


@dataclasses.dataclass(frozen=True)
class Defaults:
    """What a client says for requests that do not say otherwise."""

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


def build(
    method: str, url: str, defaults: Defaults, options: AsyncBodyOptions | BodyOptions
) -> Request:
    """The request that the arguments describe."""
    fields = Headers(options.get("headers"))
    body, media_type = _body(options)
    added: list[tuple[str, bytes]] = []
    if media_type is not None and "content-type" not in fields:
        added.append(("content-type", media_type))
    auth = options.get("auth") or defaults.auth
    if auth is not None and "authorization" not in fields:
        pair = base64.b64encode(f"{auth[0]}:{auth[1]}".encode())
        added.append(("authorization", b"Basic " + pair))
    timeout = _timeout.of(options.get("timeout", defaults.timeout))
    whole = _absolute(defaults.base_url, url)
    for params in (defaults.params, options.get("params")):
        whole = _with_query(whole, params)
    follows = options.get("follow_redirects", defaults.follow_redirects)
    return Request(
        method=method.upper(),
        url=whole,
        headers=_headers.to_send(fields) + added,
        body=body,
        redirects=defaults.max_redirects if follows else 0,
        connect=timeout.connect,
        idle=timeout.read,
        total=timeout.total,
    )


def _body(options: AsyncBodyOptions | BodyOptions) -> tuple[object, bytes | None]:
    """The body and what it is."""
    content, data, value = options.get("content"), options.get("data"), options.get("json")
    if sum(given is not None for given in (content, data, value)) > 1:
        raise ValueError("a request has one body: content, data or json")
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
    """The URL with these parameters behind those that it has."""
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
    """The URL, beneath the one that the client was given."""
    if not base_url or "://" in url:
        return url
    return urljoin(base_url.rstrip("/") + "/", url.lstrip("/"))
