"""Fixtures: servers of the wheel's own command, listeners that misbehave, unused ports."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from helpers import Accepting, serving
from helpers import Server as Server

import eyas

#: A timeout for events that must happen, in seconds, with a margin for busy machines.
SOON = 30.0


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[eyas.Client]:
    with eyas.Client(base_url=server.url, verify=server.roots, timeout=SOON) as client:
        yield client


class Silent(Accepting):
    """A listener that accepts connections and sends nothing."""

    def __init__(self) -> None:
        self._connections: list[socket.socket] = []
        self._changed = threading.Condition()
        super().__init__()
        self.url = f"https://127.0.0.1:{self.port}/"

    def _accepted(self, connection: socket.socket) -> None:
        with self._changed:
            self._connections.append(connection)
            self._changed.notify_all()

    def wait_for_connection(self) -> None:
        """Waits until a client has connected."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._connections, SOON), "no client has connected"

    def accepted(self) -> int:
        """Returns the number of accepted connections."""
        return len(self._connections)

    def wait_until_all_are_closed(self) -> None:
        """Waits until every peer has closed its connection; fails if one does not."""
        for connection in self._connections:
            connection.settimeout(SOON)
            try:
                while connection.recv(4096):
                    pass
            except ConnectionResetError:
                pass

    def close(self) -> None:
        """Closes every connection as well."""
        super().close()
        for connection in self._connections:
            connection.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    listener = Silent()
    yield listener
    listener.close()


@pytest.fixture
def unused_port() -> int:
    """Returns a port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def sockets() -> int:
    """Returns the number of open sockets of this process, including those of the runtime."""
    eyas.Endpoint()
    gc.collect()
    count = 0
    for name in os.listdir("/proc/self/fd"):
        # Another thread may have closed it by now.
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return count


def wait_for_sockets(expected: Callable[[], int]) -> None:
    """Waits until no more than the expected number of sockets are open; fails if that does not happen."""
    deadline = time.monotonic() + SOON
    while (count := sockets()) > expected():
        assert time.monotonic() < deadline, f"{count} sockets are open, expected {expected()}"
        time.sleep(0.01)
