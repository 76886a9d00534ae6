"""Responses, with the words of httpx."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator, Iterator
from email.message import Message
from http import HTTPStatus
from typing import Any, NamedTuple

from ._reports import ConnectionInfo, Race
from ._errors import HTTPStatusError, JSONDecodeError, StreamClosed, StreamConsumed
from ._headers import Headers
from ._native import RawResponse
from ._source import Source


class Redirect(NamedTuple):
    """A response that sent the request elsewhere, and was followed."""

    status_code: int
    url: str
    location: str


class Response:
    """A response whose head has arrived, and whose body is here or streams.

    `client.get` and its like read the body before they return; `client.stream` leaves that to
    `read`, `iter_bytes` and their like, which in an `AsyncClient` are `aread` and `aiter_bytes`.
    """

    def __init__(self, raw: RawResponse, source: Source) -> None:
        self._raw = raw
        #: What may still make the body of the request.
        self._source = source
        self._content: bytes | None = None
        self._began = False
        self._closed = False
        #: The status, such as 200.
        self.status_code = raw.status
        #: `HTTP/1.1`, `HTTP/2` or `HTTP/3`.
        self.http_version = raw.version
        #: Where it came from, after redirects.
        self.url = raw.url
        self.headers = Headers._received(raw.headers)
        #: The redirects that led here.
        self.history = [Redirect(*redirect) for redirect in raw.redirects]
        #: Whether the connection had carried an earlier request.
        self.connection_was_reused = raw.reused

    @property
    def reason_phrase(self) -> str:
        """What the status is called."""
        try:
            return HTTPStatus(self.status_code).phrase
        except ValueError:
            return ""

    @property
    def is_success(self) -> bool:
        """Whether the status is one of 2xx."""
        return 200 <= self.status_code < 300

    @property
    def is_error(self) -> bool:
        """Whether the status is one of 4xx and 5xx."""
        return self.status_code >= 400

    @property
    def info(self) -> ConnectionInfo:
        """The connection that carried it: transport, addresses, times and reasons."""
        return ConnectionInfo._of(self._raw.info())

    @property
    def race(self) -> Race:
        """The race that led to the connection, as far as it has run by now."""
        return Race._of(self._raw.race())

    @property
    def content(self) -> bytes:
        """The whole body, which has to be read before."""
        if self._content is None:
            raise StreamConsumed(
                "the body was not read as a whole: call read() or aread() first"
            )
        return self._content

    @property
    def encoding(self) -> str:
        """How its text is written: what `Content-Type` says, or UTF-8."""
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        charset = message.get_content_charset("utf-8")
        try:
            return codecs.lookup(charset).name
        except LookupError:
            return "utf-8"

    @property
    def text(self) -> str:
        """The body as text; what is none becomes a replacement character."""
        return self.content.decode(self.encoding, errors="replace")

    def json(self, **options: Any) -> Any:
        """The body read as JSON; the options are those of `json.loads`, and so is what it raises."""
        try:
            return json.loads(self.content, **options)
        except json.JSONDecodeError as error:
            raised = JSONDecodeError(error.msg, error.doc, error.pos)
            raised.kind, raised.url, raised.causes = "body-json", self.url, ("body-json",)
            raise raised from None

    def raise_for_status(self) -> Response:
        """The response itself, unless its status is an error."""
        if not self.is_error:
            return self
        error = HTTPStatusError(
            f"{self.url}: {self.status_code} {self.reason_phrase}".rstrip()
            + f" [{self.info.transport} {self.info.remote}]"
        )
        error.kind, error.url, error.response = "status", self.url, self
        raise error

    def read(self) -> bytes:
        """Reads the body to its end."""
        if self._content is None:
            self._begin()
            try:
                with self._source.blamed():
                    self._content = self._raw.rest()
            finally:
                self.close()
        return self._content

    async def aread(self) -> bytes:
        """Reads the body to its end."""
        if self._content is None:
            self._begin()
            try:
                with self._source.blamed():
                    self._content = await self._raw.arest()
            finally:
                await self.aclose()
        return self._content

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """The body as it comes, or in chunks of so many bytes, the last one shorter."""
        if self._content is not None:
            yield from _Cutter(chunk_size).all_of(self._content)
            return
        self._begin()
        cutter = _Cutter(chunk_size)
        try:
            while (chunk := self._chunk()) is not None:
                yield from cutter.cut(chunk)
            yield from cutter.rest()
        finally:
            self.close()

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """The body as it comes, or in chunks of so many bytes, the last one shorter."""
        if self._content is not None:
            for piece in _Cutter(chunk_size).all_of(self._content):
                yield piece
            return
        self._begin()
        cutter = _Cutter(chunk_size)
        try:
            while (chunk := await self._achunk()) is not None:
                for piece in cutter.cut(chunk):
                    yield piece
            for piece in cutter.rest():
                yield piece
        finally:
            await self.aclose()

    def iter_text(self) -> Iterator[str]:
        """The body as text, as it comes."""
        decoder = codecs.getincrementaldecoder(self.encoding)(errors="replace")
        for chunk in self.iter_bytes():
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)

    async def aiter_text(self) -> AsyncIterator[str]:
        """The body as text, as it comes."""
        decoder = codecs.getincrementaldecoder(self.encoding)(errors="replace")
        async for chunk in self.aiter_bytes():
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)

    def iter_lines(self) -> Iterator[str]:
        """The lines of the text, without their ends."""
        lines = _Lines()
        for text in self.iter_text():
            yield from lines.of(text)
        yield from lines.rest()

    async def aiter_lines(self) -> AsyncIterator[str]:
        """The lines of the text, without their ends."""
        lines = _Lines()
        async for text in self.aiter_text():
            for line in lines.of(text):
                yield line
        for line in lines.rest():
            yield line

    def close(self) -> None:
        """Gives up what is left of the body."""
        if not self._closed:
            self._closed = True
            self._source.stop()
            self._raw.close()

    async def aclose(self) -> None:
        """Gives up what is left of the body."""
        self.close()

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be read from the connection."""
        return self._closed

    def _chunk(self) -> bytes | None:
        with self._source.blamed():
            return self._raw.chunk()

    async def _achunk(self) -> bytes | None:
        with self._source.blamed():
            return await self._raw.achunk()

    def _begin(self) -> None:
        if self._began:
            raise StreamConsumed("the body was read already, and a stream has one go")
        if self._closed:
            raise StreamClosed("the response was closed before its body was read")
        self._began = True

    def __repr__(self) -> str:
        return f"<Response [{self.status_code} {self.reason_phrase}]>"


class _Cutter:
    """Bytes in pieces of one size."""

    def __init__(self, size: int | None) -> None:
        if size is not None and size < 1:
            raise ValueError("a chunk has at least one byte")
        self._size = size
        self._kept = bytearray()

    def cut(self, chunk: bytes) -> Iterator[bytes]:
        if self._size is None:
            yield chunk
            return
        self._kept += chunk
        while len(self._kept) >= self._size:
            yield bytes(self._kept[: self._size])
            del self._kept[: self._size]

    def rest(self) -> Iterator[bytes]:
        if self._kept:
            yield bytes(self._kept)
            self._kept.clear()

    def all_of(self, content: bytes) -> Iterator[bytes]:
        if content:
            yield from self.cut(content)
        yield from self.rest()


class _Lines:
    """Text in lines, as `str.splitlines` has them."""

    def __init__(self) -> None:
        self._kept = ""

    def of(self, text: str) -> Iterator[str]:
        # The first half of a CR LF waits for the second.
        whole = self._kept + text
        lines = whole.splitlines(keepends=True)
        self._kept = ""
        if lines and (lines[-1].splitlines()[0] == lines[-1] or lines[-1].endswith("\r")):
            self._kept = lines.pop()
        for line in lines:
            yield line.splitlines()[0]

    def rest(self) -> Iterator[str]:
        if self._kept:
            yield self._kept.splitlines()[0]
            self._kept = ""
