"""niquests over eyas, in an environment without requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import SOON, Server, Silent

import eyas

niquests: Any = pytest.importorskip("niquests")


@pytest.fixture
def session(server: Server) -> Iterator[Any]:
    import eyas.niquests

    with niquests.Session() as session:
        adapter = eyas.niquests.Adapter(verify=server.roots)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        yield session


def test_a_session(server: Server, session: Any) -> None:
    response = session.post(f"{server.url}/echo", json={"a": 1}, timeout=SOON)
    assert response.json() == {"a": 1}
    assert eyas.niquests.info(response).security == "tls"
    followed = session.get(f"{server.url}/redirect/2", timeout=SOON)
    assert [hop.status_code for hop in followed.history] == [302, 302]


def test_streaming_in_both_directions(server: Server, session: Any) -> None:
    def chunks() -> Iterator[bytes]:
        for n in range(50):
            yield b"%03d" % n * 1000

    with session.post(f"{server.url}/echo", data=chunks(), stream=True) as response:
        assert b"".join(response.iter_content(10_000)) == b"".join(chunks())


def test_errors_are_translated(unused_port: int, silent: Silent, session: Any) -> None:
    with pytest.raises(niquests.ConnectionError) as raised:
        session.get(f"http://127.0.0.1:{unused_port}/")
    assert isinstance(raised.value.__cause__, eyas.ConnectError)
    with pytest.raises(niquests.ConnectTimeout):
        session.get(silent.url, timeout=(0.3, SOON))
    with pytest.raises(niquests.ReadTimeout):
        session.get(silent.url.replace("https", "http"), timeout=(SOON, 0.3))
