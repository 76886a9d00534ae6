"""Reads a body until it ends, for `cargo eyas-bench bulk`.

    read.py client|async-client VERSION CERTIFICATE URL
"""

import asyncio
import sys

import eyas


def read(verify: str, versions: dict[str, bool], url: str) -> None:
    with eyas.Client(verify=verify, **versions) as client:
        with client.stream("GET", url) as response:
            for _ in response.iter_bytes():
                pass


async def read_async(verify: str, versions: dict[str, bool], url: str) -> None:
    async with eyas.AsyncClient(verify=verify, **versions) as client:
        async with client.stream("GET", url) as response:
            async for _ in response.aiter_bytes():
                pass


_, client, version, verify, url = sys.argv
versions = {name: version.startswith(name) for name in ("http1", "http2", "http3")}
if client == "client":
    read(verify, versions, url)
else:
    asyncio.run(read_async(verify, versions, url))
