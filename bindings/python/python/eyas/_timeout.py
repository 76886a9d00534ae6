"""Time limits."""

from __future__ import annotations

import dataclasses
import enum
from typing import Final, Union

#: The default timeout in seconds, as in httpx.
DEFAULT = 5.0


class _Unset(enum.Enum):
    """The default of arguments for which `None` is a valid value."""

    UNSET = enum.auto()


_UNSET: Final = _Unset.UNSET


@dataclasses.dataclass(frozen=True, init=False)
class Timeout:
    """Time limits in seconds; `None` means no limit.

    `Timeout(5)` allows five seconds to connect, and five seconds without data from the peer; `connect` and `read` set
    them separately. `total` limits the whole exchange, up to the last byte.
    """

    connect: float | None
    read: float | None
    total: float | None

    def __init__(
        self,
        timeout: float | None = DEFAULT,
        *,
        connect: float | None | _Unset = _UNSET,
        read: float | None | _Unset = _UNSET,
        total: float | None = None,
    ) -> None:
        limits = {
            "connect": timeout if isinstance(connect, _Unset) else connect,
            "read": timeout if isinstance(read, _Unset) else read,
            "total": total,
        }
        for name, limit in limits.items():
            object.__setattr__(self, name, _seconds(limit))


#: A `Timeout`, seconds, `None` for no limit, or the seconds to connect and to read.
TimeoutTypes = Union[Timeout, float, None, tuple[Union[float, None], ...]]


def as_timeout(timeout: object) -> Timeout:
    """Converts seconds, `None`, or a tuple as httpx and requests have it into a `Timeout`."""
    if isinstance(timeout, Timeout):
        return timeout
    if isinstance(timeout, tuple) and 2 <= len(timeout) <= 4:
        # Limits for writing and for the pool, which httpx has as well, have no counterpart here.
        return Timeout(None, connect=timeout[0], read=timeout[1])
    names = ("connect", "read")
    if timeout is not None and all(hasattr(timeout, name) for name in names):
        # A Timeout of httpx.
        return Timeout(None, connect=getattr(timeout, "connect"), read=getattr(timeout, "read"))
    return Timeout(timeout)  # type: ignore[arg-type]


def _seconds(value: object) -> float | None:
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise TypeError(f"a timeout must be a number of seconds or None, not {value!r}")


class CallLimit:
    """A mixin for blocking objects whose calls have a time limit, like those of a socket."""

    _timeout: float | None = None

    def settimeout(self, timeout: float | None) -> None:
        """Sets the seconds after which each call raises `TimeoutError`; `None` means no limit."""
        _seconds(timeout)
        if timeout is not None and timeout <= 0:
            raise ValueError("timeout must be more than 0 seconds, or None")
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """Returns the time limit of each call, in seconds."""
        return self._timeout
