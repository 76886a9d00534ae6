"""Exceptions and their contents."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Server, Silent

import eyas
from eyas import _errors, _native


def test_a_refused_request(unused_port: int) -> None:
    with pytest.raises(eyas.ConnectError) as raised:
        eyas.get(f"http://127.0.0.1:{unused_port}/")
    error = raised.value
    assert error.kind == "connect"
    assert error.candidates == ((f"tcp 127.0.0.1:{unused_port}", "refused"),)
    assert error.causes == ("refused",)
    assert error.url == f"http://127.0.0.1:{unused_port}/"
    assert isinstance(error, ConnectionError)


def test_an_untrusted_certificate(server: Server) -> None:
    with pytest.raises(eyas.CertificateError) as raised:
        eyas.get(server.url)
    error = raised.value
    assert isinstance(error, eyas.ConnectError)
    assert error.causes[0] == "certificate"
    # The candidates at the other address of localhost were refused.
    assert "certificate" in {cause for _, cause in error.candidates}
    assert eyas.get(f"{server.url}/bytes/1", verify=False).is_success


def test_a_silent_peer(silent: Silent) -> None:
    limits = eyas.Timeout(None, connect=0.5)
    with pytest.raises(eyas.ConnectTimeout) as raised:
        eyas.get(silent.url, timeout=limits)
    assert (f"tcp 127.0.0.1:{silent.port} tls", "deadline") in raised.value.candidates
    assert {cause for _, cause in raised.value.candidates} == set(raised.value.causes)
    assert isinstance(raised.value, TimeoutError)
    assert isinstance(raised.value, eyas.ConnectError)
    plain = silent.url.replace("https", "http")
    with pytest.raises(eyas.ReadTimeout):
        eyas.get(plain, timeout=eyas.Timeout(30, read=0.3))
    with pytest.raises(eyas.TotalTimeout):
        eyas.get(plain, timeout=eyas.Timeout(30, total=0.3))
    silent.wait_until_all_are_closed()


def test_a_slow_response(client: eyas.Client) -> None:
    with pytest.raises(eyas.ReadTimeout):
        client.get("/slow?ms=30000", timeout=eyas.Timeout(30, read=0.3))


@pytest.mark.parametrize("url", ["", "host", "ftp://host/", "https://", "https://[::1/"])
def test_invalid_urls(url: str) -> None:
    with pytest.raises(eyas.InvalidURL):
        eyas.get(url)


def test_passwords_are_not_shown() -> None:
    with pytest.raises(eyas.InvalidURL) as raised:
        eyas.get("https://ada:secret@a b/")
    assert "secret" not in str(raised.value)


def test_invalid_requests(server: Server) -> None:
    with pytest.raises(ValueError, match="header field"):
        eyas.get(server.url, headers={"a b": "c"})
    with pytest.raises(ValueError, match="header field"):
        eyas.get(server.url, headers={"a": "b\r\nc: d"})
    with pytest.raises(ValueError, match="not a valid number of seconds"):
        eyas.get(server.url, timeout=-1)


def test_errors_can_be_pickled(unused_port: int) -> None:
    with pytest.raises(eyas.ConnectError) as raised:
        eyas.get(f"http://127.0.0.1:{unused_port}/")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is type(raised.value)
    assert str(copy) == str(raised.value)
    assert copy.candidates == raised.value.candidates


def test_a_refused_connection(unused_port: int) -> None:
    with pytest.raises(eyas.ConnectError) as raised:
        eyas.create_connection(("127.0.0.1", unused_port), transports=("tcp",))
    assert raised.value.candidates == ((f"tcp 127.0.0.1:{unused_port} tls", "refused"),)


def test_every_kind_has_a_class() -> None:
    """The kinds of the native part are those for which there are exceptions."""
    assert set(_errors._CLASSES) == set(_native.kinds())
    for kind in _native.kinds():
        fields: _errors.ErrorFields = {
            "kind": kind,
            "message": "how it was",
            "url": "https://host/",
            "candidates": [],
            "causes": [kind],
        }
        error = _errors.from_native(fields)
        assert type(error) is not eyas.Error
        assert getattr(eyas, type(error).__name__) is type(error)
        assert (error.kind, error.url, error.causes) == (kind, "https://host/", (kind,))
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.kind, copy.url) == (type(error), kind, "https://host/")
        assert str(error).startswith("how it was")


def test_invalid_json(client: eyas.Client) -> None:
    response = client.post("/echo", content=b'{"a":')
    with pytest.raises(eyas.JSONDecodeError) as raised:
        response.json()
    error = raised.value
    assert (error.kind, error.url) == ("body-json", response.url)
    assert isinstance(error, json.JSONDecodeError)
    assert isinstance(error, eyas.DecodingError)
    assert error.pos == 5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: eyas.Client(policy=5), "policy: "),  # type: ignore[arg-type]
        (lambda: eyas.Client(max_body="1"), "max_body: "),  # type: ignore[arg-type]
        (lambda: eyas.Client(proxy=1), "proxy: "),  # type: ignore[arg-type]
        (lambda: eyas.Client(transports="tcp"), "sequence of names"),
        (lambda: eyas.Client(timeout="5"), "number of seconds"),  # type: ignore[arg-type]
        (lambda: eyas.Client(base_url=5), "Invalid type for url"),  # type: ignore[arg-type]
        (lambda: eyas.Client(headers=5), "not iterable"),  # type: ignore[arg-type]
        (lambda: eyas.Client(foo=1), "unexpected keyword argument 'foo'"),  # type: ignore[call-arg]
        (lambda: eyas.Endpoint(mptcp="yes"), "mptcp"),  # type: ignore[arg-type]
        (lambda: eyas.Endpoint(dns_server=53), "server: "),  # type: ignore[arg-type]
        (lambda: eyas.race(5), "url: "),  # type: ignore[arg-type]
        (lambda: eyas.plan("https://h/", seed="x"), "seed: "),  # type: ignore[arg-type]
        (lambda: eyas.create_connection(("h", None)), "interpreted as an integer"),  # type: ignore[arg-type]
        (lambda: eyas.create_connection(("h", 1), alpn=[5]), "alpn: "),  # type: ignore[list-item]
        (lambda: eyas.create_connection(("h", 1), "5"), "timeout: "),  # type: ignore[arg-type]
        (lambda: eyas.create_server(("127.0.0.1", "x")), "port: "),  # type: ignore[arg-type]
        (
            lambda: eyas.create_server(("::1", 0), sctp=eyas.sctp.Config(send_buffer="big")),  # type: ignore[arg-type]
            "send_buffer: ",
        ),
    ],
)
def test_arguments_of_the_wrong_type_are_named(call: Callable[[], object], words: str) -> None:
    with pytest.raises(TypeError, match=re.escape(words)) as raised:
        call()
    assert "extract" not in str(raised.value)


def test_a_port_may_be_text(server: Server) -> None:
    """As in the socket module."""
    port: Any = str(server.port)
    with eyas.create_connection(("127.0.0.1", port), 30, transports=["tcp"], tls=False):
        pass
    with pytest.raises(OSError, match="not found"):
        eyas.create_connection(("127.0.0.1", "no-such-service"))  # type: ignore[arg-type]
