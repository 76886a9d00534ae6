"""A server that records what it receives, byte for byte: HTTP/1.1 without TLS."""

from __future__ import annotations

import dataclasses
import socket
import threading
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

from helpers import Accepting

#: Fields in which clients differ by right: who they are and what they can do.
OWN_FIELDS = {"user-agent", "accept", "accept-encoding", "connection"}


@dataclasses.dataclass(frozen=True)
class Received:
    """A request."""

    method: str
    target: str
    fields: tuple[tuple[str, str], ...]
    body: bytes

    def field(self, name: str) -> str | None:
        """Returns the value of a field."""
        return dict(self.fields).get(name)


class Recorder(Accepting):
    """A server that records requests, and answers by their path:

    `/set/NAME=VALUE;…/…` sets cookies, `/to/STATUS/TARGET` redirects, `/far/STATUS/TARGET` to another origin,
    `/text/ESCAPED` sends a text in small pieces, `/body/TYPE/ESCAPED` sends octets of a type, `/status/STATUS` answers
    with it, and everything else is an empty 200.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        super().__init__()
        self.url = f"http://127.0.0.1:{self.port}"

    def _accepted(self, connection: socket.socket) -> None:
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # Small pieces are to arrive as they are sent.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, connection.makefile("rb") as stream:
            try:
                while (request := read(stream)) is not None:
                    self.received.append(request)
                    for piece in answer(request.target, f"http://localhost:{self.port}"):
                        connection.sendall(piece)
            except (OSError, ValueError):
                # The client has gone.
                return


def read(stream: BinaryIO) -> Received | None:
    """Reads a request; returns `None` at the end."""
    line = stream.readline()
    if not line:
        return None
    method, target, _ = line.decode("latin-1").split()
    fields = []
    while (line := stream.readline()) not in {b"\r\n", b""}:
        name, _, value = line.decode("latin-1").partition(":")
        fields.append((name.lower(), value.strip()))
    kept = tuple(sorted(field for field in fields if field[0] not in OWN_FIELDS))
    return Received(method, target, kept, read_body(stream, dict(fields)))


def read_body(stream: BinaryIO, fields: dict[str, str]) -> bytes:
    """Reads the body of a request."""
    if fields.get("transfer-encoding") != "chunked":
        return stream.read(int(fields.get("content-length", 0)))
    body = b""
    while size := int(stream.readline() or b"-1", 16):
        if size < 0:
            raise ConnectionError("the request is not complete")
        body += stream.read(size)
        stream.readline()
    stream.readline()
    return body


def answer(target: str, other: str) -> list[bytes]:
    """Returns the pieces of a response; `other` is the other origin."""
    _, kind, *rest = target.partition("?")[0].split("/")
    if kind == "set":
        text = "".join(f"Set-Cookie: {one}\r\n" for one in rest[0].split(";;"))
        cookies = unquote_to_bytes(text)
        return [b"HTTP/1.1 200 OK\r\n" + cookies + b"Content-Length: 0\r\n\r\n"]
    if kind in {"to", "far"}:
        status, to = rest[0], ("" if kind == "to" else other) + "/" + "/".join(rest[1:])
        head = f"HTTP/1.1 {status} Found\r\nLocation: {to}\r\nSet-Cookie: hop=1; Path=/\r\n"
        return [head.encode() + b"Content-Length: 0\r\n\r\n"]
    if kind == "status":
        return [f"HTTP/1.1 {rest[0]} Reason\r\nContent-Length: 0\r\n\r\n".encode()]
    if kind == "body":
        media_type, content = (unquote_to_bytes(part) for part in rest)
        fields = b"Content-Type: %s\r\nContent-Length: %d\r\n\r\n"
        return [b"HTTP/1.1 200 OK\r\n" + fields % (media_type, len(content)), content]
    if kind == "text":
        body = unquote_to_bytes(rest[0])
        start = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
        pieces = [body[n : n + 1] for n in range(len(body))]
        return [start + b"Content-Length: %d\r\n\r\n" % len(body), *pieces]
    return [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]
