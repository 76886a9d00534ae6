"""Cookies, with the API of httpx, in a jar of the standard library."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from email.message import Message
from http.cookiejar import Cookie, CookieJar
from typing import Any, Union

#: The types accepted as cookies.
CookieTypes = Union["Cookies", CookieJar, Mapping[str, str], Iterable[tuple[str, str]], None]


class Cookies(MutableMapping[str, str]):
    """Cookies by name. Those without a domain are sent to every server.

    A `CookieJar` is used itself, so what a client receives is stored there.
    """

    def __init__(self, cookies: CookieTypes = None) -> None:
        #: The jar of the standard library.
        self.jar = cookies if isinstance(cookies, CookieJar) else CookieJar()
        if not isinstance(cookies, CookieJar):
            self.update(cookies)

    def set(self, name: str, value: str, domain: str = "", path: str = "/") -> None:
        """Sets a cookie, for every server unless a domain is given."""
        self.jar.set_cookie(_cookie(name, value, domain, path))

    def get(  # type: ignore[override]
        self,
        name: str,
        default: str | None = None,
        domain: str | None = None,
        path: str | None = None,
    ) -> str | None:
        """Returns the value of a cookie; several with this name are an error."""
        values = [cookie.value for cookie in self._find(name, domain, path)]
        if len(values) > 1:
            raise ValueError(f"Multiple cookies exist with name={name}")
        return values[0] if values else default

    def delete(self, name: str, domain: str | None = None, path: str | None = None) -> None:
        """Deletes the cookies of this name."""
        for cookie in self._find(name, domain, path):
            self.jar.clear(cookie.domain, cookie.path, cookie.name)

    def clear(self, domain: str | None = None, path: str | None = None) -> None:
        """Deletes all cookies, or those of a domain, or of a path there."""
        for cookie in self._find(None, domain, path):
            self.jar.clear(cookie.domain, cookie.path, cookie.name)

    def update(self, cookies: CookieTypes = None) -> None:  # type: ignore[override]
        """Adds cookies, replacing those with the same name, domain and path."""
        if isinstance(cookies, (Cookies, CookieJar)):
            for cookie in cookies.jar if isinstance(cookies, Cookies) else cookies:
                self.jar.set_cookie(cookie)
            return
        pairs = cookies.items() if isinstance(cookies, Mapping) else cookies or ()
        for name, value in pairs:
            self.set(name, value)

    def _find(self, name: str | None, domain: str | None, path: str | None) -> list[Cookie]:
        return [
            cookie
            for cookie in self.jar
            if (name is None or cookie.name == name)
            and (domain is None or cookie.domain == domain)
            and (path is None or cookie.path == path)
        ]

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: str) -> None:
        self.set(name, value)

    def __delitem__(self, name: str) -> None:
        self.delete(name)

    def __iter__(self) -> Iterator[str]:
        return iter([cookie.name for cookie in self.jar])

    def __len__(self) -> int:
        return len(self.jar)

    def __bool__(self) -> bool:
        # The jar counts all of its cookies for its length.
        return next(iter(self.jar), None) is not None

    def __repr__(self) -> str:
        shown = ", ".join(f"{cookie.name} for {cookie.domain or 'all'}" for cookie in self.jar)
        return f"<eyas.Cookies [{shown}]>"

    # Called by the native part, for each hop of a chain of redirects.

    def _field_for(self, url: str) -> bytes | None:
        """Returns the `Cookie` field of a request to a URL."""
        request = urllib.request.Request(url)
        self.jar.add_cookie_header(request)
        field = request.get_header("Cookie")
        return None if field is None else field.encode("utf-8")

    def _store(self, url: str, fields: list[bytes]) -> None:
        """Stores the `Set-Cookie` fields of a response to a URL."""
        self.jar.extract_cookies(_Answer(fields), urllib.request.Request(url))  # type: ignore[arg-type]


class _Answer:
    """The `Set-Cookie` fields of a response, in the form that the jar expects."""

    def __init__(self, fields: list[bytes]) -> None:
        self._message = Message()
        for field in fields:
            self._message["Set-Cookie"] = field.decode("latin-1")

    def info(self) -> Message:
        return self._message


def merged(cookies: Cookies, added: Any) -> Cookies:
    """Returns the cookies of a client and those of one request."""
    if added is None:
        return cookies
    together = Cookies()
    together.update(cookies)
    together.update(added)
    return together


def _cookie(name: str, value: str, domain: str, path: str) -> Cookie:
    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError(f"the cookie {name!r} and its value must be str, not {type(value)}")
    return Cookie(
        version=0,
        name=name,
        value=value,
        port=None,
        port_specified=False,
        domain=domain,
        domain_specified=bool(domain),
        domain_initial_dot=domain.startswith("."),
        path=path,
        path_specified=bool(path),
        secure=False,
        expires=None,
        discard=True,
        comment=None,
        comment_url=None,
        rest={"HttpOnly": ""},
        rfc2109=False,
    )
