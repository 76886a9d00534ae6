"""URLs: relative to a base URL, and with parameters in their query, as httpx has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Union, cast
from urllib.parse import parse_qsl, quote, urlencode

from ._errors import InvalidURL

#: The types accepted as a value in a query, and as a query.
Param = Union[str, int, float, bool, None]
ParamTypes = Union[
    Mapping[str, Union[Param, Sequence[Param]]], Iterable[tuple[str, Param]], str, bytes, None
]

#: RFC 3986, appendix B. A scheme is one only if its first character is a letter (§3.1).
_PARTS = re.compile(
    r"(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)
#: What is left as it is: everything printable but the percent-encode sets of the URL standard.
_QUERY_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"#<>')
_PATH_SAFE = "".join(sign for sign in _QUERY_SAFE if sign not in "?`{}")
#: The native part would read a backslash as a slash (as browsers do), and httpx sends it.
_BACKSLASH = ("\\", "%5C")
#: An absolute URL that stays as it is: none of its parts has anything to encode.
_PLAIN = re.compile(f"https?://[{re.escape(_PATH_SAFE.replace(_BACKSLASH[0], '?'))}]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class _Parts(NamedTuple):
    scheme: str
    authority: str | None
    path: str
    query: str | None
    fragment: str | None

    @property
    def is_absolute(self) -> bool:
        return bool(self.scheme and self.authority)

    @property
    def target(self) -> str:
        """The path and the query."""
        return self.path + ("" if self.query is None else f"?{self.query}")


def text_of(url: object) -> str:
    """Returns the text of a URL, which may also be an object that represents one, such as `httpx.URL`."""
    if isinstance(url, str):
        return url
    if hasattr(url, "scheme") and hasattr(url, "host"):
        return str(url)
    raise TypeError(f"Invalid type for url.  Expected str or httpx.URL, got {type(url)}: {url!r}")


def absolute(base_url: str, url: str, defaults: ParamTypes, params: ParamTypes) -> str:
    """Returns the URL of a request: `url` below `base_url`, with the parameters added to its query."""
    if not defaults and not params and _PLAIN.fullmatch(url):
        return url
    parts = _parse(url)
    if base_url and not parts.is_absolute:
        parts = _below(_parse(base_url), parts)
    if defaults or params:
        # A parameter of the request replaces that of the same name of the client.
        query = urlencode({**_values(defaults), **_values(params)}, doseq=True)
        parts = parts._replace(query="&".join(filter(None, [parts.query, query])))
    return _join(parts)


def _below(base: _Parts, parts: _Parts) -> _Parts:
    """Appends a relative URL to a base, whose path counts as a directory. Its query belongs to that path, too."""
    target = base.target if base.target.endswith("/") else base.target + "/"
    path, mark, query = (target + (parts.path or "/").lstrip("/")).partition("?")
    queries = [query] if mark else []
    if parts.query is not None:
        queries.append(parts.query)
    return base._replace(path=path, query="?".join(queries) if queries else None, fragment=None)


def _parse(url: str) -> _Parts:
    control = _CONTROL.search(url)
    if control is not None:
        raise InvalidURL(f"the URL contains the control character {control[0]!r}")
    matched = _PARTS.fullmatch(url)
    # Every part may be empty, so every text has this form.
    assert matched is not None
    scheme, authority, path, query, fragment = matched.groups()
    path = quote(path, safe=_PATH_SAFE).replace(*_BACKSLASH)
    query = None if query is None else quote(query, safe=_QUERY_SAFE)
    return _Parts((scheme or "").lower(), authority, path, query, fragment)


def _join(parts: _Parts) -> str:
    scheme = f"{parts.scheme}:" if parts.scheme else ""
    authority = "" if parts.authority is None else f"//{parts.authority}"
    fragment = "" if parts.fragment is None else f"#{parts.fragment}"
    return f"{scheme}{authority}{parts.target}{fragment}"


def _values(params: ParamTypes) -> dict[str, list[str]]:
    """Returns the values of each name, in the order in which the names first appear."""
    pairs: Iterable[tuple[object, object]]
    if params is None:
        return {}
    if isinstance(params, (str, bytes)):
        text = params.decode("ascii") if isinstance(params, bytes) else params
        pairs = parse_qsl(text, keep_blank_values=True)
    elif isinstance(params, Mapping):
        pairs = cast("Iterable[tuple[object, object]]", params.items())
    else:
        pairs = params
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        many = value if isinstance(value, (list, tuple)) else [value]
        values.setdefault(str(name), []).extend(map(primitive, many))
    return values


def primitive(value: object) -> str:
    """Returns a value of a query or form as text, with the constants of JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
