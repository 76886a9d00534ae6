"""Connections without HTTP, blocking and in asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from conftest import SOON, Server

import eyas
from eyas.__main__ import command

REQUEST = b"GET /bytes/5000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def test_a_connection_works_like_a_socket(server: Server) -> None:
    address = ("localhost", server.port)
    with eyas.create_connection(
        address, SOON, transports=("tcp",), alpn=["http/1.1"], verify=server.roots
    ) as connection:
        assert connection.info.transport == "tcp"
        assert connection.info.alpn == "http/1.1"
        assert connection.getpeername() is not None
        assert connection.race.winner is not None
        connection.sendall(REQUEST)
        with connection.makefile("rb") as file:
            assert file.readline() == b"HTTP/1.1 200 OK\r\n"
            assert len(file.read().partition(b"\r\n\r\n")[2]) == 5000
        assert connection.recv(10) == b""
    with pytest.raises(BrokenPipeError):
        connection.recv(1)


def test_asyncio_streams(server: Server) -> None:
    async def run() -> None:
        reader, writer = await eyas.open_connection(
            "localhost",
            server.port,
            transports=("tcp",),
            alpn=["http/1.1"],
            timeout=SOON,
            verify=server.roots,
        )
        info = writer.get_extra_info("info")
        assert isinstance(info, eyas.ConnectionInfo)
        assert info.protocol == "TLSv1.3"
        assert isinstance(writer.get_extra_info("race"), eyas.Race)
        assert writer.get_extra_info("no such thing", 5) == 5
        writer.write(REQUEST)
        await writer.drain()
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        await reader.readuntil(b"\r\n\r\n")
        assert len(await reader.readexactly(5000)) == 5000
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        assert writer.is_closing()

    asyncio.run(run())


@pytest.fixture
def echo() -> Iterator[int]:
    """A TCP server that echoes all data, and closes each connection after its peer."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                while data := peer.recv(65536):
                    peer.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_bulk_data_in_both_directions(echo: int) -> None:
    data = bytes(range(256)) * 16384

    async def run() -> None:
        reader, writer = await eyas.open_connection("127.0.0.1", echo, tls=False)

        async def send() -> None:
            for start in range(0, len(data), 100_000):
                writer.write(data[start : start + 100_000])
                await writer.drain()
            writer.write_eof()

        sending = asyncio.ensure_future(send())
        assert await reader.read() == data
        await sending
        writer.close()
        await writer.wait_closed()

    asyncio.run(run())


def test_concurrent_reads_and_writes(echo: int) -> None:
    data = bytes(range(256)) * 16384
    with eyas.create_connection(("127.0.0.1", echo), SOON, tls=False) as connection:
        assert connection.info.security == "none"

        def send() -> None:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=send)
        thread.start()
        received = bytearray()
        while piece := connection.recv(65536):
            received += piece
        thread.join()
    assert received == data


def test_call_timeouts(echo: int) -> None:
    with eyas.create_connection(("127.0.0.1", echo), tls=False) as connection:
        assert connection.gettimeout() is None
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.sendall(b"still works")
        assert connection.recv(100) == b"still works"


def test_cancelling_a_reader_loses_nothing(echo: int) -> None:
    async def run() -> None:
        reader, writer = await eyas.open_connection("127.0.0.1", echo, tls=False)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)
        writer.write(b"all of it")
        assert await reader.readexactly(9) == b"all of it"
        writer.transport.abort()
        with pytest.raises((ConnectionError, BrokenPipeError)):
            writer.write(b"x")
            await writer.drain()

    asyncio.run(run())


@contextlib.contextmanager
def pipe_listener(roots: Path) -> Iterator[tuple[IO[bytes], IO[bytes], int]]:
    """Runs a listening `eyas pipe`; yields its standard input and output, and its port."""
    arguments = ["pipe", "--listen", "127.0.0.1:0", "--save-cert", str(roots), "--verbose"]
    with subprocess.Popen(
        [command(), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as pipe:
        assert pipe.stdin is not None and pipe.stdout is not None and pipe.stderr is not None
        try:
            # If the SCTP port is in use, it reports that first.
            line = next(line for line in pipe.stderr if line.startswith(b"listening on "))
            yield pipe.stdin, pipe.stdout, int(line.rpartition(b":")[2])
            pipe.stdin.close()
            pipe.wait(SOON)
        finally:
            pipe.kill()


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_data_through_eyas_pipe(transport: str, tmp_path: Path) -> None:
    """The standard input of `eyas pipe` is received here, and sent data is its standard output."""
    roots = tmp_path / "ca.pem"
    with pipe_listener(roots) as (stdin, stdout, port):
        with eyas.create_connection(
            ("localhost", port), SOON, transports=(transport,), verify=roots
        ) as connection:
            assert connection.info.transport == transport
            connection.sendall(b"from Python\n")
            stdin.write(b"from the pipe\n")
            stdin.flush()
            assert connection.recv(100) == b"from the pipe\n"
            connection.sendall(b"the end\n")
            stdin.close()
        assert stdout.read() == b"from Python\nthe end\n"


def test_data_is_sent_between_calls(tmp_path: Path) -> None:
    """No call runs while the data is being sent and acknowledged."""
    roots = tmp_path / "ca.pem"
    data = bytes(range(256)) * 4096
    with (
        pipe_listener(roots) as (_, stdout, port),
        eyas.create_connection(
            ("localhost", port), SOON, transports=("quic",), verify=roots
        ) as connection,
    ):
        for _ in range(3):
            connection.sendall(data)
            assert stdout.read(len(data)) == data
