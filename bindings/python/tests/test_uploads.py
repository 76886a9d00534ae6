"""Bodies that have to be sent again, and servers that ask for a client certificate."""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import Accepting
from recording import Recorder

import eyas

CONTENT = bytes(range(256)) * 1000


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.close()


def at(position: int) -> io.BytesIO:
    file = io.BytesIO(CONTENT)
    file.seek(position)
    return file


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda: {"content": at(0)}, CONTENT),
        (lambda: {"content": at(1000)}, CONTENT[1000:]),
        (lambda: {"content": [CONTENT, b"end"]}, CONTENT + b"end"),
        (lambda: {"content": (CONTENT, b"end")}, CONTENT + b"end"),
        (lambda: {"files": {"f": at(1000)}}, CONTENT),
        (lambda: {"files": {"f": at(0), "g": b"second"}, "data": {"a": "b"}}, b"second"),
    ],
)
def test_a_file_is_sent_again(
    recorder: Recorder, status: int, body: Callable[[], dict[str, Any]], expected: bytes
) -> None:
    options: dict[str, Any] = {"follow_redirects": True, "cookies": False, "http3": False}
    with eyas.Client(base_url=recorder.url, **options) as client:
        response = client.post(f"/to/{status}/to/{status}/end", **body())
    assert response.status_code == 200 and len(response.history) == 2
    assert [request.method for request in recorder.received] == ["POST"] * 3
    bodies = [request.body for request in recorder.received]
    assert bodies[0] == bodies[1] == bodies[2] and expected in bodies[0]
    fields = [request.fields for request in recorder.received]
    assert fields[0] == fields[1] == fields[2]


def test_what_can_be_read_only_once_is_not_sent_again(recorder: Recorder) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError("a pipe")

    once: list[Any] = [iter([CONTENT]), (piece for piece in [CONTENT]), Pipe(CONTENT)]
    with eyas.Client(base_url=recorder.url, follow_redirects=True, http3=False) as client:
        for body in once:
            with pytest.raises(eyas.TooManyRedirects, match="sent again"):
                client.post("/to/307/end", content=body)
    assert [request.target for request in recorder.received] == ["/to/307/end"] * 3


def test_a_file_that_fails_is_the_cause(recorder: Recorder) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 100_000:
                raise OSError("the disk is gone")
            return super().read(size)

    with eyas.Client(base_url=recorder.url, http3=False) as client:
        with pytest.raises(eyas.WriteError) as raised:
            client.post("/x", content=Failing(CONTENT))
    assert str(raised.value.__cause__) == "the disk is gone"


class Demanding(Accepting):
    """A server that demands a certificate of its clients."""

    def __init__(self, directory: Path, version: ssl.TLSVersion) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
        self._context.load_verify_locations(directory / "cert.pem")
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.minimum_version = self._context.maximum_version = version
        super().__init__()

    def _accepted(self, connection: socket.socket) -> None:
        connection.settimeout(30)
        with contextlib.suppress(OSError), connection:
            with self._context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(65536)
                secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a directory with a certificate, and its key with and without a passphrase."""
    directory = tmp_path_factory.mktemp("keys")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    encrypted = ["openssl", "pkey", "-in", "key.pem", "-aes256", "-passout", "pass:word", "-out", "secret.pem"]
    for command in (made, encrypted):
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return directory


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate_that_is_missing_is_an_error_of_tls(
    keys: Path, version: ssl.TLSVersion
) -> None:
    server = Demanding(keys, version)
    url = f"https://127.0.0.1:{server.port}/"
    roots = keys / "cert.pem"
    try:
        with pytest.raises(eyas.TLSError) as raised:
            eyas.get(url, verify=roots, timeout=30)
        assert isinstance(raised.value, ConnectionError)
        for endpoint in [
            eyas.Endpoint(verify=roots, cert=(roots, keys / "key.pem")),
            eyas.Endpoint(verify=roots, cert=(roots, keys / "secret.pem", "word")),
        ]:
            with eyas.Client(endpoint=endpoint, timeout=30) as client:
                assert client.get(url).text == "ok"
    finally:
        server.close()
