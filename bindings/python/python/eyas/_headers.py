"""Header fields: names are case-insensitive, and a name may have several values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Union

#: The types accepted as header fields.
HeaderTypes = Union["Headers", Mapping[str, str], Iterable[tuple[str, str]], None]


class Headers(Mapping[str, str]):
    """Header fields in their original order, with case-insensitive names.

    `headers["vary"]` joins several values of one name with commas; `get_list` keeps them apart.
    """

    def __init__(self, fields: HeaderTypes = None) -> None:
        pairs: Iterable[tuple[str, str]]
        if fields is None:
            pairs = ()
        elif isinstance(fields, Headers):
            pairs = fields.multi_items()
        elif isinstance(fields, Mapping):
            pairs = fields.items()
        else:
            pairs = fields
        self._fields = [(str(name), str(value)) for name, value in pairs]

    @classmethod
    def _received(cls, fields: Iterable[tuple[str, bytes]]) -> Headers:
        return cls((name, _text(value)) for name, value in fields)

    def multi_items(self) -> list[tuple[str, str]]:
        """Returns all fields in their original order."""
        return list(self._fields)

    def get_list(self, name: str) -> list[str]:
        """Returns all values of a name."""
        lower = name.lower()
        return [value for field, value in self._fields if field.lower() == lower]

    def __getitem__(self, name: str) -> str:
        values = self.get_list(name)
        if not values:
            raise KeyError(name)
        return ", ".join(values)

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

    def _sorted(self) -> list[tuple[str, str]]:
        return sorted((name.lower(), value) for name, value in self._fields)

    def __repr__(self) -> str:
        shown = [
            (name, "[secure]" if name.lower() in _SECRET else value) for name, value in self._fields
        ]
        return f"Headers({shown!r})"


#: Fields whose values must not appear in logs.
_SECRET = {"authorization", "proxy-authorization", "cookie", "set-cookie"}


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def to_send(fields: Headers) -> list[tuple[str, bytes]]:
    """Encodes the fields for the native part."""
    return [(name, value.encode("utf-8")) for name, value in fields.multi_items()]
