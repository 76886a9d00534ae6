"""httpx and httpx2 over eyas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import httpx2
import pytest
from conftest import SOON, Server, Silent

import eyas
import eyas.httpx
import eyas.httpx2

#: Each library and its transports.
LIBRARIES: list[Any] = [
    pytest.param(httpx, eyas.httpx, id="httpx"),
    pytest.param(httpx2, eyas.httpx2, id="httpx2"),
]
each_library = pytest.mark.parametrize(("library", "ours"), LIBRARIES)


@each_library
def test_a_client(server: Server, library: Any, ours: Any) -> None:
    transport = ours.Transport(verify=server.roots)
    with library.Client(transport=transport, base_url=server.url, timeout=SOON) as client:
        response = client.post("/echo", json={"a": 1}, headers={"X": "1"})
        assert response.json() == {"a": 1}
        assert response.http_version in {"HTTP/2", "HTTP/3"}
        assert response.extensions["eyas"].security == "tls"
        followed = client.get("/redirect/2", follow_redirects=True)
        assert len(followed.history) == 2

        def chunks() -> Iterator[bytes]:
            yield from (b"one", b"two")

        assert client.post("/echo", content=chunks()).content == b"onetwo"
        with client.stream("GET", "/bytes/300000") as stream:
            assert sum(map(len, stream.iter_bytes())) == 300_000


@each_library
def test_an_async_client(server: Server, library: Any, ours: Any) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b"one", b"two"):
            yield chunk

    async def run() -> None:
        transport = ours.AsyncTransport(verify=server.roots)
        async with library.AsyncClient(
            transport=transport, base_url=server.url, timeout=SOON
        ) as client:
            assert (await client.post("/echo", content=chunks())).content == b"onetwo"
            assert len((await client.get("/bytes/300000")).content) == 300_000
            async with client.stream("POST", "/echo", content=chunks()) as stream:
                pieces = [piece async for piece in stream.aiter_bytes()]
            assert b"".join(pieces) == b"onetwo"

    asyncio.run(run())


@each_library
def test_errors_are_translated(
    unused_port: int, silent: Silent, library: Any, ours: Any
) -> None:
    with library.Client(transport=ours.Transport()) as client:
        with pytest.raises(library.ConnectError) as raised:
            client.get(f"http://127.0.0.1:{unused_port}/")
        cause = raised.value.__cause__
        assert isinstance(cause, eyas.ConnectError)
        assert cause.candidates
        with pytest.raises(library.ConnectTimeout):
            client.get(silent.url, timeout=0.3)
        with pytest.raises(library.ReadTimeout):
            client.get(silent.url.replace("https", "http"), timeout=0.3)
