"""Clients for Python: python_rounds.py CLIENT AUTHORITY.pem [HOST:PORT:ADDRESS,ADDRESS]...

A round is one request over a fresh connection with a fresh TLS session, timed until the head of the
answer is there; `reuse` is many requests, one after another, over one connection. Clients and what
they trust are made before the clock starts, wherever their API lets them. eyas is told the addresses,
for it would ask DNS for an HTTPS record as well, and there is none to ask; the others have the hosts file.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Any

from rounds import serve

#: Fetches a URL and gives the seconds until the head of the answer.
Get = Callable[[str], float]
AsyncGet = Callable[[str], Awaitable[float]]

H1_ALONE = {"h1": "HTTP/1.1"}
#: What the answer has to come over.
SPOKEN = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}


def settings(known: dict[str, Any], mode: str) -> Any:
    if mode not in known:
        raise ValueError(f"this client does not know {mode}")
    return known[mode]


def spoken(mode: str, version: str) -> None:
    if SPOKEN.get(mode, version) != version:
        raise ValueError(f"{mode} was asked for, and the answer came over {version}")


EYAS = {
    "h1": {"http2": False, "http3": False},
    "h2": {"http1": False, "http3": False},
    "h3": {"http1": False, "http2": False},
    "race": {},
}


def endpoint(authority: str) -> Any:
    """One that remembers nothing, and has no TLS session yet."""
    import eyas

    told = (argument.split(":", 2) for argument in sys.argv[3:])
    known = {f"{host}:{port}": addresses.split(",") for host, port, addresses in told}
    return eyas.Endpoint(verify=authority, memory=False, resolve=known)


def eyas_client(authority: str) -> Callable[[str], AbstractContextManager[Get]]:
    import eyas

    @contextmanager
    def opened(mode: str) -> Iterator[Get]:
        own = endpoint(authority)
        with eyas.Client(endpoint=own, trust_env=False, **settings(EYAS, mode)) as client:

            def get(url: str) -> float:
                started = time.perf_counter()
                with client.stream("GET", url) as response:
                    seconds = time.perf_counter() - started
                    response.raise_for_status()
                    response.read()
                spoken(mode, response.http_version)
                return seconds

            yield get

    return opened


def eyas_asyncio(authority: str) -> Callable[[str], AbstractAsyncContextManager[AsyncGet]]:
    import eyas

    @asynccontextmanager
    async def opened(mode: str) -> AsyncIterator[AsyncGet]:
        own = endpoint(authority)
        of_mode = settings(EYAS, mode)
        async with eyas.AsyncClient(endpoint=own, trust_env=False, **of_mode) as client:

            async def get(url: str) -> float:
                started = time.perf_counter()
                async with client.stream("GET", url) as response:
                    seconds = time.perf_counter() - started
                    response.raise_for_status()
                    await response.aread()
                spoken(mode, response.http_version)
                return seconds

            yield get

    return opened


def httpx_client(authority: str) -> Callable[[str], AbstractContextManager[Get]]:
    import httpx

    versions = {"h1": {}, "h2": {"http1": False, "http2": True}}
    trust = ssl.create_default_context(cafile=authority)

    @contextmanager
    def opened(mode: str) -> Iterator[Get]:
        with httpx.Client(verify=trust, trust_env=False, **settings(versions, mode)) as client:

            def get(url: str) -> float:
                started = time.perf_counter()
                with client.stream("GET", url) as response:
                    seconds = time.perf_counter() - started
                    response.raise_for_status()
                    response.read()
                spoken(mode, response.http_version)
                return seconds

            yield get

    return opened


def requests_client(authority: str) -> Callable[[str], AbstractContextManager[Get]]:
    import requests

    @contextmanager
    def opened(mode: str) -> Iterator[Get]:
        settings(H1_ALONE, mode)
        with requests.Session() as session:
            session.verify = authority
            session.trust_env = False

            def get(url: str) -> float:
                started = time.perf_counter()
                with session.get(url, stream=True, timeout=20) as response:
                    seconds = time.perf_counter() - started
                    response.raise_for_status()
                    response.content
                return seconds

            yield get

    return opened


def aiohttp_client(authority: str) -> Callable[[str], AbstractAsyncContextManager[AsyncGet]]:
    import aiohttp

    trust = ssl.create_default_context(cafile=authority)

    @asynccontextmanager
    async def opened(mode: str) -> AsyncIterator[AsyncGet]:
        settings(H1_ALONE, mode)
        connector = aiohttp.TCPConnector(ssl=trust)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def get(url: str) -> float:
                started = time.perf_counter()
                async with session.get(url) as response:
                    seconds = time.perf_counter() - started
                    response.raise_for_status()
                    await response.read()
                return seconds

            yield get

    return opened


def curl_cffi_client(authority: str) -> Callable[[str], AbstractContextManager[Get]]:
    from curl_cffi import CurlHttpVersion, requests

    versions = {
        "h1": CurlHttpVersion.V1_1,
        "h2": CurlHttpVersion.V2TLS,
        "h3": CurlHttpVersion.V3ONLY,
        "race": CurlHttpVersion.V3,
    }
    asked = {"h1": CurlHttpVersion.V1_1, "h2": CurlHttpVersion.V2_0, "h3": CurlHttpVersion.V3}

    @contextmanager
    def opened(mode: str) -> Iterator[Get]:
        version = settings(versions, mode)
        with requests.Session(verify=authority, trust_env=False, http_version=version) as session:

            def get(url: str) -> float:
                # With the few octets of the body: its streams take a thread each.
                started = time.perf_counter()
                response = session.get(url, timeout=20)
                seconds = time.perf_counter() - started
                response.raise_for_status()
                if asked.get(mode, response.http_version) != response.http_version:
                    raise ValueError(f"{mode}: the answer is of {response.http_version}")
                return seconds

            yield get

    return opened


BLOCKING = {
    "eyas": eyas_client,
    "httpx": httpx_client,
    "requests": requests_client,
    "curl_cffi": curl_cffi_client,
}
AWAITED = {"eyas-asyncio": eyas_asyncio, "aiohttp": aiohttp_client}


def serve_blocking(opened: Callable[[str], AbstractContextManager[Get]]) -> None:
    def one_round(mode: str, url: str) -> float:
        with opened(mode) as get:
            return get(url)

    def reuse(mode: str, count: int, url: str) -> float:
        with opened(mode) as get:
            get(url)
            started = time.perf_counter()
            for _ in range(count):
                get(url)
            return time.perf_counter() - started

    serve(one_round, reuse)


def serve_awaited(opened: Callable[[str], AbstractAsyncContextManager[AsyncGet]]) -> None:
    loop = asyncio.new_event_loop()

    async def one_round(mode: str, url: str) -> float:
        async with opened(mode) as get:
            return await get(url)

    async def reuse(mode: str, count: int, url: str) -> float:
        async with opened(mode) as get:
            await get(url)
            started = time.perf_counter()
            for _ in range(count):
                await get(url)
            return time.perf_counter() - started

    serve(
        lambda mode, url: loop.run_until_complete(one_round(mode, url)),
        lambda mode, count, url: loop.run_until_complete(reuse(mode, count, url)),
    )


def main() -> None:
    name, authority, *_ = sys.argv[1:]
    if name in AWAITED:
        serve_awaited(AWAITED[name](authority))
    else:
        serve_blocking(BLOCKING[name](authority))


if __name__ == "__main__":
    main()
