"""Requests, built from the arguments of a call."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from typing import Any, TypedDict, Union

from . import _cookies, _headers, _timeout, _url
from ._content import AsyncContent as AsyncContent
from ._content import Content as Content
from ._content import Encoded, FormTypes, encode_content, encode_form, encode_json, encode_raw_data
from ._cookies import Cookies, CookieTypes
from ._headers import Headers, HeaderTypes
from ._multipart import FilesTypes, encode_multipart
from ._timeout import Timeout, TimeoutTypes
from ._url import ParamTypes as ParamTypes

#: The default maximum number of redirects, as in httpx.
MAX_REDIRECTS = 20

#: A name and a password.
AuthTypes = Union[tuple[Union[str, bytes], Union[str, bytes]], None]


class Options(TypedDict, total=False):
    """The options of a request.

    `params` are added to the query of the URL, and `headers` and `cookies` to those of the client; each takes
    precedence over one of the same name. `auth` is a name and a password. `timeout` and `follow_redirects` override the
    client's settings.
    """

    params: ParamTypes
    headers: HeaderTypes
    cookies: CookieTypes
    auth: AuthTypes
    timeout: TimeoutTypes
    follow_redirects: bool


class BodyOptions(Options, total=False):
    """The options of a request with a body: `content` unchanged, `data` as a form, also with `files`, `json` as JSON."""

    content: Content
    data: FormTypes
    files: FilesTypes
    json: Any


class AsyncBodyOptions(Options, total=False):
    """The options of a request with a body, whose `content` may be an asynchronous iterable."""

    content: AsyncContent
    data: FormTypes
    files: FilesTypes
    json: Any


#: The methods for which a body of no length is announced (RFC 9110 §8.6).
_WITH_BODY = {"POST", "PUT", "PATCH"}
#: The names of the options, without and with those of a body.
OPTIONS = frozenset(Options.__annotations__)
_BODY = frozenset(BodyOptions.__annotations__) - OPTIONS
BODY_OPTIONS = OPTIONS | _BODY


@dataclasses.dataclass
class Defaults:
    """The client's defaults for requests."""

    base_url: str
    params: ParamTypes
    headers: Headers
    cookies: Cookies
    auth: AuthTypes
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
    #: The length of a body that is an iterable, if it is known.
    length: int | None = None
    #: Whether that iterable gives the same bytes whenever it is iterated over.
    is_repeatable: bool = False
    #: Whether the client may have cookies for any server.
    has_cookies: bool = False


def check_options(function: str, options: Mapping[str, object], allowed: frozenset[str]) -> None:
    """Raises a `TypeError` for an unknown option, as a function without `**options` would."""
    for name in options:
        if name not in allowed:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def build_request(
    method: str, url: object, defaults: Defaults, options: AsyncBodyOptions | BodyOptions
) -> Request:
    """Builds a request from the arguments of a call."""
    fields = Headers(defaults.headers)
    if (added := options.get("headers")) is not None:
        fields.update(added)
    encoded = _encode(options, fields)
    if encoded.media_type is not None and "content-type" not in fields:
        fields["content-type"] = encoded.media_type
    auth = _credentials(options.get("auth", defaults.auth))
    if auth is not None:
        fields["authorization"] = auth
    full_url = _url.absolute(
        defaults.base_url, _url.text_of(url), defaults.params, options.get("params")
    )
    cookies = _cookies.merged(defaults.cookies, options.get("cookies"))
    if cookies and "cookie" not in fields and (field := cookies._field_for(full_url)):
        fields["cookie"] = field
    verb = _method(method)
    if encoded.body is None and verb in _WITH_BODY:
        if "content-length" not in fields and "transfer-encoding" not in fields:
            fields["content-length"] = "0"
    timeout = _timeout.as_timeout(options.get("timeout", defaults.timeout))
    follows = options.get("follow_redirects", defaults.follow_redirects)
    return Request(
        method=verb,
        url=full_url,
        headers=_headers.to_send(fields),
        body=encoded.body,
        redirects=defaults.max_redirects if follows else 0,
        connect=timeout.connect,
        idle=timeout.read,
        total=timeout.total,
        length=encoded.length,
        has_cookies=bool(defaults.cookies),
    )


def _encode(options: AsyncBodyOptions | BodyOptions, fields: Headers) -> Encoded:
    """Encodes the body, of which there is at most one."""
    if options.keys().isdisjoint(_BODY):
        return Encoded()
    content, data = options.get("content"), options.get("data")
    files, value = options.get("files"), options.get("json")
    if sum(given is not None for given in (content, data if data is not None else files, value)) > 1:
        raise ValueError("a request has only one body: content, data (with files) or json")
    if content is not None:
        return encode_content(content)
    if data is not None and not isinstance(data, Mapping):
        if files:
            raise TypeError(f"Invalid type for 'data' of a form with files, {type(data)!r}")
        return encode_raw_data(data, stacklevel=6)
    if files:
        return encode_multipart(data or {}, files, fields.get("content-type"))
    if data:
        return encode_form(data)
    return Encoded() if value is None else encode_json(value)


def _method(method: object) -> str:
    if isinstance(method, bytes):
        return method.decode("ascii").upper()
    if isinstance(method, str):
        return method.upper()
    raise TypeError(f"Invalid type for method.  Expected str, got {type(method)}: {method!r}")


def _credentials(auth: object) -> str | None:
    """Returns the `Authorization` field (RFC 7617)."""
    if auth is None:
        return None
    if not isinstance(auth, tuple) or len(auth) != 2:
        raise TypeError(f'Invalid "auth" argument: {auth!r}')
    pair = [part.encode() if isinstance(part, str) else part for part in auth]
    if not all(isinstance(part, bytes) for part in pair):
        raise TypeError('Invalid "auth" argument: the name and password must be str or bytes')
    return "Basic " + base64.b64encode(b":".join(pair)).decode("ascii")
