"""How long things may take."""

from __future__ import annotations

import dataclasses
import enum
from typing import Final

#: Seconds, as with httpx.
DEFAULT = 5.0


class _Unsaid(enum.Enum):
    """What stands for a limit that was left out, for `None` is one."""

    UNSAID = enum.auto()


_UNSAID: Final = _Unsaid.UNSAID


@dataclasses.dataclass(frozen=True, init=False)
class Timeout:
    """Limits in seconds; `None` is none.

    `Timeout(5)` gives five seconds to connect and puts up with five seconds of the peer's silence;
    `connect` and `read` set the two apart. `total` bounds the whole exchange, to the last byte.
    """

    connect: float | None
    read: float | None
    total: float | None

    def __init__(
        self,
        timeout: float | None = DEFAULT,
        *,
        connect: float | None | _Unsaid = _UNSAID,
        read: float | None | _Unsaid = _UNSAID,
        total: float | None = None,
    ) -> None:
        object.__setattr__(self, "connect", timeout if isinstance(connect, _Unsaid) else connect)
        object.__setattr__(self, "read", timeout if isinstance(read, _Unsaid) else read)
        object.__setattr__(self, "total", total)


def of(timeout: Timeout | float | None) -> Timeout:
    """Seconds, or nothing, as limits."""
    return timeout if isinstance(timeout, Timeout) else Timeout(timeout)


class CallLimit:
    """What blocks, with a limit as a socket has it."""

    _timeout: float | None = None

    def settimeout(self, timeout: float | None) -> None:
        """How many seconds each call may take, before it raises `TimeoutError`; `None`: any time."""
        if timeout is not None and timeout <= 0:
            raise ValueError("a call takes some time: give more than 0 seconds, or None")
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """How many seconds each call may take."""
        return self._timeout
