"""requests over eyas."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator

import pytest
import requests
from conftest import SOON, Server, Silent

import eyas
import eyas.requests


@pytest.fixture
def session(server: Server) -> Iterator[requests.Session]:
    with requests.Session() as session:
        adapter = eyas.requests.Adapter(verify=server.roots)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        yield session


def test_a_session(server: Server, session: requests.Session) -> None:
    response = session.post(f"{server.url}/echo", json={"a": 1}, timeout=SOON)
    assert response.json() == {"a": 1}
    assert response.headers["Content-Type"] == "application/json"
    assert eyas.requests.info(response).security == "tls"
    followed = session.get(f"{server.url}/redirect/2", timeout=(SOON, SOON))
    assert [hop.status_code for hop in followed.history] == [302, 302]
    assert session.head(f"{server.url}/bytes/10").headers["Content-Length"] == "10"
    assert len(session.get(f"{server.url}/bytes/10#fragment").content) == 10
    with pytest.raises(requests.HTTPError):
        session.get(f"{server.url}/status/503").raise_for_status()


def test_streaming_in_both_directions(server: Server, session: requests.Session) -> None:
    def chunks() -> Iterator[bytes]:
        for n in range(50):
            yield b"%03d" % n * 1000

    whole = b"".join(chunks())
    with session.post(f"{server.url}/echo", data=chunks(), stream=True) as response:
        assert b"".join(response.iter_content(10_000)) == whole
    file = io.BytesIO(whole)
    assert session.put(f"{server.url}/echo", data=file).content == whole
    with session.get(f"{server.url}/greeting.txt", stream=True) as stream:
        stream.encoding = "utf-8"
        assert list(stream.iter_lines(decode_unicode=True)) == ["grüß dich", "zweite Zeile"]
    with session.get(f"{server.url}/bytes/1000000", stream=True) as unread:
        assert len(unread.raw.read(7)) == 7
    assert len(session.get(f"{server.url}/bytes/3").content) == 3


def test_compressed_responses_are_decoded(
    server: Server, session: requests.Session
) -> None:
    response = session.get(f"{server.url}/greeting.txt", headers={"Accept-Encoding": "gzip"})
    assert response.content.decode() == "grüß dich\nzweite Zeile\n"


def test_the_verify_argument_of_requests(server: Server, session: requests.Session) -> None:
    with requests.Session() as other:
        other.mount("https://", eyas.requests.Adapter())
        with pytest.raises(requests.exceptions.SSLError):
            other.get(server.url)
        assert other.get(f"{server.url}/bytes/1", verify=str(server.roots)).ok
        assert other.get(f"{server.url}/bytes/1", verify=False).ok


def test_a_generator_that_raises(server: Server, session: requests.Session) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"first"
        raise LookupError("the second is gone")

    with pytest.raises(LookupError):
        session.post(f"{server.url}/echo", data=chunks())


def test_errors_are_translated(
    unused_port: int, silent: Silent, session: requests.Session
) -> None:
    with pytest.raises(requests.ConnectionError) as raised:
        session.get(f"http://127.0.0.1:{unused_port}/")
    cause = raised.value.__cause__
    assert isinstance(cause, eyas.ConnectError)
    assert cause.candidates
    with pytest.raises(requests.ConnectTimeout):
        session.get(silent.url, timeout=(0.3, SOON))
    with pytest.raises(requests.ReadTimeout):
        session.get(silent.url.replace("https", "http"), timeout=(SOON, 0.3))


def test_an_incomplete_body(session: requests.Session) -> None:
    finished = threading.Event()

    def serve() -> None:
        for close_early in (True, False):
            there, _ = listener.accept()
            there.recv(4096)
            there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.")
            if not close_early:
                finished.wait(SOON)
            there.close()

    with eyas.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        host, port = listener.address
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            session.get(f"http://{host}:{port}/", timeout=SOON)
        with session.get(f"http://{host}:{port}/", timeout=(SOON, 0.3), stream=True) as response:
            with pytest.raises(requests.ConnectionError, match="silent"):
                _ = response.content
        finished.set()
        thread.join(SOON)


def test_cookies_are_kept(session: requests.Session) -> None:
    seen: list[bytes] = []

    def serve() -> None:
        there, _ = listener.accept()
        for _ in range(2):
            request = b""
            while b"\r\n\r\n" not in request:
                request += there.recv(4096)
            seen.append(request)
            cookies = b"Set-Cookie: a=b; Path=/\r\nSet-Cookie: c=d\r\n"
            there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + cookies + b"\r\n")

    with eyas.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        host, port = listener.address
        for _ in range(2):
            assert session.get(f"http://{host}:{port}/", timeout=SOON).ok
        thread.join(SOON)
    assert session.cookies.get_dict() == {"a": "b", "c": "d"}
    assert b"a=b" in seen[1] and b"c=d" in seen[1]
