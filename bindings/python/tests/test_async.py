"""Requests in asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import SOON, Server, Silent, sockets, wait_for_sockets

import eyas


def open_client(server: Server) -> eyas.AsyncClient:
    return eyas.AsyncClient(base_url=server.url, verify=server.roots, timeout=SOON)


def test_many_requests_at_once(server: Server) -> None:
    async def run() -> None:
        async with open_client(server) as client:
            sizes = range(1000, 1050)
            responses = await asyncio.gather(*(client.get(f"/bytes/{size}") for size in sizes))
            assert [len(response.content) for response in responses] == list(sizes)
            assert any(response.connection_was_reused for response in responses)
            echo = await client.post("/echo", json=[1])
            assert echo.json() == [1]

    asyncio.run(run())


def test_streaming_in_both_directions(server: Server) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for n in range(50):
            await asyncio.sleep(0)
            yield b"%03d" % n * 1000

    async def run() -> None:
        async with open_client(server) as client:
            async with client.stream("POST", "/echo", content=chunks()) as response:
                whole = b"".join([piece async for piece in response.aiter_bytes()])
            assert whole == b"".join([chunk async for chunk in chunks()])
            async with client.stream("GET", "/greeting.txt") as response:
                lines = [line async for line in response.aiter_lines()]
            assert lines == ["grüß dich", "zweite Zeile"]

    asyncio.run(run())


def test_an_async_generator_that_raises(server: Server) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"first"
        raise LookupError("the second is gone")

    async def run() -> None:
        async with open_client(server) as client:
            with pytest.raises(eyas.WriteError) as raised:
                await client.post("/echo", content=chunks())
            assert isinstance(raised.value.__cause__, LookupError)

    asyncio.run(run())


def test_an_async_generator_needs_an_async_client(client: eyas.Client) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b""

    with pytest.raises(TypeError, match="AsyncClient"):
        client.request("POST", "/echo", content=chunks())  # type: ignore[arg-type]


def test_cancelling_ends_the_race(silent: Silent) -> None:
    async def run() -> None:
        async with eyas.AsyncClient(timeout=None) as client:
            task = asyncio.ensure_future(client.get(silent.url))
            await asyncio.to_thread(silent.wait_for_connection)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # The client is still open, so only the cancellation can have closed the connection.
            await asyncio.to_thread(silent.wait_until_all_are_closed)

    asyncio.run(run())


@pytest.mark.parametrize(
    "call",
    [
        lambda silent: eyas.open_connection("127.0.0.1", silent.port),
        lambda silent: eyas.arace(silent.url),
    ],
    ids=["open_connection", "arace"],
)
def test_cancelling_leaves_no_socket(silent: Silent, call: Callable[[Silent], Any]) -> None:
    async def run() -> None:
        before = sockets()
        task = asyncio.ensure_future(call(silent))
        await asyncio.to_thread(silent.wait_for_connection)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The sockets that the listener has accepted belong to this process, too.
        await asyncio.to_thread(wait_for_sockets, lambda: before + silent.accepted())

    asyncio.run(run())


def test_an_asyncio_timeout_ends_the_race(silent: Silent) -> None:
    async def run() -> None:
        async with eyas.AsyncClient(timeout=None) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.get(silent.url), 0.2)
            await asyncio.to_thread(silent.wait_until_all_are_closed)

    asyncio.run(run())


def test_consecutive_event_loops(server: Server) -> None:
    client = open_client(server)

    async def run() -> int:
        return (await client.get("/bytes/7")).status_code

    assert [asyncio.run(run()) for _ in range(3)] == [200] * 3


def test_event_loops_in_several_threads(server: Server) -> None:
    client = open_client(server)

    async def fetch() -> list[int]:
        responses = await asyncio.gather(*(client.get(f"/bytes/{size}") for size in range(40)))
        return [len(response.content) for response in responses]

    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(asyncio.run, fetch()) for _ in range(8)]
        assert [run.result() for run in runs] == [list(range(40))] * 8


class LoopWithoutReaders(asyncio.SelectorEventLoop):
    """A loop that cannot watch descriptors, as the proactor of Windows."""

    def add_reader(self, *_: Any) -> None:  # type: ignore[override]
        raise NotImplementedError


def test_a_loop_that_watches_no_descriptors(server: Server, silent: Silent) -> None:
    async def run() -> None:
        async with open_client(server) as client:
            responses = await asyncio.gather(*(client.get(f"/bytes/{size}") for size in range(40)))
            assert [len(response.content) for response in responses] == list(range(40))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.get(silent.url), 0.2)
            await asyncio.to_thread(silent.wait_until_all_are_closed)

    loop = LoopWithoutReaders()
    loop.run_until_complete(run())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_a_body_that_came_with_its_head_is_read_once(server: Server) -> None:
    async def run() -> None:
        async with open_client(server) as client:
            for size in (0, 1, 5000, 3_000_000):
                async with client.stream("GET", f"/bytes/{size}") as response:
                    pieces = [piece async for piece in response.aiter_bytes()]
                assert sum(map(len, pieces)) == size
                async with client.stream("GET", f"/bytes/{size}") as response:
                    assert len(await response.aread()) == size
                async with client.stream("GET", f"/bytes/{size}") as response:
                    await response.aclose()
                    with pytest.raises(eyas.StreamClosed):
                        await response.aread()

    asyncio.run(run())
