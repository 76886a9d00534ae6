"""Requests in asyncio, and a body from a generator."""

import asyncio

import eyas


async def main() -> None:
    async with eyas.AsyncClient(base_url="https://localhost:8443", verify="ca.pem") as client:
        responses = await asyncio.gather(*(client.get(f"/bytes/{n}") for n in range(1, 20)))
        assert [len(response.content) for response in responses] == list(range(1, 20))

        async def chunks():
            for n in range(10):
                yield b"%d" % n

        async with client.stream("POST", "/echo", content=chunks()) as response:
            assert b"".join([chunk async for chunk in response.aiter_bytes()]) == b"0123456789"


asyncio.run(main())
