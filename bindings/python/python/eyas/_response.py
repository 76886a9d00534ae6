"""Responses, with the API of httpx."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator, Iterator
from email.message import Message
from http import HTTPStatus
from typing import Any, AnyStr, Generic, NamedTuple

from ._body_source import BodySource
from ._cookies import Cookies
from ._errors import HTTPStatusError, JSONDecodeError, StreamClosed, StreamConsumed
from ._headers import Headers
from ._native import RawResponse
from ._reports import ConnectionInfo, Race


class Redirect(NamedTuple):
    """A redirect that was followed."""

    status_code: int
    url: str
    location: str


class Response:
    """A response, whose body is either read or streamed.

    `client.get` and the like read the body before they return. After `client.stream` it is read with `read`,
    `iter_bytes` and the like; with an `AsyncClient`, with `aread` and `aiter_bytes`.
    """

    def __init__(self, raw: RawResponse, source: BodySource) -> None:
        self._raw = raw
        #: The source of the request body, which may still be active.
        self._source = source
        self._content: bytes | None = None
        self._read_started = False
        self._closed = False
        #: The status, such as 200.
        self.status_code = raw.status
        #: `HTTP/1.1`, `HTTP/2` or `HTTP/3`.
        self.http_version = raw.version
        #: The final URL, after redirects.
        self.url = raw.url
        self.headers = Headers._received(raw.headers)
        self._cookies: Cookies | None = None
        self._encoding: str | None = None
        #: The redirects that were followed.
        self.history = [Redirect(*redirect) for redirect in raw.redirects]
        #: Whether the connection had already carried a request.
        self.connection_was_reused = raw.reused

    @property
    def reason_phrase(self) -> str:
        """The standard phrase of the status."""
        try:
            return HTTPStatus(self.status_code).phrase
        except ValueError:
            return ""

    @property
    def cookies(self) -> Cookies:
        """The cookies that the response sets."""
        if self._cookies is None:
            self._cookies = Cookies()
            fields = [value for name, value in self.headers.raw if name.lower() == b"set-cookie"]
            self._cookies._store(self.url, fields)
        return self._cookies

    @property
    def is_informational(self) -> bool:
        """True if the status is 1xx."""
        return 100 <= self.status_code < 200

    @property
    def is_success(self) -> bool:
        """True if the status is 2xx."""
        return 200 <= self.status_code < 300

    @property
    def is_redirect(self) -> bool:
        """True if the status is 3xx."""
        return 300 <= self.status_code < 400

    @property
    def is_client_error(self) -> bool:
        """True if the status is 4xx."""
        return 400 <= self.status_code < 500

    @property
    def is_server_error(self) -> bool:
        """True if the status is 5xx."""
        return 500 <= self.status_code < 600

    @property
    def is_error(self) -> bool:
        """True if the status is 4xx or 5xx."""
        return self.is_client_error or self.is_server_error

    @property
    def has_redirect_location(self) -> bool:
        """True if the response redirects to a `Location`."""
        return self.status_code in {301, 302, 303, 307, 308} and "location" in self.headers

    @property
    def info(self) -> ConnectionInfo:
        """The connection that carried the response: transport, addresses, timings, reasons."""
        return ConnectionInfo._from_json(self._raw.info())

    @property
    def race(self) -> Race:
        """The race for this connection so far."""
        return Race._from_json(self._raw.race())

    @property
    def content(self) -> bytes:
        """The whole body, which must have been read already."""
        if self._content is None:
            raise StreamConsumed(
                "the body was not read as a whole; call read() or aread() first"
            )
        return self._content

    @property
    def encoding(self) -> str:
        """The character encoding: the one that was set, or the charset of `Content-Type`, or UTF-8."""
        return self._encoding or self.charset_encoding or "utf-8"

    @encoding.setter
    def encoding(self, encoding: str) -> None:
        b"x".decode(encoding, errors="ignore")
        self._encoding = encoding

    @property
    def charset_encoding(self) -> str | None:
        """The charset of `Content-Type`, if it is a known one."""
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        charset = message.get_content_charset()
        try:
            # Codecs that are not for text, such as base64, are an error as well.
            b"x".decode(charset or "utf-8", errors="ignore")
        except LookupError:
            return None
        return charset

    @property
    def text(self) -> str:
        """The body as text; invalid bytes become replacement characters."""
        return self.content.decode(self.encoding, errors="replace")

    def json(self, **options: Any) -> Any:
        """Parses the body as JSON, with the options of `json.loads`."""
        try:
            return json.loads(self.content, **options)
        except json.JSONDecodeError as error:
            decode_error = JSONDecodeError(error.msg, error.doc, error.pos)
            decode_error.kind, decode_error.url = "body-json", self.url
            decode_error.causes = ("body-json",)
            raise decode_error from None

    def raise_for_status(self) -> Response:
        """Raises an exception unless the status is 2xx; otherwise returns the response itself."""
        if self.is_success:
            return self
        error = HTTPStatusError(
            f"{self.url}: {self.status_code} {self.reason_phrase}".rstrip()
            + (f" to {self.headers['location']!r}" if self.has_redirect_location else "")
            + f" [{self.info.transport} {self.info.remote}]"
        )
        error.kind, error.url, error.response = "status", self.url, self
        raise error

    def read(self) -> bytes:
        """Reads the whole body."""
        if self._content is None:
            self._start_reading()
            try:
                with self._source.attributing_errors():
                    self._content = self._raw.rest()
            finally:
                self.close()
        return self._content

    async def aread(self) -> bytes:
        """Reads the whole body."""
        if self._content is None:
            self._start_reading()
            try:
                with self._source.attributing_errors():
                    self._content = await self._raw.arest()
            finally:
                await self.aclose()
        return self._content

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """Yields the body as it arrives, or in chunks of `chunk_size` bytes, the last one shorter."""
        if self._content is not None:
            yield from _Chunker(b"", chunk_size).split(self._content)
            return
        self._start_reading()
        chunker = _Chunker(b"", chunk_size)
        try:
            while (chunk := self._chunk()) is not None:
                yield from chunker.feed(chunk)
            yield from chunker.flush()
        finally:
            self.close()

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """Yields the body as it arrives, or in chunks of `chunk_size` bytes, the last one shorter."""
        if self._content is not None:
            for part in _Chunker(b"", chunk_size).split(self._content):
                yield part
            return
        self._start_reading()
        chunker = _Chunker(b"", chunk_size)
        try:
            while (chunk := await self._achunk()) is not None:
                for part in chunker.feed(chunk):
                    yield part
            for part in chunker.flush():
                yield part
        finally:
            await self.aclose()

    def iter_text(self, chunk_size: int | None = None) -> Iterator[str]:
        """Yields the body as text, as it arrives, or in chunks of `chunk_size` characters, the last one shorter."""
        chunker = _Chunker("", chunk_size)
        decoder = codecs.getincrementaldecoder(self.encoding)(errors="replace")
        for chunk in self.iter_bytes():
            yield from chunker.feed(decoder.decode(chunk))
        yield from chunker.feed(decoder.decode(b"", final=True))
        yield from chunker.flush()

    async def aiter_text(self, chunk_size: int | None = None) -> AsyncIterator[str]:
        """Yields the body as text, as it arrives, or in chunks of `chunk_size` characters, the last one shorter."""
        chunker = _Chunker("", chunk_size)
        decoder = codecs.getincrementaldecoder(self.encoding)(errors="replace")
        async for chunk in self.aiter_bytes():
            for part in chunker.feed(decoder.decode(chunk)):
                yield part
        for part in chunker.feed(decoder.decode(b"", final=True)):
            yield part
        for part in chunker.flush():
            yield part

    def iter_lines(self) -> Iterator[str]:
        """Yields the lines of the text, without line endings: CR, LF or CR LF."""
        lines = _LineDecoder()
        for text in self.iter_text():
            yield from lines.feed(text)
        yield from lines.flush()

    async def aiter_lines(self) -> AsyncIterator[str]:
        """Yields the lines of the text, without line endings: CR, LF or CR LF."""
        lines = _LineDecoder()
        async for text in self.aiter_text():
            for line in lines.feed(text):
                yield line
        for line in lines.flush():
            yield line

    def close(self) -> None:
        """Discards the rest of the body."""
        if not self._closed:
            self._closed = True
            self._source.stop()
            self._raw.close()

    async def aclose(self) -> None:
        """Discards the rest of the body."""
        self.close()

    @property
    def is_closed(self) -> bool:
        """True if nothing more can be read from the connection."""
        return self._closed

    def _chunk(self) -> bytes | None:
        with self._source.attributing_errors():
            return self._raw.chunk()

    async def _achunk(self) -> bytes | None:
        with self._source.attributing_errors():
            return await self._raw.achunk()

    def _start_reading(self) -> None:
        if self._read_started:
            raise StreamConsumed("the body was already read; a stream can be read only once")
        if self._closed:
            raise StreamClosed("the response was closed before its body was read")
        self._read_started = True

    def __repr__(self) -> str:
        return f"<Response [{self.status_code} {self.reason_phrase}]>"


class _Chunker(Generic[AnyStr]):
    """Splits bytes or text into chunks of one size."""

    def __init__(self, empty: AnyStr, size: int | None) -> None:
        if size is not None and size < 1:
            raise ValueError("chunk_size must be at least 1")
        self._size = size
        self._empty: AnyStr = empty
        self._parts: list[AnyStr] = []
        self._length = 0

    def feed(self, chunk: AnyStr) -> Iterator[AnyStr]:
        if not chunk:
            return
        if self._size is None:
            yield chunk
            return
        self._parts.append(chunk)
        self._length += len(chunk)
        if self._length < self._size:
            return
        whole = self._empty.join(self._parts)
        end = self._length - self._length % self._size
        for start in range(0, end, self._size):
            yield whole[start : start + self._size]
        self._parts, self._length = [whole[end:]], self._length - end

    def flush(self) -> Iterator[AnyStr]:
        rest = self._empty.join(self._parts)
        self._parts, self._length = [], 0
        if rest:
            yield rest

    def split(self, content: AnyStr) -> Iterator[AnyStr]:
        yield from self.feed(content)
        yield from self.flush()


class _LineDecoder:
    """Splits text into lines, which end with CR, LF or CR LF: as in a file, and as server-sent events want it.

    `str.splitlines` has more line ends, such as U+2028, which may stand in the data of an event.
    """

    def __init__(self) -> None:
        #: The parts of the line whose end has not arrived yet.
        self._parts: list[str] = []
        #: Whether the text so far ends with a CR: an LF that follows belongs to it.
        self._after_cr = False

    def feed(self, text: str) -> Iterator[str]:
        if self._after_cr and text:
            self._after_cr = False
            text = text.removeprefix("\n")
        if not text:
            return
        self._after_cr = text.endswith("\r")
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            yield "".join([*self._parts, line])
            self._parts.clear()
        if rest:
            self._parts.append(rest)

    def flush(self) -> Iterator[str]:
        if self._parts:
            yield "".join(self._parts)
            self._parts.clear()
