"""What makes the body of a request piece by piece, and what it raised."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable, Iterator
from contextlib import contextmanager

from ._errors import Error, WriteError
from ._native import Upload


class Source:
    """Where a body comes from. The peer may notice that it broke off before we are told why."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def stop(self) -> None:
        """Nobody wants the rest."""

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Whatever goes wrong after the source has raised, goes wrong because of that."""
        try:
            yield
        except Error as error:
            if self.error is None:
                raise
            if not isinstance(error, WriteError):
                told = WriteError(f"cannot read the request's body: {self.error}; {error}")
                told.kind, told.url = "request-body", error.url
                told.candidates, told.causes = error.candidates, ("request-body",)
                error = told
            raise error from self.error


class IteratedSource(Source, Iterator[bytes]):
    """A body of what an iterable gives."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = iter(chunks)

    def __next__(self) -> bytes:
        try:
            return next(self._chunks)
        except StopIteration:
            raise
        except Exception as error:
            self.error = error
            raise


class AwaitedSource(Source):
    """A body of what a coroutine gives, handed over by a task."""

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        super().__init__()
        self.upload = Upload()
        self._task = asyncio.ensure_future(self._hand_over(chunks))

    async def _hand_over(self, chunks: AsyncIterable[bytes]) -> None:
        try:
            async for chunk in chunks:
                if not await self.upload.asend(chunk):
                    return
        except Exception as error:
            self.error = error
            await self.upload.afail(f"{type(error).__name__}: {error}")
        finally:
            self.upload.finish()

    def stop(self) -> None:
        self._task.cancel()
