"""Forms with files (`multipart/form-data`, RFC 7578), in the forms that httpx accepts."""

from __future__ import annotations

import io
import mimetypes
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import IO, Any, Union

from ._content import BLOCK, Encoded, as_bytes, each, length_of, position
from ._url import primitive

#: What a file may be: its content, or also its name, its content type, and its header fields.
FileContent = Union[IO[bytes], bytes, str]
FileTypes = Union[
    FileContent,
    tuple[Union[str, None], FileContent],
    tuple[Union[str, None], FileContent, Union[str, None]],
    tuple[Union[str, None], FileContent, Union[str, None], Mapping[str, str]],
]
FilesTypes = Union[Mapping[str, FileTypes], Iterable[tuple[str, FileTypes]], None]

#: What cannot stand in a quoted name (the HTML standard's encoding of form data), except ESC.
_ESCAPES = {code: f"%{code:02X}" for code in [*range(0x20), ord('"')] if code != 0x1B}
_ESCAPES[ord("\\")] = "\\\\"


def encode_multipart(
    data: Mapping[str, object], files: FilesTypes, content_type: str | None
) -> Encoded:
    """Encodes a form with files. A boundary in the caller's content type is used."""
    boundary = _boundary(content_type) or os.urandom(16).hex()
    parts: list[_Part] = [
        _field(name, value) for name, values in data.items() for value in each(values)
    ]
    named = files.items() if isinstance(files, Mapping) else files or ()
    parts += [_file(name, value) for name, value in named]
    form = _Form(boundary.encode(), parts)
    return Encoded(form, form.length(), f"multipart/form-data; boundary={boundary}")


class _Part:
    """One part of a form."""

    def __init__(self, head: str, content: Any) -> None:
        self._head, self._content = head.encode(), content

    def length(self) -> int | None:
        if isinstance(self._content, bytes):
            return len(self._head) + len(self._content)
        _rewind(self._content)
        length = length_of(self._content)
        return None if length is None else len(self._head) + length

    @property
    def is_repeatable(self) -> bool:
        """Whether its content is in memory or in a file that can be read again."""
        return isinstance(self._content, bytes) or position(self._content) is not None

    def __iter__(self) -> Iterator[bytes]:
        yield self._head
        if isinstance(self._content, bytes):
            yield self._content
            return
        _rewind(self._content)
        while block := self._content.read(BLOCK):
            yield as_bytes(block)


class _Form(Iterable[bytes]):
    def __init__(self, boundary: bytes, parts: list[_Part]) -> None:
        self._boundary, self._parts = boundary, parts

    def length(self) -> int | None:
        total = len(self._boundary) + 6
        for part in self._parts:
            length = part.length()
            if length is None:
                return None
            total += len(self._boundary) + 6 + length
        return total

    @property
    def is_repeatable(self) -> bool:
        """Whether all of it can be sent again."""
        return all(part.is_repeatable for part in self._parts)

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            yield b"--%s\r\n" % self._boundary
            yield from part
            yield b"\r\n"
        yield b"--%s--\r\n" % self._boundary


def _field(name: object, value: object) -> _Part:
    if not isinstance(name, str):
        raise TypeError(f"Invalid type for name. Expected str, got {type(name)}: {name!r}")
    if value is not None and not isinstance(value, (str, bytes, int, float)):
        raise TypeError(
            f"Invalid type for value. Expected primitive type, got {type(value)}: {value!r}"
        )
    content = value if isinstance(value, bytes) else primitive(value).encode()
    return _Part(f"Content-Disposition: form-data; {_parameter('name', name)}\r\n\r\n", content)


def _file(name: object, value: Any) -> _Part:
    if not isinstance(name, str):
        raise TypeError(f"Invalid type for name. Expected str, got {type(name)}: {name!r}")
    content_type: str | None = None
    fields: Mapping[str, str] = {}
    if not isinstance(value, tuple):
        # Files opened by descriptor have a number as their name.
        filename, content = PurePath(str(getattr(value, "name", "upload"))).name, value
    elif len(value) == 2:
        filename, content = value
    elif len(value) == 3:
        filename, content, content_type = value
    elif len(value) == 4:
        filename, content, content_type, fields = value
    else:
        raise ValueError(
            "a file is its content or a tuple (name, content[, content type[, header fields]]), "
            f"not a tuple of {len(value)}"
        )
    lines = {**fields}
    if content_type is None and filename:
        content_type = mimetypes.guess_type(filename)[0] or "application/octet-stream"
    if content_type is not None and not any("content-type" in field.lower() for field in fields):
        lines["Content-Type"] = content_type
    disposition = f"Content-Disposition: form-data; {_parameter('name', name)}"
    if filename:
        disposition += f"; {_parameter('filename', filename)}"
    head = [disposition, *(_header_line(*line) for line in lines.items())]
    return _Part("\r\n".join(head) + "\r\n\r\n", _content(content))


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    if isinstance(content, io.StringIO):
        raise TypeError("Multipart file uploads require 'io.BytesIO', not 'io.StringIO'.")
    if isinstance(content, io.TextIOBase):
        raise TypeError("Multipart file uploads must be opened in binary mode, not text mode.")
    if not hasattr(content, "read"):
        raise TypeError(f"a file's content must be bytes, str or a file, not {type(content)!r}")
    return content


def _header_line(name: str, value: str) -> str:
    if {"\r", "\n"} & set(name + value):
        raise ValueError(f"the header field {name!r} of a file contains a line break")
    return f"{name}: {value}"


def _parameter(name: str, value: str) -> str:
    return f'{name}="{value.translate(_ESCAPES)}"'


def _boundary(content_type: str | None) -> str | None:
    """Returns the boundary in a content type (RFC 2046 §5.1.1)."""
    media_type, *parameters = (content_type or "").split(";")
    if media_type.strip().lower() != "multipart/form-data":
        return None
    for parameter in parameters:
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "boundary" and value:
            return value.strip('"')
    return None


def _rewind(file: Any) -> None:
    """Goes to the start of a file: a form has whole files, wherever they stand."""
    if position(file) is not None:
        file.seek(0)
