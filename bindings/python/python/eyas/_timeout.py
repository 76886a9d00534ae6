"""Time limits."""

from __future__ import annotations

import dataclasses
import enum
from typing import Final

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
        object.__setattr__(self, "connect", timeout if isinstance(connect, _Unset) else connect)
        object.__setattr__(self, "read", timeout if isinstance(read, _Unset) else read)
        object.__setattr__(self, "total", total)


def as_timeout(timeout: Timeout | float | None) -> Timeout:
    """Converts seconds or `None` into a `Timeout`."""
    return timeout if isinstance(timeout, Timeout) else Timeout(timeout)


class CallLimit:
    """A mixin for blocking objects whose calls have a time limit, like those of a socket."""

    _timeout: float | None = None

    def settimeout(self, timeout: float | None) -> None:
        """Sets the seconds after which each call raises `TimeoutError`; `None` means no limit."""
        if timeout is not None and timeout <= 0:
            raise ValueError("timeout must be more than 0 seconds, or None")
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """Returns the time limit of each call, in seconds."""
        return self._timeout
