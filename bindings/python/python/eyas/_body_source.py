"""Sources of request bodies that are produced in chunks, and the exceptions that they raise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable, Iterator
from types import TracebackType

from ._errors import Error, WriteError
from ._native import Upload


class BodySource:
    """The source of a body. If it fails, the peer may notice before the native part reports why."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def stop(self) -> None:
        """Stops producing chunks, because the request no longer needs them."""

    def attributing_errors(self) -> BodySource:
        """A context manager that attributes every error to the exception of the source, if it has raised one."""
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.error is None or not isinstance(error, Error):
            return
        if not isinstance(error, WriteError):
            write_error = WriteError(f"cannot read the request's body: {self.error}; {error}")
            write_error.kind, write_error.url = "request-body", error.url
            write_error.candidates, write_error.causes = error.candidates, ("request-body",)
            error = write_error
        raise error from self.error


class IterableSource(BodySource, Iterable[bytes]):
    """The items of an iterable, again whenever this is iterated over."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._chunks
        except Exception as error:
            self.error = error
            raise


class AsyncIterableSource(BodySource):
    """The items of an asynchronous iterable, uploaded by a task."""

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        super().__init__()
        self.upload = Upload()
        self._task = asyncio.ensure_future(self._upload_all(chunks))

    async def _upload_all(self, chunks: AsyncIterable[bytes]) -> None:
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
