"""A thousand requests or associations leak neither memory nor file descriptors."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest
from conftest import SOON, Server

import eyas
from eyas.sctp import sync

#: How much memory the allocator may keep, in bytes.
SLACK = 8 * 2**20


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def memory() -> int:
    """Returns the resident memory, in bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("http3", [False, True])
def test_a_reused_client(server: Server, http3: bool) -> None:
    with eyas.Client(
        verify=server.roots, timeout=SOON, http1=False, http2=not http3, http3=http3
    ) as client:

        def fetch(times: int) -> None:
            for _ in range(times):
                assert len(client.get(f"{server.url}/bytes/20000").content) == 20_000

        fetch(300)
        before = memory(), descriptors()
        fetch(1000)
        after = memory(), descriptors()
    assert after[0] - before[0] < SLACK
    assert after[1] <= before[1]


def test_a_new_client_per_request(server: Server) -> None:
    endpoint = eyas.Endpoint(verify=server.roots)

    def fetch(times: int) -> None:
        for _ in range(times):
            with eyas.Client(endpoint=endpoint, timeout=SOON, http3=False) as client:
                assert client.get(f"{server.url}/bytes/10").is_success

    fetch(50)
    before = memory()
    fetch(150)
    assert memory() - before < SLACK
    # The connections closed last may still be shutting down.
    assert descriptors() < 50


def test_asyncio(server: Server) -> None:
    async def run() -> None:
        async with eyas.AsyncClient(verify=server.roots, timeout=SOON) as client:

            async def fetch(times: int) -> None:
                for _ in range(times // 20):
                    await asyncio.gather(
                        *(client.get(f"{server.url}/bytes/20000") for _ in range(20))
                    )

            await fetch(400)
            before = memory(), descriptors()
            await fetch(1000)
            after = memory(), descriptors()
            assert after[0] - before[0] < SLACK
            assert after[1] <= before[1] + 2

    asyncio.run(run())


def test_consecutive_event_loops(server: Server) -> None:
    async def fetch() -> None:
        assert (await client.get(f"{server.url}/bytes/10")).is_success

    client = eyas.AsyncClient(verify=server.roots, timeout=SOON)
    asyncio.run(fetch())
    before = descriptors()
    for _ in range(100):
        asyncio.run(fetch())
    assert descriptors() <= before + 2


def test_associations() -> None:
    endpoint = eyas.Endpoint()
    with sync.listen("127.0.0.1", udp_port=0) as listener:

        def associate(times: int) -> None:
            for _ in range(times):
                here = sync.connect(
                    "127.0.0.1",
                    listener.port,
                    transports=("sctp-udp",),
                    udp_port=listener.udp_port,
                    timeout=SOON,
                    endpoint=endpoint,
                )
                with here, listener.accept(SOON) as there:
                    here.send(bytes(1000))
                    assert there.receive() is not None

        associate(100)
        before = memory(), descriptors()
        associate(1000)
        after = memory(), descriptors()
    assert after[0] - before[0] < SLACK
    assert after[1] <= before[1]
