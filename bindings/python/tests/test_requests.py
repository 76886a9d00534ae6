"""requests over eyas."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from conftest import SOON, Server, Silent
from recording import Received, Recorder

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


def chunks() -> Iterator[bytes]:
    yield b"one"
    yield b"two"


def moved(position: int) -> io.BytesIO:
    file = io.BytesIO(b"content")
    file.seek(position)
    return file


#: Arguments of requests, which must have the same effect with the adapter.
SAME: dict[str, Callable[[], dict[str, Any]]] = {
    "host": lambda: {"headers": {"Host": "other.example"}},
    "bytes": lambda: {"headers": {"X-Bytes": b"v"}},
    "header-latin-1": lambda: {"headers": {"X-A": "\u00fc"}},
    "header-none": lambda: {"headers": {"X-A": None}},
    "header-int": lambda: {"headers": {"X-A": 5}},
    "params": lambda: {"params": {"a": [1, True], "b": None}},
    "form": lambda: {"data": {"a": ["x", 1], "b": b"\xff"}},
    "data-bytes": lambda: {"data": b"raw"},
    "data-text": lambda: {"data": "\u00fc"},
    "data-file": lambda: {"data": io.BytesIO(b"content")},
    "data-file-moved": lambda: {"data": moved(3)},
    "data-generator": lambda: {"data": chunks()},
    "json-nan": lambda: {"json": float("nan")},
    "files": lambda: {"files": {"f": ("a", b"1", "text/x")}, "headers": {"X-A": "1"}},
    "cookies": lambda: {"cookies": {"a": "1"}},
    "timeout-of-three": lambda: {"timeout": (1, 2, 3)},
    "timeout-text": lambda: {"timeout": "5"},
    "unknown-argument": lambda: {"foo": 1},
    "verify-missing": lambda: {"verify": "there/is/no.pem"},
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_as_requests(name: str) -> None:
    recorder = Recorder()
    outcomes = []
    for adapter in (None, eyas.requests.Adapter(http3=False)):
        start = len(recorder.received)
        with requests.Session() as session:
            session.trust_env = False
            if adapter is not None:
                session.mount("http://", adapter)
            try:
                result: object = session.post(f"{recorder.url}/p", **SAME[name]()).status_code
            except Exception as error:
                result = type(error)
        outcomes.append(([same_boundary(one) for one in recorder.received[start:]], result))
    recorder.close()
    if name == "verify-missing":
        # Without TLS, requests does not look at it.
        assert outcomes[1][1] is OSError
    else:
        assert outcomes[1] == outcomes[0]


def same_boundary(request: Received) -> Received:
    boundary = (request.field("content-type") or "").partition("boundary=")[2]
    if not boundary:
        return request
    fields = tuple((name, value.replace(boundary, "B")) for name, value in request.fields)
    body = request.body.replace(boundary.encode(), b"B")
    return Received(request.method, request.target, fields, body)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_sessions_are_copied(copied: Callable[[Any], Any], server: Server, tmp_path: Path) -> None:
    for adapter in (
        eyas.requests.Adapter(verify=str(server.roots), http3=False),
        eyas.requests.Adapter(endpoint=eyas.Endpoint(verify=server.roots)),
        eyas.requests.Adapter(
            endpoint=eyas.Endpoint(verify=server.roots, memory=tmp_path / "memory.sqlite")
        ),
    ):
        with requests.Session() as session:
            session.mount("https://", adapter)
            session.headers["X-A"] = "1"
            assert session.get(f"{server.url}/bytes/1", timeout=SOON).ok
            with copied(session) as other:
                assert other.headers["X-A"] == "1"
                assert other.get(f"{server.url}/bytes/1", timeout=SOON).ok
            # The copy has connections of its own.
            assert session.get(f"{server.url}/bytes/1", timeout=SOON).ok


def test_unknown_options_of_the_adapter() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        eyas.requests.Adapter(foo=1)
    with pytest.raises(ValueError, match="unknown transport"):
        eyas.requests.Adapter(transports=["pigeon"])
