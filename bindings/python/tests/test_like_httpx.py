"""The same calls of httpx and eyas: what the server receives, and what is raised, must be the same.

`DIFFERENCES` lists where eyas differs on purpose; docs/guide/from-httpx.md has them for users.
"""

from __future__ import annotations

import gzip
import http.cookiejar
import io
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from recording import Received, Recorder

import eyas

#: A call: it gets the library, the arguments of a client, and the URL of the server.
Call = Callable[[Any, Callable[..., Any], str], Any]

#: Exceptions that have another name in eyas.
NAMES = {
    "UnsupportedProtocol": "InvalidURL",
    "CookieConflict": "ValueError",
    "ResponseNotRead": "StreamConsumed",
}

#: Files that the calls have opened.
OPENED: list[Any] = []

#: What has no other place in the name of a file part.
ODD = 'a "quoted"\\ näme\r\n.txt'


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.close()


class Pipe(io.RawIOBase):
    """A file that can neither seek nor tell its length."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._content.readinto(buffer)


def chunks() -> Iterator[bytes]:
    yield b"one"
    yield b"two"


def named_file(content: bytes, suffix: str = ".bin") -> Any:
    """Returns an open file whose name is the same in each call."""
    path = os.path.join(tempfile.gettempdir(), f"eyas-{os.getpid()}{suffix}")
    with open(path, "wb") as file:
        file.write(content)
    OPENED.append(open(path, "rb"))
    os.unlink(path)
    return OPENED[-1]


def get(url: Any, **options: Any) -> Call:
    return lambda _, client, base: client(base_url=base).get(url, **options)


def below(base: str, url: Any, **options: Any) -> Call:
    return lambda _, client, root: client(base_url=root + base).get(url, **options)


def post(make: Callable[[], dict[str, Any]]) -> Call:
    """The arguments are made for each call, because files and iterators are used up."""
    return lambda _, client, base: client(base_url=base).post("/p", **make())


def with_client(make: Callable[[], dict[str, Any]], **options: Any) -> Call:
    return lambda _, client, base: client(base_url=base, **make()).get("/c", **options)


def lines(text: str) -> Call:
    def call(_: Any, client: Callable[..., Any], base: str) -> list[str]:
        with client(base_url=base).stream("GET", f"/text/{text}") as response:
            return list(response.iter_lines())

    return call


def cookies_of(*steps: str, **options: Any) -> Call:
    def call(_: Any, client: Callable[..., Any], base: str) -> Any:
        one = client(base_url=base, **options)
        for step in steps:
            last = one.get(step, follow_redirects=True)
        return dict(one.cookies), dict(last.cookies)

    return call


def changed_headers(_: Any, client: Callable[..., Any], base: str) -> None:
    one = client(base_url=base, headers={"A": "1", "B": "1"})
    one.headers["b"] = "2"
    one.headers.update({"C": "3"})
    del one.headers["A"]
    one.get("/h", headers=[("C", "4"), ("c", "5")])


def changed_cookies(_: Any, client: Callable[..., Any], base: str) -> Any:
    one = client(base_url=base, cookies={"a": "1", "b": "2"})
    one.cookies["a"] = "3"
    one.cookies.set("far", "1", domain="example.org")
    del one.cookies["b"]
    one.get("/c")
    one.cookies.clear()
    one.get("/c")
    one.cookies = {"n": "1"}
    one.get("/c", cookies={"m": "2"})
    return len(one.cookies)


def own_jar(_: Any, client: Callable[..., Any], base: str) -> list[str]:
    jar = http.cookiejar.CookieJar()
    client(base_url=base, cookies=jar).get("/set/kept=1")
    return [cookie.name for cookie in jar]


def answered(path: str, read: Callable[[Any], Any], **options: Any) -> Call:
    """Returns what `read` makes of a response."""

    def call(_: Any, client: Callable[..., Any], base: str) -> Any:
        return read(client(base_url=base, **options).get(path))

    return call


def streamed(path: str, read: Callable[[Any], Any]) -> Call:
    """Returns what `read` makes of a response whose body has not been read."""

    def call(_: Any, client: Callable[..., Any], base: str) -> Any:
        with client(base_url=base).stream("GET", path) as response:
            return read(response)

    return call


def with_encoding(response: Any) -> Any:
    response.encoding = "cp1252"
    return response.encoding, response.text


def read_twice(response: Any) -> Any:
    return list(response.iter_bytes(5)), list(response.iter_bytes(5))


def read_after_read(response: Any) -> Any:
    return response.read(), list(response.iter_bytes(4)), list(response.iter_text(4)), response.text


def facts(response: Any) -> Any:
    names = ("informational", "success", "redirect", "client_error", "server_error", "error")
    flags = [getattr(response, f"is_{name}") for name in names]
    return response.status_code, response.has_redirect_location, flags


def raised_for(status: int) -> Call:
    def call(_: Any, client: Callable[..., Any], base: str) -> Any:
        response = client(base_url=base).get(f"/status/{status}")
        return response.raise_for_status() is response

    return call


def history(response: Any) -> Any:
    port = str(response.url).partition("1:")[2].partition("/")[0]
    urls = [str(one.url) for one in (*response.history, response)]
    return [one.status_code for one in response.history], [url.replace(port, "") for url in urls]


def to_another_origin(status: int, method: str, **options: Any) -> Call:
    def call(_: Any, client: Callable[..., Any], base: str) -> Any:
        one = client(base_url=base, follow_redirects=True, **options)
        response = one.request(method, f"/far/{status}/set/b=2", content=b"x")
        return response.status_code, len(response.history)

    return call


def domains(*domains: str) -> Call:
    """A cookie of each domain, sent to 127.0.0.1 and, if that is where it belongs, to localhost."""

    def call(_: Any, client: Callable[..., Any], base: str) -> Any:
        one = client(base_url=base)
        for number, domain in enumerate(domains):
            one.cookies.set(f"c{number}", "1", domain=domain)
        one.get("/c")
        one.get(base.replace("127.0.0.1", "localhost") + "/c")
        return len(one.cookies), one.cookies.get("c0", domain=domains[0])

    return call


def redirected(status: int, method: str, **options: Any) -> Call:
    def call(_: Any, client: Callable[..., Any], base: str) -> int:
        one = client(base_url=base, follow_redirects=True)
        code: int = one.request(method, f"/to/{status}/end?a=b", **options).status_code
        return code

    return call


FORM = {"s": "a b&=ü", "n": 1, "f": 1.5, "t": True, "u": False, "none": None, "e": ""}

ROWS: dict[str, Call] = {
    # URLs.
    "colon": get("a:b"),
    "colon-after-slash": get("/a:b"),
    "colon-in-second-segment": get("x/a:b"),
    "url-in-query": get("/x?y=http://z"),
    "url-in-query-relative": get("x?y=http://z/?a=b:c"),
    "digits-and-colon": get("1:2"),
    "host-and-port-is-a-path": get("localhost:80/x"),
    "leading-colon": get("/:a"),
    "base-path": below("/base", "x"),
    "base-path-slash": below("/base/", "/x"),
    "base-with-colon": below("/v1:beta", "m:run"),
    "base-and-query-only": below("/base", "?q=1"),
    "base-and-empty": below("/base", ""),
    "base-and-slash": below("/base", "/"),
    "base-and-dots": below("/base", "../b/./c"),
    "base-and-two-slashes": below("/base", "//x/y"),
    "base-and-absolute": lambda _, client, base: client(base_url="http://192.0.2.1/").get(f"{base}/z"),
    "fragment": get("/f#part"),
    "empty-query": get("/x?"),
    "space-and-umlaut": get("/ä b?ö=ü ü"),
    "percent": get("/a%2Fb%20c?d=%26"),
    "brackets": get("/[]@!$&()*+,;=~|^?[]@!$&()*+,;=~|^`{}"),
    "upper-case-scheme": lambda _, client, base: client().get(base.replace("http", "HTTP") + "/u"),
    "url-object": lambda _, client, base: client().get(httpx.URL(base + "/o")),
    "url-of-int": get(5),
    "url-of-none": get(None),
    "url-of-bytes": get(b"/x"),
    "unknown-scheme": lambda _, client, base: client().get("ftp://127.0.0.1/"),
    "no-scheme": lambda _, client, base: client().get("127.0.0.1/"),
    "control-character": get("/a\nb"),
    # Parameters.
    "params": get("/p", params={"a": [1, True, None, "x y"], "b": False, "ü": "~*'()"}),
    "params-pairs": get("/p", params=[("a", 1), ("b", 2), ("a", 3)]),
    "params-text": get("/p", params="a=1&b=2 3&c"),
    "params-bytes": get("/p", params=b"a=1"),
    "params-tuple-value": get("/p", params={"a": ("x", "y")}),
    "params-none": get("/p", params=None),
    "params-float": get("/p", params={"a": 1.5}),
    "params-of-client": lambda _, client, base: client(base_url=base, params={"a": 1, "b": 2}).get(
        "/p", params={"b": [3, 4], "c": 5}
    ),
    "params-empty": get("/p", params={}),
    "params-empty-list": get("/p", params={"a": []}),
    "params-empty-value": get("/p", params={"a": ""}),
    "params-removed": lambda _, client, base: client(base_url=base, params={"a": 1}).get(
        "/p", params={"a": None}
    ),
    "params-pairs-over-client": lambda _, client, base: client(
        base_url=base, params=[("a", 1), ("a", 2), ("b", 3)]
    ).get("/p", params=[("b", 4), ("c", 5), ("b", 6)]),
    "params-text-over-client": lambda _, client, base: client(
        base_url=base, params={"a": 1, "b": 2}
    ).get("/p", params="b=3&b=4"),
    "params-only-client-and-fragment": lambda _, client, base: client(
        base_url=base, params={"a": 1}
    ).get("/p#f"),
    "params-of-client-only": lambda _, client, base: client(base_url=base, params="k=v").get("/p"),
    # Header fields.
    "host": get("/h", headers={"Host": "other.example"}),
    "host-bytes": get("/h", headers={b"host": b"other.example:99"}),
    "host-of-client": with_client(lambda: {"headers": {"HOST": "of.client"}}),
    "bytes": get("/h", headers={b"X-Bytes": b"v\xffw"}),
    "pairs": get("/h", headers=[("X-A", "1"), ("x-a", "2")]),
    "bytes-pairs": get("/h", headers=[(b"X-A", b"1")]),
    "request-over-client": with_client(lambda: {"headers": {"X-A": "1"}}, headers={"x-a": "2"}),
    "changed-headers": changed_headers,
    "header-none": get("/h", headers={"X-A": None}),
    "header-int": get("/h", headers={"X-A": 5}),
    "header-not-ascii": get("/h", headers={"X-A": "ü"}),
    "header-line-break": get("/h", headers={"X-A": "b\r\nc: d"}),
    "content-type-of-caller": post(lambda: {"json": 1, "headers": {"Content-Type": "a/b"}}),
    "content-type-of-client": lambda _, client, base: client(
        base_url=base, headers={"Content-Type": "a/b"}
    ).post("/p", data={"a": "1"}),
    # Authentication.
    "auth": get("/a", auth=("ada", "secret")),
    "auth-bytes": get("/a", auth=(b"ada", b"s\xff")),
    "auth-umlaut": get("/a", auth=("ü", "ö")),
    "auth-of-client": with_client(lambda: {"auth": ("a", "b")}),
    "auth-none-over-client": with_client(lambda: {"auth": ("a", "b")}, auth=None),
    "auth-over-header": get("/a", auth=("a", "b"), headers={"Authorization": "own"}),
    "auth-in-url": lambda _, client, base: client().get(base.replace("//", "//u:p%40@")),
    "auth-of-int": get("/a", auth=5),
    "auth-empty": get("/a", auth=("", "")),
    "auth-colon": get("/a", auth=("a:b", "c:d")),
    "auth-of-client-over-url": lambda _, client, base: client(auth=("a", "b")).get(
        base.replace("//", "//u:p@")
    ),
    "auth-of-request-over-client": with_client(lambda: {"auth": ("a", "b")}, auth=("c", "d")),
    # Bodies.
    "no-body": post(dict),
    "content-bytes": post(lambda: {"content": b"\x00\xff"}),
    "content-text": post(lambda: {"content": "ü"}),
    "content-empty": post(lambda: {"content": b""}),
    "content-iterator": post(lambda: {"content": chunks()}),
    "content-list": post(lambda: {"content": [b"a", b"b"]}),
    "content-bytes-io": post(lambda: {"content": io.BytesIO(b"12345")}),
    "content-file": post(lambda: {"content": named_file(b"x" * 200_000)}),
    "content-empty-file": post(lambda: {"content": io.BytesIO(b"")}),
    "content-pipe": post(lambda: {"content": Pipe(b"12345")}),
    "content-with-length": post(
        lambda: {"content": chunks(), "headers": {"Content-Length": "6"}}
    ),
    "content-int": post(lambda: {"content": 5}),
    "content-dict": post(lambda: {"content": {"a": "b"}}),
    "form": post(lambda: {"data": FORM}),
    "form-lists": post(lambda: {"data": {"a": ["x", 2, True, None], "b": ("y",), "c": []}}),
    "form-empty": post(lambda: {"data": {}}),
    "data-bytes": post(lambda: {"data": b"raw"}),
    "data-text": post(lambda: {"data": "raw=ü"}),
    "data-iterator": post(lambda: {"data": chunks()}),
    "data-file": post(lambda: {"data": io.BytesIO(b"raw")}),
    "data-int": post(lambda: {"data": 5}),
    "json": post(lambda: {"json": {"ü": [1, None, True, 1.5, "x"], "o": {}}}),
    "json-empty": post(lambda: {"json": {}}),
    "json-falsy": post(lambda: {"json": 0}),
    "json-none": post(lambda: {"json": None}),
    "json-nan": post(lambda: {"json": {"x": float("nan")}}),
    "json-infinity": post(lambda: {"json": [float("-inf")]}),
    "json-of-object": post(lambda: {"json": object()}),
    # Files.
    "files-bytes": post(lambda: {"files": {"f": b"content"}}),
    "files-text": post(lambda: {"files": {"f": "ü"}}),
    "files-bytes-io": post(lambda: {"files": {"f": io.BytesIO(b"content")}}),
    "files-opened": post(lambda: {"files": {"f": named_file(b"x" * 200_000, ".txt")}}),
    "files-name": post(lambda: {"files": {"f": ("a.png", b"content")}}),
    "files-name-none": post(lambda: {"files": {"f": (None, b"content")}}),
    "files-name-empty": post(lambda: {"files": {"f": ("", b"content")}}),
    "files-unknown-type": post(lambda: {"files": {"f": ("a.unknown", b"content")}}),
    "files-type": post(lambda: {"files": {"f": ("a", io.BytesIO(b"content"), "text/x")}}),
    "files-headers": post(
        lambda: {"files": {"f": ("a", b"content", "text/x", {"X-A": "1", "X-B": "2"})}}
    ),
    "files-type-in-headers": post(
        lambda: {"files": {"f": ("a", b"c", "text/x", {"content-type": "text/y"})}}
    ),
    "files-list": post(lambda: {"files": [("f", b"1"), ("f", ("b", b"2")), ("g", b"3")]}),
    "files-and-data": post(lambda: {"files": {"f": b"1"}, "data": {**FORM, "l": ["x", 1]}}),
    "files-and-bytes-in-data": post(lambda: {"files": {"f": b"1"}, "data": {"b": b"\xff"}}),
    "files-odd-names": post(lambda: {"files": {ODD: (ODD, b"1")}}),
    "files-read-before": post(lambda: {"files": {"f": moved(io.BytesIO(b"content"), 3)}}),
    "files-pipe": post(lambda: {"files": {"f": Pipe(b"12345")}}),
    "files-empty": post(lambda: {"files": {}}),
    "files-empty-file": post(lambda: {"files": {"f": io.BytesIO(b"")}}),
    "files-boundary": post(
        lambda: {
            "files": {"f": b"1"},
            "headers": {"Content-Type": 'multipart/form-data; boundary="own"'},
        }
    ),
    "files-text-file": post(lambda: {"files": {"f": io.StringIO("text")}}),
    "files-bad-value": post(lambda: {"files": {"f": b"1"}, "data": {"a": {"b": 1}}}),
    # Cookies.
    "cookies": get("/c", cookies={"a": "1", "b": "2"}),
    "cookies-pairs": get("/c", cookies=[("a", "1"), ("b", "2")]),
    "cookies-of-client": with_client(lambda: {"cookies": {"a": "1"}}, cookies={"b": "2"}),
    "cookies-over-client": with_client(lambda: {"cookies": {"a": "1"}}, cookies={"a": "2"}),
    "cookies-and-header": get("/c", cookies={"a": "1"}, headers={"Cookie": "own=1"}),
    "cookies-received": cookies_of("/set/a=1; Path=/", "/x", "/set/b=2", "/set/x"),
    "cookies-deleted": cookies_of("/set/a=1", "/set/a=; Max-Age=0", "/set/x"),
    "cookies-of-a-path": cookies_of("/set/a=1; Path=/deep", "/x", "/deep/x"),
    "cookies-of-two-paths": cookies_of("/set/a=1; Path=/deep;;b=2; Path=/", "/deep/x"),
    "cookies-secure": cookies_of("/set/a=1; Secure", "/set/x"),
    "cookies-for-others": cookies_of("/set/a=1; Domain=example.org", "/set/x"),
    "cookies-in-redirect": cookies_of("/to/302/x", "/x"),
    "cookies-of-request-in-redirect": lambda _, client, base: client(
        base_url=base, cookies={"c": "1"}, follow_redirects=True
    ).get("/to/302/x", cookies={"r": "1"}).status_code,
    "cookies-changed": changed_cookies,
    "cookies-own-jar": own_jar,
    "cookies-of-domain": domains("127.0.0.1"),
    "cookies-of-other-domain": domains("example.org", "127.0.0.1"),
    "cookies-of-dotted-domain": domains(".example.org", ".0.0.1"),
    "cookies-of-localhost": domains("localhost.local"),
    "cookies-of-response": answered(
        "/set/a=1; Path=/x;;b=2", lambda got: sorted((c.name, c.path, c.domain) for c in got.cookies.jar)
    ),
    "cookies-several-of-a-name": cookies_of("/set/a=1; Path=/;;a=2; Path=/deep", "/deep/x"),
    # Redirects.
    "redirect-303-post": redirected(303, "POST", content=b"x"),
    "redirect-301-post": redirected(301, "POST", content=b"x"),
    "redirect-307-post": redirected(307, "POST", data={"a": "1"}),
    "redirect-308-put": redirected(308, "PUT", content=b"x"),
    "redirect-302-head": redirected(302, "HEAD"),
    "redirect-not-followed": get("/to/302/x"),
    "redirect-303-generator": lambda _, client, base: client(
        base_url=base, follow_redirects=True
    ).post("/to/303/end", content=chunks()),
    "redirect-307-list": lambda _, client, base: client(
        base_url=base, follow_redirects=True
    ).post("/to/307/end", content=[b"a", b"b"]),
    "redirect-308-files": lambda _, client, base: client(
        base_url=base, follow_redirects=True
    ).post("/to/308/to/307/end", data={"a": "1"}, files={"f": io.BytesIO(b"x" * 200_000)}),
    "redirect-history": answered(
        "/to/302/to/307/status/404", history, follow_redirects=True
    ),
    "redirect-too-many": answered(
        "/to/302/to/302/to/302/x", history, follow_redirects=True, max_redirects=2
    ),
    "redirect-exactly-so-many": answered(
        "/to/302/to/302/x", history, follow_redirects=True, max_redirects=2
    ),
    "redirect-to-another-origin": to_another_origin(
        307, "PUT", auth=("a", "b"), headers={"X-Own": "1"}, cookies={"a": "1"}
    ),
    "redirect-with-authorization": to_another_origin(
        303, "POST", headers={"Authorization": "own"}
    ),
    "redirect-and-params": lambda _, client, base: client(
        base_url=base, follow_redirects=True, params={"a": 1}
    ).get("/to/302/x", params={"b": 2}),
    "redirect-per-request": lambda _, client, base: client(
        base_url=base, follow_redirects=True
    ).get("/to/302/x", follow_redirects=False),
    # Responses.
    "status-404": raised_for(404),
    "status-503": raised_for(503),
    "status-200": raised_for(200),
    "status-204": raised_for(204),
    "status-302": raised_for(302),
    "status-599": raised_for(599),
    "status-299": raised_for(299),
    "facts-200": answered("/status/200", facts),
    "facts-302-without-location": answered("/status/302", facts),
    "facts-302": answered("/to/302/x", facts),
    "facts-301": answered("/to/301/x", facts),
    "facts-404": answered("/status/404", facts),
    "facts-500": answered("/status/500", facts),
    "text-utf-8": answered("/body/text%2Fplain/gr%C3%BC%C3%9F", lambda got: (got.text, got.encoding)),
    "text-latin-1": answered(
        "/body/text%2Fplain%3B%20charset=ISO-8859-1/gr%FC%DF", lambda got: (got.text, got.encoding)
    ),
    "text-quoted-charset": answered(
        "/body/text%2Fplain%3B%20charset=%22latin-1%22/gr%FC%DF", lambda got: (got.text, got.encoding)
    ),
    "text-utf-16": answered(
        "/body/text%2Fplain%3B%20charset=utf-16/%FF%FEa%00b%00", lambda got: (got.text, got.encoding)
    ),
    "text-unknown-charset": answered(
        "/body/text%2Fplain%3B%20charset=nonsense/gr%C3%BC", lambda got: (got.text, got.encoding)
    ),
    "text-wrong": answered("/body/text%2Fplain/%FFx%C3", lambda got: got.text),
    "text-bom": answered("/body/text%2Fplain/%EF%BB%BFx", lambda got: got.text),
    "text-no-type": answered("/status/200", lambda got: (got.text, got.encoding)),
    "text-charset-of-type": answered(
        "/body/text%2Fplain%3B%20charset=ISO-8859-1/x", lambda got: got.charset_encoding
    ),
    "text-no-charset": answered("/body/text%2Fplain/x", lambda got: got.charset_encoding),
    "text-set-encoding": answered("/body/text%2Fplain/%80", with_encoding),
    "json-utf-8": answered("/body/application%2Fjson/%7B%22a%22:%22%C3%BC%22%7D", lambda got: got.json()),
    "json-utf-16": answered("/body/application%2Fjson/%FF%FE1%002%00", lambda got: got.json()),
    "json-bom": answered("/body/application%2Fjson/%EF%BB%BF1", lambda got: got.json()),
    "json-wrong": answered("/body/application%2Fjson/x", lambda got: got.json()),
    "json-not-of-body": answered("/status/200", lambda got: got.json()),
    "bytes-of-3": streamed("/text/abcdefgh", lambda got: list(got.iter_bytes(3))),
    "bytes-of-8": streamed("/text/abcdefgh", lambda got: list(got.iter_bytes(8))),
    "bytes-of-100": streamed("/text/abcdefgh", lambda got: list(got.iter_bytes(chunk_size=100))),
    "bytes-of-nothing": streamed("/text/", lambda got: list(got.iter_bytes(3))),
    "text-of-3": streamed("/text/gr%C3%BC%C3%9F%20dich", lambda got: list(got.iter_text(3))),
    "text-of-100": streamed("/text/gr%C3%BC", lambda got: list(got.iter_text(chunk_size=100))),
    "text-cut": streamed("/text/gr%C3", lambda got: "".join(got.iter_text())),
    "read-twice": streamed("/text/abcdefgh", read_twice),
    "read-after-read": streamed("/text/abcdefgh", read_after_read),
    "content-not-read": streamed("/text/abc", lambda got: got.content),
    "text-not-read": streamed("/text/abc", lambda got: got.text),
    "headers-of-response": answered(
        "/body/text%2Fplain/x", lambda got: (got.headers["Content-TYPE"], "x-no" in got.headers)
    ),
    # Lines.
    "lines": lines("a%0Ab%0D%0Ac%0Dd"),
    "lines-empty": lines("%0A%0A%0D%0D%0A%0D%0A"),
    "lines-unfinished": lines("data: x"),
    "lines-end": lines("a%0D%0A"),
    "lines-none": lines(""),
    # Methods and arguments.
    "method-lower-case": lambda _, client, base: client(base_url=base).request("pUt", "/m"),
    "method-own": lambda _, client, base: client(base_url=base).request("BREW", "/m"),
    "method-bytes": lambda _, client, base: client(base_url=base).request(b"GET", "/m"),
    "unknown-argument": get("/x", foo=1),
    "unknown-argument-of-client": with_client(lambda: {"foo": 1}),
    "get-with-content": get("/x", content=b"1"),
    "delete-with-json": lambda _, client, base: client(base_url=base).delete("/x", json={}),
    "request-unknown": lambda _, client, base: client(base_url=base).request("GET", "/", bar=1),
    "stream-unknown": lambda _, client, base: client(base_url=base)
    .stream("GET", "/", bar=1)
    .__enter__(),
    "module-get-unknown": lambda library, _, base: library.get(base, foo=1),
    "module-post-unknown": lambda library, _, base: library.post(base, foo=1),
    "module-request-unknown": lambda library, _, base: library.request("GET", base, foo=1),
    "module-get-with-data": lambda library, _, base: library.get(base, data={"a": "b"}),
    "module-put": lambda library, _, base: library.put(base + "/m", files={"f": b"1"}).status_code,
    "timeout-pair": get("/t", timeout=(5, 5, 5, 5)),
    "timeout-of-httpx": get("/t", timeout=httpx.Timeout(5)),
    "timeout-none": get("/t", timeout=None),
    "timeout-none-over-client": with_client(lambda: {"timeout": 5}, timeout=None),
    "timeout-none-of-client": with_client(lambda: {"timeout": None}),
    "timeout-int": get("/t", timeout=5),
}


def moved(file: io.BytesIO, position: int) -> io.BytesIO:
    file.seek(position)
    return file


#: Where the outcome in eyas is another one.
DIFFERENCES: dict[str, Call] = {
    # httpx replaces the query of the URL.
    "params-after-query": get("/p?a=1", params={"b": 2}),
    # httpx sends "b'x'".
    "form-bytes": post(lambda: {"data": {"a": b"\xff"}}),
    # httpx announces the length of the whole file, and fails.
    "content-read-before": post(lambda: {"content": moved(io.BytesIO(b"content"), 3)}),
    # httpx announces the compressed length, and fails.
    "content-decompressed": post(
        lambda: {"content": gzip.open(named_file(gzip.compress(b"content" * 1000)))}
    ),
    # httpx ends lines as `str.splitlines` does.
    "lines-of-unicode": lines("a%E2%80%A8b%E2%80%A9c%C2%85d%0Be%0Cf%1Cg"),
    # httpx sends only the content.
    "content-and-json": post(lambda: {"content": b"x", "json": 1}),
    # httpx leaves the content type of the body that is gone.
    "redirect-and-content-type": redirected(303, "POST", data={"a": "1"}),
    # httpx changes the method of every request; browsers and curl only that of POST.
    "redirect-302-put": redirected(302, "PUT", content=b"x"),
    # httpx raises `StreamConsumed`; here the redirect is what may not be followed.
    "redirect-307-generator": lambda _, client, base: client(
        base_url=base, follow_redirects=True
    ).post("/to/307/end", content=chunks()),
    # httpx announces the length, and sends nothing the second time.
    "redirect-307-file": lambda _, client, base: client(
        base_url=base, follow_redirects=True
    ).post("/to/307/end", content=moved(io.BytesIO(b"content"), 0)),
    # httpx sends the credentials for a proxy to the other origin.
    "redirect-with-proxy-authorization": to_another_origin(
        303, "POST", headers={"Proxy-Authorization": "own"}
    ),
    # httpx does not tell which argument is wrong.
    "files-bad-name": post(lambda: {"files": [(5, b"1")]}),
    # httpx fails when it reads the number.
    "files-no-file": post(lambda: {"files": {"f": 5}}),
}


def outcome(library: Any, call: Call, recorder: Recorder) -> tuple[list[Received], object]:
    """Returns what the server received, and what was returned or raised."""
    clients = []

    def client(**options: Any) -> Any:
        own = {"http3": False} if library is eyas else {}
        clients.append(library.Client(trust_env=False, **own, **options))
        return clients[-1]

    start = len(recorder.received)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            result = call(library, client, recorder.url)
        except Exception as error:
            result = described(error)
    for one in [*clients, *OPENED]:
        one.close()
    if isinstance(result, (httpx.Response, eyas.Response)):
        result = result.status_code
    return [without_boundary(request) for request in recorder.received[start:]], result


def described(error: Exception) -> object:
    name = NAMES.get(type(error).__name__, type(error).__name__)
    # Of a `TypeError` the text counts: it tells which argument is wrong. The class of httpx is not in it.
    text = str(error).partition("'")[2] if isinstance(error, TypeError) else ""
    return name, text


def without_boundary(request: Received) -> Received:
    found = re.search("boundary=([0-9a-f]{32})$", request.field("content-type") or "")
    if found is None:
        return request
    boundary = found[1]
    fields = tuple((name, value.replace(boundary, "B")) for name, value in request.fields)
    body = request.body.replace(boundary.encode(), b"B" * len(boundary))
    return Received(request.method, request.target, fields, body)


@pytest.mark.parametrize("name", ROWS)
def test_the_same(name: str, recorder: Recorder) -> None:
    expected, actual = (outcome(one, ROWS[name], recorder) for one in (httpx, eyas))
    assert actual == expected


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences(name: str, recorder: Recorder) -> None:
    """Fails once there is none: the list and the page must stay true."""
    expected, actual = (outcome(one, DIFFERENCES[name], recorder) for one in (httpx, eyas))
    assert actual != expected


def test_there_are_enough_rows() -> None:
    assert len(ROWS) >= 60
