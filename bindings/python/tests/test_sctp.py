"""SCTP in asyncio: messages, streams, paths, notifications."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from conftest import SOON

import eyas
import eyas.sctp


async def listen(**options: object) -> eyas.sctp.Listener:
    return await eyas.sctp.listen("127.0.0.1", udp_port=0, **options)  # type: ignore[arg-type]


async def pair(
    listener: eyas.sctp.Listener, **options: object
) -> tuple[eyas.sctp.Association, eyas.sctp.Association]:
    """Opens an association inside UDP; returns both ends."""
    return await asyncio.gather(connect(listener, **options), listener.accept())


async def connect(listener: eyas.sctp.Listener, **options: object) -> eyas.sctp.Association:
    return await eyas.sctp.connect(
        "127.0.0.1",
        listener.port,
        transports=("sctp-udp",),
        udp_port=listener.udp_port,
        timeout=SOON,
        **options,  # type: ignore[arg-type]
    )


def test_messages_keep_stream_ppid_and_order() -> None:
    async def run() -> None:
        async with await listen() as listener:
            here, there = await pair(listener)
            async with here, there:
                await here.send(b"first", stream=3, ppid=51, unordered=True)
                message = await there.receive()
                assert message == eyas.sctp.Message(b"first", 3, 51, True, True, True)
                await there.send(bytearray(b"second"))
                answer = await here.receive()
                assert answer is not None
                assert (answer.data, answer.stream, answer.ppid) == (b"second", 0, 0)
                for n in range(100):
                    await here.send(b"%d" % n, stream=1)
                await here.shutdown()
                assert [message.data async for message in there] == [b"%d" % n for n in range(100)]
                assert await there.receive() is None

    asyncio.run(run())


def test_a_large_message_is_delivered_in_parts() -> None:
    whole = bytes(range(256)) * 2500

    async def run() -> None:
        async with await listen() as listener:
            here, there = await pair(listener)
            async with here, there:
                sending = asyncio.ensure_future(here.send(whole, stream=5))
                parts: list[eyas.sctp.Message] = []
                while not parts or not parts[-1].ends:
                    part = await there.receive()
                    assert part is not None and part.stream == 5
                    parts.append(part)
                await sending
                assert b"".join(part.data for part in parts) == whole
                assert [part.begins for part in parts] == [True] + [False] * (len(parts) - 1)

    asyncio.run(run())


def test_status_and_paths() -> None:
    config = eyas.sctp.Config(outbound_streams=7, max_inbound_streams=5, multipath=True)

    async def run() -> None:
        async with await listen(config=config) as listener:
            here, there = await pair(listener, config=config)
            status = here.status
            assert status.state == "established"
            assert (status.outbound_streams, status.inbound_streams) == (5, 5)
            assert status.remote_port == listener.port
            (path,) = here.paths
            assert (path.remote, path.udp_port) == ("127.0.0.1", listener.udp_port)
            assert path.path == status.primary
            assert here.queue(0) == (0, 0)
            here.set_primary(path.path)
            assert here.transport == there.transport == "sctp-udp"
            assert here.info is not None and here.info.transport == "sctp-udp"
            assert here.race is not None and here.race.winner is not None
            assert there.info is None and there.race is None
            assert listener.associations == 1
            assert "established" in repr(here)
            with pytest.raises(ValueError, match="no such path"):
                here.set_primary(999)
            with pytest.raises(ValueError, match="fewer streams"):
                await here.send(b"x", stream=5)
            with pytest.raises(ValueError, match="empty message"):
                await here.send(b"")
            with pytest.raises(ValueError, match="only one of lifetime"):
                await here.send(b"x", lifetime=1, priority=1)
            await here.shutdown()
            with pytest.raises(eyas.AssociationClosed):
                await here.send(b"late")
            await here.close()
            assert here.paths == ()
            with pytest.raises(eyas.AssociationClosed):
                _ = here.status
            assert "ended" in repr(here)

    asyncio.run(run())


def test_several_paths() -> None:
    async def run() -> None:
        async with await listen(addresses=["127.0.0.2"]) as listener:
            here, there = await pair(listener, addresses=["127.0.0.1"])
            async with here, there:
                assert {path.remote for path in here.paths} == {"127.0.0.1", "127.0.0.2"}
                other = next(path.path for path in here.paths if path.remote == "127.0.0.2")
                while {path.state for path in here.paths} != {"active"}:
                    event = await asyncio.wait_for(here.event(), SOON)
                    assert event is not None
                here.set_primary(other)
                assert here.status.primary == other
                await here.send(b"over the other one", path=other)
                assert (await there.receive()) is not None

    asyncio.run(run())


def test_multipath_uses_all_paths() -> None:
    """Without `multipath`, only the primary path would ever have data in flight."""
    config = eyas.sctp.Config(multipath=True)

    async def send(association: eyas.sctp.Association) -> None:
        while True:
            await association.send(bytes(50_000))

    async def discard(association: eyas.sctp.Association) -> None:
        async for _ in association:
            pass

    async def watch(association: eyas.sctp.Association) -> None:
        used: set[str] = set()
        while used != {"127.0.0.1", "127.0.0.2"}:
            used |= {path.remote for path in association.paths if path.outstanding}
            await asyncio.sleep(0)

    async def run() -> None:
        async with await listen(addresses=["127.0.0.2"], config=config) as listener:
            here, there = await pair(listener, addresses=["127.0.0.1"], config=config)
            work = [asyncio.ensure_future(send(here)), asyncio.ensure_future(discard(there))]
            await asyncio.wait_for(watch(here), SOON)
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            here.abort("enough")

    asyncio.run(run())


def test_notifications() -> None:
    async def run() -> None:
        async with await listen() as listener:
            here, there = await pair(listener)
            seen = asyncio.ensure_future(collect(there))
            here.reset_streams([1])
            while (event := await here.event()) is not None and event.event != "streams-reset":
                pass
            assert event is not None
            assert event.facts["outcome"] == "performed"
            assert event.facts["streams"] == [1]
            here.add_streams(outbound=2)
            while (event := await here.event()) is not None and event.event != "streams-added":
                pass
            await here.send(b"x")
            await here.end_stream(0)
            await here.shutdown()
            names = await seen
            assert names[-1] == "closed"
            assert {"up", "streams-reset", "streams-added", "peer-shutdown"} <= set(names)

    async def collect(association: eyas.sctp.Association) -> list[str]:
        return [event.event async for event in association.events()]

    asyncio.run(run())


def test_an_unsent_message_is_returned() -> None:
    async def run() -> None:
        async with await listen() as listener:
            here, there = await pair(listener)
            # The peer does not read, so its window fills up and the rest is queued here.
            with pytest.raises(asyncio.TimeoutError):
                while True:
                    await asyncio.wait_for(here.send(bytes(50_000), lifetime=600, context=7), 0.5)
            there.abort("enough")
            lost = [event async for event in here.events()]
            failed = [event for event in lost if event.event == "send-failed"]
            assert failed and all(event.facts["context"] == 7 for event in failed)
            assert failed[0].data == bytes(50_000)
            assert "enough" in lost[-1].facts["reason"]
            with pytest.raises(eyas.AssociationLost, match="enough") as raised:
                await here.receive()
            assert raised.value.kind == "association-lost"
            assert isinstance(raised.value, ConnectionError)

    asyncio.run(run())


def test_cancelling_loses_no_message() -> None:
    async def run() -> None:
        async with await listen() as listener:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(listener.accept(), 0.1)
            here, there = await pair(listener)
            async with here, there:
                for n in range(30):
                    waiting = asyncio.ensure_future(there.receive())
                    await asyncio.sleep(0)
                    await here.send(b"%d" % n)
                    waiting.cancel()
                    try:
                        message = await waiting
                    except asyncio.CancelledError:
                        message = await there.receive()
                    assert message is not None and message.data == b"%d" % n

    asyncio.run(run())


def test_an_exception_aborts() -> None:
    async def run() -> None:
        async with await listen() as listener:
            here, there = await pair(listener)
            with pytest.raises(LookupError):
                async with here:
                    raise LookupError
            with pytest.raises(eyas.AssociationLost):
                await there.receive()

    asyncio.run(run())


def test_a_closed_listener() -> None:
    async def run() -> None:
        listener = await listen()
        here, there = await pair(listener)
        waiting = asyncio.ensure_future(listener.accept())
        await asyncio.sleep(0.05)
        listener.close()
        with pytest.raises(OSError, match="closed"):
            await waiting
        with pytest.raises(OSError, match="closed"):
            await listener.accept()
        # Accepted associations stay open.
        async with here, there:
            await there.send(b"still here")
            assert await here.receive() is not None

    asyncio.run(run())


def test_dtls(tmp_path: Path) -> None:
    identity = eyas.ServerIdentity.self_signed("127.0.0.1")
    roots = tmp_path / "ca.pem"
    roots.write_text(identity.certificate_pem)

    async def run() -> None:
        async with await listen(identity=identity) as listener:
            here, there = await pair(listener, dtls=True, verify=roots)
            async with here, there:
                assert here.info is not None and here.info.security == "dtls"
                await here.send(b"secret", stream=9)
                message = await there.receive()
                assert message is not None and message.data == b"secret"
            with pytest.raises(eyas.CertificateError):
                await connect(listener, dtls=True)

    asyncio.run(run())


def test_no_listener(unused_port: int) -> None:
    async def run() -> None:
        with pytest.raises(eyas.ConnectError) as raised:
            await eyas.sctp.connect(
                "127.0.0.1", 5000, transports=("sctp-udp",), udp_port=unused_port, timeout=SOON
            )
        assert raised.value.candidates[0][0].startswith("sctp-udp 127.0.0.1:5000")

    asyncio.run(run())


def test_invalid_arguments() -> None:
    async def run() -> None:
        with pytest.raises(ValueError, match="its own SCTP options"):
            await eyas.sctp.connect(
                "127.0.0.1", 5000, endpoint=eyas.Endpoint(), config=eyas.sctp.Config()
            )
        with pytest.raises(ValueError, match="DTLS"):
            await eyas.sctp.connect("127.0.0.1", 5000, transports=("sctp",), dtls=True)
        with pytest.raises(ValueError, match="only SCTP"):
            async with await eyas.start_server(lambda _, writer: writer.close(), "127.0.0.1") as server:
                await eyas.sctp.connect(*server.address, transports=("tcp",))
        with pytest.raises(ValueError, match="unknown congestion control"):
            eyas.Endpoint(sctp=eyas.sctp.Config(congestion_control="hope"))
        with pytest.raises(ValueError, match="address to listen on"):
            await eyas.sctp.listen("localhost")
        with pytest.raises(ValueError, match="does not appear to be"):
            await eyas.sctp.connect("127.0.0.1", 5000, addresses=["here"])

    asyncio.run(run())
