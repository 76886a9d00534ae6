"""Connections that died while a client kept them."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

from helpers import running

import eyas

#: Less than the 30 s after which a silent QUIC connection is closed.
BOUND = 20.0


class UdpPath:
    """Forwards UDP to a server that can be replaced by one that knows nothing of its connections."""

    def __init__(self, server: int) -> None:
        self.server = server
        self._inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._inside.bind(("127.0.0.1", 0))
        self._outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._outside.bind(("127.0.0.1", 0))
        self.port: int = self._inside.getsockname()[1]
        self._client: tuple[str, int] | None = None
        for forward in (self._forward, self._backward):
            threading.Thread(target=forward, daemon=True).start()

    def _forward(self) -> None:
        while True:
            data, self._client = self._inside.recvfrom(65536)
            self._outside.sendto(data, ("127.0.0.1", self.server))

    def _backward(self) -> None:
        while True:
            data, source = self._outside.recvfrom(65536)
            if source[1] == self.server and self._client is not None:
                self._inside.sendto(data, self._client)


def identity(directory: Path) -> list[str]:
    """Makes a certificate that both servers have."""
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(made, cwd=directory, check=True, capture_output=True)
    return ["--cert", "cert.pem", "--key", "key.pem"]


def test_a_server_that_restarted_costs_a_race(tmp_path: Path) -> None:
    keys = identity(tmp_path)
    versions: dict[str, Any] = {"http1": False, "http2": False}
    # They are killed: they would wait for their dead connections.
    before_and_after = [running(tmp_path, *keys, kill=True) for _ in range(2)]
    with before_and_after[0] as before, before_and_after[1] as after:
        path = UdpPath(before)
        url = f"https://localhost:{path.port}/bytes/10"
        roots = tmp_path / "cert.pem"
        with eyas.Client(verify=roots, timeout=BOUND, **versions) as client:
            assert not client.get(url).connection_was_reused
            assert client.get(url).connection_was_reused
            path.server = after
            assert not client.get(url).connection_was_reused
            assert client.get(url).connection_was_reused

        async def concurrently() -> None:
            path.server = before
            async with eyas.AsyncClient(verify=roots, timeout=BOUND, **versions) as client:
                await client.get(url)
                path.server = after
                responses = await asyncio.gather(*(client.get(url) for _ in range(5)))
                assert [response.status_code for response in responses] == [200] * 5

        asyncio.run(concurrently())
