"""httpx over eyas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from conftest import SOON, Server, Silent

import eyas
import eyas.httpx


def test_a_client_of_httpx(server: Server) -> None:
    transport = eyas.httpx.Transport(verify=server.roots)
    with httpx.Client(transport=transport, base_url=server.url, timeout=SOON) as client:
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


def test_an_async_client_of_httpx(server: Server) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b"one", b"two"):
            yield chunk

    async def run() -> None:
        transport = eyas.httpx.AsyncTransport(verify=server.roots)
        async with httpx.AsyncClient(
            transport=transport, base_url=server.url, timeout=SOON
        ) as client:
            assert (await client.post("/echo", content=chunks())).content == b"onetwo"
            assert len((await client.get("/bytes/300000")).content) == 300_000

    asyncio.run(run())


def test_errors_in_the_words_of_httpx(nobody: int, silent: Silent) -> None:
    with httpx.Client(transport=eyas.httpx.Transport()) as client:
        with pytest.raises(httpx.ConnectError) as raised:
            client.get(f"http://127.0.0.1:{nobody}/")
        cause = raised.value.__cause__
        assert isinstance(cause, eyas.ConnectError)
        assert cause.candidates
        with pytest.raises(httpx.ConnectTimeout):
            client.get(silent.url, timeout=0.3)
        with pytest.raises(httpx.ReadTimeout):
            client.get(silent.url.replace("https", "http"), timeout=0.3)
