"""A user's program for type checkers: it is checked but never run."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import Executor

import eyas
import eyas.lab

if sys.version_info >= (3, 11):
    from typing import assert_type
else:
    from typing_extensions import assert_type


def blocking() -> None:
    endpoint = eyas.Endpoint(memory="memory.sqlite", verify="ca.pem")
    with eyas.Client(endpoint=endpoint, timeout=eyas.Timeout(5, total=30)) as client:
        assert_type(client, eyas.Client)
        response = client.post("https://host/", json={"a": 1}, headers={"X": "1"}, params={"q": 1})
        assert_type(response, eyas.Response)
        assert_type(response.status_code, int)
        assert_type(response.content, bytes)
        assert_type(response.info.transport, str)
        assert_type(response.info.timings.dns_ms, "float | None")
        assert_type(response.raise_for_status(), eyas.Response)
        with client.stream("PUT", "https://host/", content=(b"a", b"b")) as stream:
            for chunk in stream.iter_bytes():
                assert_type(chunk, bytes)
    try:
        eyas.get("https://host/", follow_redirects=True)
    except eyas.ConnectError as error:
        for candidate, cause in error.candidates:
            assert_type(candidate, str)
            assert_type(cause, str)
    with eyas.create_connection(("host", 443), 5) as connection:
        assert_type(connection.recv(1), bytes)
    assert_type(eyas.race("https://host/").winner, "eyas.Winner | None")
    assert_type(eyas.plan("https://host/").entries, "tuple[eyas.Entry, ...]")


def in_the_lab(pool: Executor) -> None:
    result = eyas.lab.run("cmt-delay", executor=pool, quick=True, set={"path.B.delay": "50 ms"})
    assert_type(result, eyas.lab.Result)
    assert_type(result.claims, "tuple[eyas.lab.Claim, ...]")
    assert_type(result.claims[0].interval, "tuple[float, float] | None")
    assert_type(result.to_arrow(), eyas.lab.Table)
    assert_type(eyas.lab.load({"name": "mine"}).points, int)


async def in_asyncio() -> None:
    async with eyas.AsyncClient() as client:
        assert_type(client, eyas.AsyncClient)
        response = await client.get("https://host/")
        assert_type(response, eyas.Response)
        async with client.stream("GET", "https://host/") as stream:
            async for line in stream.aiter_lines():
                assert_type(line, str)
    reader, writer = await eyas.open_connection("host", 443, transports=("sctp", "tcp"))
    assert_type(reader, asyncio.StreamReader)
    assert_type(writer, asyncio.StreamWriter)
    async with await eyas.start_server(lambda reader, writer: None, "::1") as server:
        assert_type(server, eyas.Server)
    async with await eyas.sctp.connect("host", 5000) as association:
        await association.send(b"a", stream=1, lifetime=2.5)
        assert_type(await association.receive(), "eyas.sctp.Message | None")
        async for message in association:
            assert_type(message.data, bytes)
        async for event in association.events():
            assert_type(event.event, str)
        assert_type(association.paths, "tuple[eyas.sctp.Path, ...]")
    async with await eyas.sctp.listen(port=5000) as listener:
        async for accepted in listener:
            assert_type(accepted, eyas.sctp.Association)


def messages_that_block() -> None:
    with eyas.sctp.sync.listen(port=5000) as listener:
        for association in listener:
            for message in association:
                association.send(message.data, stream=message.stream, ppid=message.ppid)
    identity = eyas.ServerIdentity.self_signed("localhost")
    with eyas.create_server(("::1", 0), identity=identity) as server:
        connection, address = server.accept()
        assert_type(connection, eyas.Connection)
        assert_type(address, "tuple[str, int]")
