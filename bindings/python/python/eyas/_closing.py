"""What is closed at the end of `with` and of `async with`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class Closing:
    """Leaves `with` by `_leave`, which hears of the error that ended it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        raise NotImplementedError


class AsyncClosing:
    """The same for `async with`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._leave(error)

    async def _leave(self, error: BaseException | None) -> None:
        raise NotImplementedError
