"""The matrix of ends: one program over every transport. What was written arrives, whoever ends first."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import SOON

import eyas

#: The transports of the listener, that of the client, and whether TLS is used.
ROWS = [
    (("tcp",), "tcp", False),
    (("tcp",), "tcp", True),
    (("mptcp", "tcp"), "tcp", True),
    (("quic",), "quic", True),
    (("sctp-udp",), "sctp-udp", False),
    (("sctp-udp",), "sctp-udp", True),
]
#: From one packet to more than any buffer on the way.
SIZES = [100, 3_000_000]
#: Whether the reader ends its own side before the writer writes, and whether the writer has read that.
ENDS = ["open", "reader-first", "reader-first-unread"]

#: A process whose last act is to close a connection.
WRITER = """
import sys, eyas
port, udp, transport, tls, roots, size, end = sys.argv[1:]
here = eyas.create_connection(
    ("127.0.0.1", int(port)), 60, transports=(transport,), tls=tls == "True", alpn=["ends"] if tls == "True" else [],
    sctp_udp_port=int(udp) or None, verify=roots or True,
)
here.sendall(b"!")
if end == "reader-first":
    assert here.recv(1) == b""
elif end == "reader-first-unread":
    sys.stdin.readline()
here.sendall(bytes(range(250)) * (int(size) // 250) + b"." * (int(size) % 250))
here.close()
"""


def data(size: int) -> bytes:
    return bytes(range(250)) * (size // 250) + b"." * (size % 250)


def read_all(connection: eyas.Connection) -> bytes:
    read = bytearray()
    while piece := connection.recv(65536):
        read += piece
        # A reader that is slower than the writer.
        time.sleep(0.0005)
    return bytes(read)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("served", "transport", "tls"), ROWS)
def test_what_was_written_before_the_end_arrives(
    served: tuple[str, ...], transport: str, tls: bool, size: int, end: str, tmp_path: Path
) -> None:
    identity = eyas.ServerIdentity.self_signed("127.0.0.1")
    roots = tmp_path / "ca.pem"
    roots.write_text(identity.certificate_pem)
    with eyas.create_server(
        ("127.0.0.1", 0),
        transports=served,
        identity=identity if tls else None,
        alpn=["ends"] if tls else [],
        sctp_udp_port=0,
    ) as listener:
        listener.settimeout(SOON)
        udp = listener.sctp_udp_port

        # The accepted side writes, and is closed in a thread that does nothing else.
        here = eyas.create_connection(
            listener.getsockname(),
            SOON,
            transports=(transport,),
            tls=tls,
            alpn=["ends"] if tls else [],
            sctp_udp_port=udp,
            verify=roots,
        )
        here.sendall(b"!")
        there, _ = listener.accept()
        there.settimeout(SOON)
        assert there.recv(1) == b"!"
        if end != "open":
            here.shutdown()
        if end == "reader-first":
            assert there.recv(1) == b""

        def write() -> None:
            there.sendall(data(size))
            there.close()

        thread = threading.Thread(target=write)
        thread.start()
        assert read_all(here) == data(size)
        thread.join()
        here.close()

        # A client writes, and its process ends.
        arguments = [listener.getsockname()[1], udp or 0, transport, tls, roots if tls else "", size, end]
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, *map(str, arguments)], stdin=subprocess.PIPE
        ) as process:
            there, _ = listener.accept()
            there.settimeout(SOON)
            assert there.recv(1) == b"!"
            if end != "open":
                there.shutdown()
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert read_all(there) == data(size)
            there.close()
            assert process.wait(SOON) == 0
