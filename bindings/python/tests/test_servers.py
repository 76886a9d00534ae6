"""Servers, blocking and in asyncio."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
import time
from pathlib import Path

import pytest
from conftest import SOON

import eyas

#: The transports of the listener and of the client. MPTCP is combined with TCP, for kernels without MPTCP.
TRANSPORTS = [
    (("tcp",), "tcp", True),
    (("tcp",), "tcp", False),
    (("mptcp", "tcp"), "tcp", True),
    (("quic",), "quic", True),
    (("sctp-udp",), "sctp-udp", True),
    (("sctp-udp",), "sctp-udp", False),
]


@pytest.fixture
def roots(tmp_path: Path) -> Path:
    return tmp_path / "ca.pem"


@pytest.fixture
def identity(roots: Path) -> eyas.ServerIdentity:
    identity = eyas.ServerIdentity.self_signed("127.0.0.1")
    roots.write_text(identity.certificate_pem)
    return identity


@pytest.mark.parametrize(("served", "transport", "tls"), TRANSPORTS)
def test_start_server(
    identity: eyas.ServerIdentity,
    roots: Path,
    served: tuple[str, ...],
    transport: str,
    tls: bool,
) -> None:
    data = bytes(range(256)) * 4096

    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert writer.get_extra_info("info").transport == transport
        assert writer.get_extra_info("race") is None
        writer.write((await reader.read()).swapcase())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def run() -> None:
        server = await eyas.start_server(
            shout,
            "127.0.0.1",
            transports=served,
            identity=identity if tls else None,
            sctp_udp_port=0,
        )
        async with server:
            assert server.is_serving()
            reader, writer = await eyas.open_connection(
                *server.address,
                tls=tls,
                transports=(transport,),
                sctp_udp_port=server.sctp_udp_port,
                timeout=SOON,
                verify=roots,
            )
            assert writer.get_extra_info("info").security == ("tls" if tls else "none")
            writer.write(data)
            writer.write_eof()
            assert await reader.read() == data.swapcase()
            writer.close()
            await writer.wait_closed()
        assert not server.is_serving()

    asyncio.run(run())


def test_a_plain_function_as_callback() -> None:
    def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    async def run() -> None:
        async with await eyas.start_server(greet, "127.0.0.1") as server:
            for _ in range(3):
                reader, writer = await eyas.open_connection(*server.address, tls=False)
                assert await reader.read() == b"hello"
                writer.close()
                await writer.wait_closed()

    asyncio.run(run())


def test_a_race_of_quic_and_tcp_on_one_port(identity: eyas.ServerIdentity, roots: Path) -> None:
    with eyas.create_server(("127.0.0.1", 0), identity=identity, alpn=["echo"]) as listener:
        listener.settimeout(SOON)
        with eyas.create_connection(
            listener.getsockname(), SOON, alpn=["echo"], verify=roots
        ) as here:
            assert here.info.transport in {"quic", "tcp"}
            assert here.info.alpn == "echo"
            here.sendall(b"ping")
            # The attempt that lost may have been accepted, too.
            while True:
                there, peer = listener.accept()
                assert peer[0] == "127.0.0.1"
                there.settimeout(SOON)
                try:
                    if there.recv(4) == b"ping":
                        break
                except OSError:
                    pass
            there.sendall(b"pong")
            assert here.recv(4) == b"pong"
            with pytest.raises(LookupError):
                _ = there.race
            # An accepted connection waits until the client has closed it.
            here.close()
            there.close()


def test_an_invalid_key_file(tmp_path: Path, identity: eyas.ServerIdentity) -> None:
    (tmp_path / "cert.pem").write_text(identity.certificate_pem)
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(ValueError, match="key"):
        eyas.ServerIdentity(tmp_path / "cert.pem", tmp_path / "key.pem")


def test_cancelling_serve_forever_closes_the_server() -> None:
    async def run() -> None:
        server = await eyas.start_server(lambda *_: None, "127.0.0.1")
        serving = asyncio.ensure_future(server.serve_forever())
        await asyncio.sleep(0)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        await server.wait_closed()
        # The port is free again once the runtime has closed the socket.
        deadline = time.monotonic() + SOON
        while True:
            try:
                socket.create_server(server.address).close()
                return
            except OSError:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)

    asyncio.run(run())


def test_closing_ends_waiting_calls() -> None:
    listener = eyas.create_server(("127.0.0.1", 0))
    assert "127.0.0.1" in repr(listener)
    listener.settimeout(0.05)
    with pytest.raises(TimeoutError):
        listener.accept()
    listener.settimeout(None)
    outcome: list[str] = []

    def wait() -> None:
        try:
            listener.accept()
        except OSError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    listener.close()
    thread.join(SOON)
    assert outcome and "closed" in outcome[0]


def test_invalid_arguments(identity: eyas.ServerIdentity) -> None:
    with pytest.raises(OSError):
        eyas.create_server(("192.0.2.1", 0))
    with pytest.raises(ValueError, match="not an address to listen on"):
        eyas.create_server(("localhost", 0))
    with pytest.raises(ValueError, match="unknown transport"):
        eyas.create_server(("127.0.0.1", 0), transports=("pigeon",))
    with pytest.raises(ValueError, match="quic requires security"):
        eyas.create_server(("127.0.0.1", 0), transports=("quic",))
    with eyas.create_server(("127.0.0.1", 0)) as listener:
        with pytest.raises(OSError) as raised:
            eyas.create_server(listener.address)
        assert raised.value.errno == errno.EADDRINUSE
