"""Base classes of context managers for `with` and `async with`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class ContextManager:
    """Calls `_exit` at the end of `with`, with the exception that left it, if any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exit(exc)

    def _exit(self, error: BaseException | None) -> None:
        raise NotImplementedError


class AsyncContextManager:
    """Calls `_exit` at the end of `async with`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._exit(exc)

    async def _exit(self, error: BaseException | None) -> None:
        raise NotImplementedError
