"""Blocking requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import SOON, Server

import eyas

VERSIONS = [
    ("HTTP/1.1", "tcp", {"http2": False, "http3": False}),
    ("HTTP/2", "tcp", {"http1": False, "http3": False}),
    ("HTTP/3", "quic", {"http1": False, "http2": False}),
]


@pytest.mark.parametrize(("version", "transport", "versions"), VERSIONS)
def test_every_version(
    server: Server, version: str, transport: str, versions: dict[str, Any]
) -> None:
    with eyas.Client(verify=server.roots, timeout=SOON, **versions) as client:
        response = client.get(f"{server.url}/bytes/100000")
        assert response.status_code == 200
        assert response.is_success
        assert response.http_version == version
        assert len(response.content) == 100_000
        info = response.info
        assert info.transport == transport
        assert info.security == "tls"
        assert info.protocol == "TLSv1.3"
        assert info.remote.endswith(f":{server.port}")
        assert info.timings.security_ms is not None
        assert info.timings.security_ms >= info.timings.started_ms
        assert info.reasons
        assert not response.connection_was_reused
        assert client.post(f"{server.url}/echo", content=b"again").connection_was_reused


def test_the_race_is_reported(client: eyas.Client) -> None:
    response = client.get("/bytes/1")
    race = response.race
    assert race.winner is not None
    assert race.winner.transport == response.info.transport
    assert {attempt.transport for attempt in race.attempts} <= {"quic", "tcp"}
    assert "won" in race.explain()
    assert race._repr_html_().startswith("<svg")
    assert race.plan.entries[0].reasons


def test_bodies_and_content_types(client: eyas.Client) -> None:
    echo = client.post("/echo", json={"ü": [1, None]})
    assert echo.json() == {"ü": [1, None]}
    assert echo.headers["Content-Type"] == "application/json"
    assert client.put("/echo", content="text").text == "text"
    assert client.post("/echo", content=bytearray(b"\x00\xff")).content == b"\x00\xff"
    form = client.post("/echo", data={"a b": "c&d"})
    assert form.content == b"a+b=c%26d"
    with pytest.raises(ValueError, match="only one body"):
        client.post("/echo", content=b"x", json={})


def test_a_body_from_an_iterator(client: eyas.Client) -> None:
    def chunks() -> Iterator[bytes]:
        for n in range(100):
            yield b"%05d" % n * 1000

    echo = client.post("/echo", content=chunks())
    assert echo.content == b"".join(chunks())


def test_an_iterator_that_raises(client: eyas.Client) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"first"
        raise LookupError("the second is gone")

    with pytest.raises(eyas.WriteError) as raised:
        client.post("/echo", content=chunks())
    assert isinstance(raised.value.__cause__, LookupError)
    assert raised.value.kind == "request-body"


def test_streaming(client: eyas.Client) -> None:
    with client.stream("GET", "/bytes/1000000") as response:
        pieces = list(response.iter_bytes(chunk_size=65536))
    assert {len(piece) for piece in pieces[:-1]} == {65536}
    assert sum(map(len, pieces)) == 1_000_000
    assert response.is_closed
    with pytest.raises(eyas.StreamConsumed):
        next(response.iter_bytes())
    with client.stream("GET", "/bytes/1000000") as unread:
        pass
    with pytest.raises(eyas.StreamClosed):
        unread.read()
    with pytest.raises(eyas.StreamConsumed):
        _ = unread.content


def test_text_and_lines(client: eyas.Client) -> None:
    response = client.get("/greeting.txt")
    assert response.encoding == "utf-8"
    assert response.text == "grüß dich\nzweite Zeile\n"
    with client.stream("GET", "/greeting.txt") as stream:
        assert list(stream.iter_lines()) == ["grüß dich", "zweite Zeile"]
    with client.stream("GET", "/greeting.txt") as stream:
        assert "".join(stream.iter_text()) == response.text


def test_head_has_no_body(client: eyas.Client) -> None:
    response = client.head("/bytes/10")
    assert response.headers["content-length"] == "10"
    assert response.content == b""


def test_query_parameters(client: eyas.Client) -> None:
    response = client.get("/status/204?a=1", params={"b": [2, True], "c": None})
    assert response.url.endswith("/status/204?a=1&b=2&b=true&c=")
    assert client.get("/status/204", params="x=y").url.endswith("?x=y")


def test_redirects_are_followed_on_request(client: eyas.Client) -> None:
    response = client.get("/redirect/2")
    assert response.status_code == 302
    assert response.history == []
    followed = client.get("/redirect/2", follow_redirects=True)
    assert [redirect.status_code for redirect in followed.history] == [302, 302]
    assert followed.history[-1].location == followed.url
    with eyas.Client(endpoint=client.endpoint, follow_redirects=True, max_redirects=1) as strict:
        with pytest.raises(eyas.TooManyRedirects):
            strict.get(response.url)


def test_statuses(client: eyas.Client) -> None:
    fine = client.get("/status/200")
    assert fine.raise_for_status() is fine
    with pytest.raises(eyas.HTTPStatusError, match="503 Service Unavailable") as raised:
        client.get("/status/503").raise_for_status()
    assert raised.value.response.status_code == 503
    assert raised.value.url is not None


def test_credentials(client: eyas.Client) -> None:
    # The server does not echo the header, so this only verifies that the request is well-formed.
    assert client.get("/status/200", auth=("ada", "secret")).is_success
    assert "secret" not in repr(eyas.Headers({"Authorization": "secret"}))


def test_module_functions(server: Server) -> None:
    assert len(eyas.get(f"{server.url}/bytes/3", verify=server.roots).content) == 3
    assert eyas.post(f"{server.url}/echo", verify=server.roots, content=b"x").content == b"x"
    with eyas.stream("GET", f"{server.url}/bytes/9", verify=server.roots) as response:
        assert len(response.read()) == 9


def test_a_closed_client(server: Server) -> None:
    client = eyas.Client(verify=server.roots)
    client.close()
    assert client.is_closed
    with pytest.raises(eyas.ClientClosed):
        client.get(server.url)


def test_invalid_arguments(server: Server) -> None:
    with pytest.raises(ValueError, match="unknown policy"):
        eyas.Client(policy="luck")
    with pytest.raises(ValueError, match="unknown transport"):
        eyas.Client(transports=["pigeon"])
    with pytest.raises(ValueError, match="own trusted roots"):
        eyas.Client(endpoint=eyas.Endpoint(), verify=server.roots)
    with pytest.raises(eyas.LocalProtocolError):
        eyas.Client(http1=False, http2=False, http3=False)
    with pytest.raises(FileNotFoundError):
        eyas.Client(verify="there/is/no/such.pem")


def test_headers() -> None:
    headers = eyas.Headers([("Vary", "a"), ("vary", "b"), ("X", "1")])
    assert headers["VARY"] == "a, b"
    assert headers.get_list("vary") == ["a", "b"]
    assert list(headers) == ["vary", "x"]
    assert len(headers) == 2
    assert "x" in headers
    assert "y" not in headers
    assert headers != {"vary": "a", "x": "1"}
    assert headers == eyas.Headers([("X", "1"), ("vary", "a"), ("VARY", "b")])
