"""The content of requests, from the arguments of a call, as httpx encodes it."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import warnings
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Union
from urllib.parse import urlencode

from ._url import primitive

#: The types accepted as content, and those that also allow asynchronous iterables.
Content = Union[str, bytes, bytearray, memoryview, IO[bytes], Iterable[bytes], None]
AsyncContent = Union[Content, AsyncIterable[bytes]]
#: The types accepted as a value in a form, and as a form.
Value = Union[str, bytes, int, float, bool, None]
FormTypes = Union[Mapping[str, Union[Value, Sequence[Value]]], None]

#: How much of a file is read at once, in bytes.
BLOCK = 64 * 1024


@dataclasses.dataclass
class Encoded:
    """An encoded body: bytes, an iterable of bytes, or nothing."""

    body: object = None
    #: The length in bytes of an iterable that is known to have one.
    length: int | None = None
    media_type: str | None = None


class FileBlocks(Iterable[bytes]):
    """A file, which is read in blocks from where it stands. It can be read again if it can seek."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._start = position(file)

    @property
    def is_repeatable(self) -> bool:
        """Whether the file can be read again."""
        return self._start is not None

    def __iter__(self) -> Iterator[bytes]:
        if self._start is not None and position(self._file) != self._start:
            self._file.seek(self._start)
        while block := self._file.read(BLOCK):
            yield as_bytes(block)


def is_repeatable(chunks: Iterable[bytes]) -> bool:
    """Returns whether a body can be sent again, after a redirect: a list, or a file that can seek."""
    return bool(getattr(chunks, "is_repeatable", isinstance(chunks, (list, tuple))))


def encode_content(content: object) -> Encoded:
    """Encodes content that is sent unchanged."""
    if isinstance(content, str):
        return Encoded(content.encode() or None)
    if isinstance(content, (bytes, bytearray, memoryview)):
        return Encoded(bytes(content) or None)
    if hasattr(content, "aread") and isinstance(content, AsyncIterable):
        return Encoded(_AsyncFileBlocks(content))
    if hasattr(content, "read") and not isinstance(content, AsyncIterable):
        length = length_of(content)
        return Encoded() if length == 0 else Encoded(FileBlocks(content), length)
    # A mapping is iterable as well, but nobody means its keys.
    if isinstance(content, (Iterable, AsyncIterable)) and not isinstance(content, Mapping):
        return Encoded(content)
    raise TypeError(f"Unexpected type for 'content', {type(content)!r}")


def encode_raw_data(data: object, stacklevel: int) -> Encoded:
    """Encodes `data` that is no form, which httpx accepts, as requests does."""
    message = "Use 'content=<...>' to upload raw bytes/text content."
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)
    return encode_content(data)


def encode_form(data: Mapping[str, object]) -> Encoded:
    """Encodes a form without files."""
    fields = [(name, value) for name, values in data.items() for value in each(values)]
    texts = [
        (name, value if isinstance(value, bytes) else primitive(value)) for name, value in fields
    ]
    return Encoded(urlencode(texts).encode(), media_type="application/x-www-form-urlencoded")


def encode_json(value: object) -> Encoded:
    """Encodes JSON. Numbers that JSON does not have, such as NaN, raise a `ValueError`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Encoded(text.encode(), media_type="application/json")


def each(value: object) -> Iterable[object]:
    """Returns the values of a field of a form, which may have several."""
    return value if isinstance(value, (list, tuple)) else [value]


def as_bytes(block: object) -> bytes:
    """Returns what a file's `read` returned as bytes; text is encoded in UTF-8."""
    return block.encode() if isinstance(block, str) else bytes(block)  # type: ignore[call-overload]


def position(file: Any) -> int | None:
    """Returns the position in a file, or `None` for one that cannot seek, such as a pipe."""
    try:
        start = file.tell()
        file.seek(start)
    except (AttributeError, OSError):
        return None
    return start if isinstance(start, int) else None


def length_of(file: Any) -> int | None:
    """Returns how many bytes a file has from where it stands, if that can be known without reading it all."""
    start = None if isinstance(file, io.TextIOBase) else position(file)
    if start is None:
        # A pipe, or a file of text, whose positions do not count bytes.
        return None
    # Not by `fileno`: the file below one that decompresses has another length.
    end = file.seek(0, os.SEEK_END)
    file.seek(start)
    if not isinstance(end, int):
        return None
    if end <= start and file.read(1):
        # A device, or a file of /proc, whose length the system gives as 0.
        file.seek(start)
        return None
    return max(end - start, 0)


class _AsyncFileBlocks(AsyncIterable[bytes]):
    """A file whose methods are awaited, such as anyio's."""

    def __init__(self, file: Any) -> None:
        self._file = file

    async def __aiter__(self) -> Any:
        while block := await self._file.aread(BLOCK):
            yield as_bytes(block)
