"""Header fields: names are case-insensitive, and a name may have several values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Union

#: The types accepted as header fields.
HeaderTypes = Union[
    "Headers",
    Mapping[str, str],
    Mapping[str, bytes],
    Mapping[bytes, bytes],
    Iterable[tuple[str, str]],
    Iterable[tuple[bytes, bytes]],
    None,
]


class Headers(MutableMapping[str, str]):
    """Header fields in their original order, with case-insensitive names.

    `headers["vary"]` joins several values of one name with commas; `get_list` keeps them apart. Names and values are
    given as text in ASCII or as bytes.
    """

    def __init__(self, fields: HeaderTypes = None) -> None:
        self._fields: list[tuple[str, bytes]]
        if fields is None:
            self._fields = []
        elif isinstance(fields, Headers):
            self._fields = list(fields._fields)
        else:
            pairs = fields.items() if isinstance(fields, Mapping) else fields
            self._fields = [(_name(name), _value(value)) for name, value in pairs]

    @classmethod
    def _received(cls, fields: Iterable[tuple[str, bytes]]) -> Headers:
        headers = cls()
        headers._fields = list(fields)
        return headers

    @property
    def raw(self) -> list[tuple[bytes, bytes]]:
        """All fields in their original order, as they are sent."""
        return [(name.encode("ascii"), value) for name, value in self._fields]

    def multi_items(self) -> list[tuple[str, str]]:
        """Returns all fields in their original order."""
        return [(name, _text(value)) for name, value in self._fields]

    def get_list(self, name: str) -> list[str]:
        """Returns all values of a name."""
        lower = name.lower()
        return [_text(value) for field, value in self._fields if field.lower() == lower]

    def update(self, fields: HeaderTypes = None) -> None:  # type: ignore[override]
        """Replaces all fields of these names."""
        added = Headers(fields)
        self._fields = [(name, value) for name, value in self._fields if name not in added]
        self._fields += added._fields

    def __getitem__(self, name: str) -> str:
        values = self.get_list(name)
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __setitem__(self, name: str, value: str | bytes) -> None:
        added = _name(name), _value(value)
        if name in self:
            del self[name]
        self._fields.append(added)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        lower = name.lower()
        self._fields = [field for field in self._fields if field[0].lower() != lower]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.get_list(name))

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.lower() for name, _ in self._fields))

    def __len__(self) -> int:
        return len({name.lower() for name, _ in self._fields})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Headers, Mapping)):
            return NotImplemented
        return self._sorted() == Headers(other)._sorted()

    __hash__ = None  # type: ignore[assignment]

    def _sorted(self) -> list[tuple[str, bytes]]:
        return sorted((name.lower(), value) for name, value in self._fields)

    def __repr__(self) -> str:
        shown = [
            (name, "[secure]" if name.lower() in _SECRET else value)
            for name, value in self.multi_items()
        ]
        return f"Headers({shown!r})"


#: Fields whose values must not appear in logs.
_SECRET = {"authorization", "proxy-authorization", "cookie", "set-cookie"}


def _name(name: object) -> str:
    if isinstance(name, bytes):
        return name.decode("ascii")
    if isinstance(name, str):
        return name
    raise TypeError(f"Header name must be str or bytes, not {type(name)}")


def _value(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("ascii")
    raise TypeError(f"Header value must be str or bytes, not {type(value)}")


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def to_send(fields: Headers) -> list[tuple[str, bytes]]:
    """Returns the fields for the native part."""
    return list(fields._fields)
