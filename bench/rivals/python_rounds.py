"""Clients for Python: python_rounds.py CLIENT AUTHORITY.pem [HOST:PORT:ADDRESS,ADDRESS]...

A round is one request over a new connection with a new TLS session, timed until the head of the response has arrived;
`reuse` is many requests, one after another, over one connection. Clients and their trusted roots are created before the
clock starts, wherever the API allows it. eyas gets the addresses as arguments, because it would also query DNS for an
HTTPS record, and there is no DNS server; the others use the hosts file.
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

#: Fetches a URL; returns the seconds until the head of the response.
Get = Callable[[str], float]
AsyncGet = Callable[[str], Awaitable[float]]

ONLY_H1 = {"h1": "HTTP/1.1"}
#: The expected version of the response.
EXPECTED = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}


def settings(modes: dict[str, Any], mode: str) -> Any:
    if mode not in modes:
        raise ValueError(f"unknown mode {mode}")
    return modes[mode]


def check_version(mode: str, version: str) -> None:
    if EXPECTED.get(mode, version) != version:
        raise ValueError(f"{mode} was requested, but the response is of version {version}")


EYAS = {
    "h1": {"http2": False, "http3": False},
    "h2": {"http1": False, "http3": False},
    "h3": {"http1": False, "http2": False},
    "race": {},
}


def endpoint(authority: str) -> Any:
    """Returns a new endpoint without a memory or TLS sessions."""
    import eyas

    arguments = (argument.split(":", 2) for argument in sys.argv[3:])
    resolve = {f"{host}:{port}": addresses.split(",") for host, port, addresses in arguments}
    return eyas.Endpoint(verify=authority, memory=False, resolve=resolve)


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
                check_version(mode, response.http_version)
                return seconds

            yield get

    return opened


def eyas_asyncio(authority: str) -> Callable[[str], AbstractAsyncContextManager[AsyncGet]]:
    import eyas

    @asynccontextmanager
    async def opened(mode: str) -> AsyncIterator[AsyncGet]:
        own = endpoint(authority)
        options = settings(EYAS, mode)
        async with eyas.AsyncClient(endpoint=own, trust_env=False, **options) as client:

            async def get(url: str) -> float:
                started = time.perf_counter()
                async with client.stream("GET", url) as response:
                    seconds = time.perf_counter() - started
                    response.raise_for_status()
                    await response.aread()
                check_version(mode, response.http_version)
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
                check_version(mode, response.http_version)
                return seconds

            yield get

    return opened


def requests_client(authority: str) -> Callable[[str], AbstractContextManager[Get]]:
    import requests

    @contextmanager
    def opened(mode: str) -> Iterator[Get]:
        settings(ONLY_H1, mode)
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
        settings(ONLY_H1, mode)
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
    expected = {"h1": CurlHttpVersion.V1_1, "h2": CurlHttpVersion.V2_0, "h3": CurlHttpVersion.V3}

    @contextmanager
    def opened(mode: str) -> Iterator[Get]:
        version = settings(versions, mode)
        with requests.Session(verify=authority, trust_env=False, http_version=version) as session:

            def get(url: str) -> float:
                # Includes the few bytes of the body, because its streams need a thread each.
                started = time.perf_counter()
                response = session.get(url, timeout=20)
                seconds = time.perf_counter() - started
                response.raise_for_status()
                if expected.get(mode, response.http_version) != response.http_version:
                    raise ValueError(f"{mode}: the response is of version {response.http_version}")
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
