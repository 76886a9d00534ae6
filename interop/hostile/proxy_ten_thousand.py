"""Ten thousand simultaneous clients of the proxy, each of which exchanges data with a destination now and then.

All of them are served, others as well, and all connections are closed afterwards. There are fewer clients where the
limit of descriptors is lower.
"""

import asyncio
import contextlib
import resource

from _relay import LOCALHOST, TIMEOUT, Echo, echo_through_proxy, proxy, request
from eyas_interop.hostile.stage import Stage, main
from eyas_interop.report import Skip

CLIENTS = 10_000
# The number of clients that connect at the same time.
CONCURRENT_CONNECTS = 200
# A client takes two descriptors of the proxy, and two of this program, which has both ends. The proxy reserves some
# more for UDP, names and attempts to connect.
DESCRIPTORS_PER_CLIENT, SPARE_DESCRIPTORS = 2, 6000
# The minimum number of clients for this attack.
MIN_CLIENTS = 1000
# MiB for all clients: the goal is 32 KiB for each, with room for the allocator.
MEMORY = 400

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def echo_word(client: Client, word: bytes) -> bool:
    """Returns whether a word is echoed."""
    reader, writer = client
    writer.write(word)
    return await asyncio.wait_for(reader.readexactly(len(word)), TIMEOUT) == word


async def connect(port: int, to: int, limit: asyncio.Semaphore) -> Client:
    """Opens a client that is connected to its destination."""
    async with limit:
        reader, writer = await asyncio.open_connection(LOCALHOST, port, limit=64)
        writer.write(request(to))
        reply = await asyncio.wait_for(reader.readexactly(12), TIMEOUT)
        if reply[:4] != b"\x05\x00\x05\x00":
            raise RuntimeError(f"received {reply!r}")
        return reader, writer


async def crowd(count: int, port: int, to: int) -> tuple[int, int]:
    """Returns how many were connected simultaneously, and how many of them received both echoes."""
    limit = asyncio.Semaphore(CONCURRENT_CONNECTS)
    results = await asyncio.gather(*(connect(port, to, limit) for _ in range(count)), return_exceptions=True)
    clients = [client for client in results if isinstance(client, tuple)]
    for word in (b"one", b"two"):
        echoed = await asyncio.gather(*(echo_word(client, word) for client in clients), return_exceptions=True)
    for _, writer in clients:
        writer.close()
    return len(clients), echoed.count(True)


def attack(stage: Stage) -> None:
    needed = DESCRIPTORS_PER_CLIENT * CLIENTS + SPARE_DESCRIPTORS
    # root may raise its limit; the proxy inherits it.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, needed))
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(CLIENTS, (limit - SPARE_DESCRIPTORS) // DESCRIPTORS_PER_CLIENT)
    if count < MIN_CLIENTS:
        raise Skip(f"{needed} descriptors are needed, and the limit is {limit} (ulimit -n)")
    echo = Echo()
    victim = proxy(stage, "--max-connections", str(count + 100))
    with stage.watched(victim.process) as watch:
        with stage.repeat(lambda: echo_through_proxy(victim.port, echo.port)) as honest:
            connected, echoed = asyncio.run(crowd(count, victim.port, echo.port))
        gone = stage.wait_for_usage(victim.process, TIMEOUT, lambda usage: usage.descriptors < 100)
    stage.alive(victim)
    stage.check("all are served", connected == echoed == count, f"{connected} connected, {echoed} received the echo")
    stage.check("their connections are closed", gone)
    stage.memory_within(watch, MEMORY)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
