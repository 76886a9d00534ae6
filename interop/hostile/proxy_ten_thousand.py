"""Ten thousand clients of the proxy at once, each with a destination that it converses with now and then.

All of them are served, others as well, and nothing is left of them. There are fewer where a process may not have
so many descriptors.
"""

import asyncio
import contextlib
import resource

from _relay import LOCALHOST, PATIENCE, Echo, converse, proxy, request
from eyas_interop.hostile.stage import Stage, main
from eyas_interop.report import Skip

CLIENTS = 10_000
# Of those that connect at once.
AT_ONCE = 200
# A client takes two descriptors of the proxy, and of this program, which has both ends. Beside them some are left.
EACH, BESIDE = 2, 400
# With fewer it would be another attack.
LEAST = 1000
# MiB for all: room for a busy allocator above the 32 KiB of each that are the aim.
MEMORY = 400

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def say(client: Client, word: bytes) -> bool:
    """Whether a word comes back."""
    reader, writer = client
    writer.write(word)
    return await asyncio.wait_for(reader.readexactly(len(word)), PATIENCE) == word


async def connect(port: int, to: int, turns: asyncio.Semaphore) -> Client:
    """A client that has its destination."""
    async with turns:
        reader, writer = await asyncio.open_connection(LOCALHOST, port, limit=64)
        writer.write(request(to))
        reply = await asyncio.wait_for(reader.readexactly(12), PATIENCE)
        if reply[:4] != b"\x05\x00\x05\x00":
            raise RuntimeError(f"heard {reply!r}")
        return reader, writer


async def crowd(count: int, port: int, to: int) -> tuple[int, int]:
    """How many were connected at once, and how many of them heard their word twice."""
    turns = asyncio.Semaphore(AT_ONCE)
    came = await asyncio.gather(*(connect(port, to, turns) for _ in range(count)), return_exceptions=True)
    clients = [client for client in came if isinstance(client, tuple)]
    for word in (b"one", b"two"):
        heard = await asyncio.gather(*(say(client, word) for client in clients), return_exceptions=True)
    for _, writer in clients:
        writer.close()
    return len(clients), heard.count(True)


def attack(stage: Stage) -> None:
    wanted = EACH * CLIENTS + BESIDE
    # root may have more than it has; the proxy inherits that.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(CLIENTS, (limit - BESIDE) // EACH)
    if count < LEAST:
        raise Skip(f"{wanted} descriptors are needed, and {limit} may be had (ulimit -n)")
    echo = Echo()
    victim = proxy(stage, "--max-connections", str(count + 100))
    with stage.watched(victim.process) as watch:
        with stage.neighbour(lambda: converse(victim.port, echo.port)) as honest:
            came, heard = asyncio.run(crowd(count, victim.port, echo.port))
        gone = stage.settled(victim.process, PATIENCE, lambda usage: usage.descriptors < 100)
    stage.alive(victim)
    stage.check("all are served", came == heard == count, f"{came} connected, {heard} heard the echo")
    stage.check("nothing is left of them", gone)
    stage.memory_within(watch, MEMORY)
    stage.honest_fetched(honest)


if __name__ == "__main__":
    main(attack)
