"""A client and a server over HTTP/3 with aioquic, like `peers/http3/quic-go`: the same paths, the same lines.

    python -m eyas_interop.aioquic_peer server ADDRESS:PORT CERTIFICATE KEY [--trickle]
    python -m eyas_interop.aioquic_peer client BASE CA PATH... [--trickle]

With `--trickle` each byte of a stream is in a packet of its own, as far as congestion control allows. aioquic knows no
interim responses.
"""

import asyncio
import sys
import urllib.parse

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import H3_ALPN, FrameType, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, QuicEvent, StreamReset

# How long a client waits for a response, in seconds.
TIMEOUT = 60
FIELDS = [(f"x-field-{number}".encode(), b"value" * number) for number in range(16)]
TRICKLE = "--trickle" in sys.argv


def content(length: int) -> bytes:
    """A content that shows lost and exchanged parts."""
    return bytes((7 * index + index // 256) % 256 for index in range(length))


class Message:
    """What has arrived on a stream."""

    def __init__(self) -> None:
        self.head: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.trailers: dict[bytes, bytes] = {}
        self.ended = asyncio.Event()
        self.failure = ""


class End(QuicConnectionProtocol):
    """What both ends have in common."""

    http: H3Connection | None = None

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.messages: dict[int, Message] = {}
        self.negotiated = asyncio.Event()
        if TRICKLE:
            self.whole = self._quic.send_stream_data
            self._quic.send_stream_data = self.trickle

    def trickle(self, stream: int, data: bytes, end_stream: bool = False) -> None:
        for octet in data[:-1]:
            self.whole(stream, bytes([octet]), False)
            self.transmit()
        self.whole(stream, data[-1:], end_stream)
        self.transmit()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
            self.negotiated.set()
        if isinstance(event, StreamReset):
            self.fail(self.message(event.stream_id), f"reset with {event.error_code:#x}")
        if isinstance(event, ConnectionTerminated):
            for message in self.messages.values():
                self.fail(message, f"closed with {event.error_code:#x} {event.reason_phrase}")
        for received in self.http.handle_event(event) if self.http else []:
            message = self.message(received.stream_id)
            if isinstance(received, HeadersReceived):
                fields = dict(received.headers)
                if message.head:
                    message.trailers = fields
                else:
                    message.head = fields
            elif isinstance(received, DataReceived):
                message.body += received.data
            if received.stream_ended:
                message.ended.set()
                self.complete(received.stream_id, message)

    def message(self, stream: int) -> Message:
        return self.messages.setdefault(stream, Message())

    def fail(self, message: Message, why: str) -> None:
        if not message.ended.is_set():
            message.failure = why
            message.ended.set()

    def complete(self, stream: int, message: Message) -> None:
        """Called once a message is complete."""


class Site(End):
    """The server."""

    def complete(self, stream: int, request: Message) -> None:
        asyncio.ensure_future(self.respond(stream, request))

    async def respond(self, stream: int, request: Message) -> None:
        path = request.head[b":path"].decode()
        trailers: list[tuple[bytes, bytes]] = []
        if path == "/page":
            body = f"aioquic HTTP/3 {request.head[b':method'].decode()} {request.head[b':authority'].decode()}\n".encode()
        elif path == "/trailers":
            body, trailers = b"before a trailer\n", [(b"x-sum", b"received")]
        elif path.startswith("/bytes/"):
            body = content(int(path.rpartition("/")[2]))
        elif path == "/echo":
            body, trailers = bytes(request.body), list(request.trailers.items())
        elif path == "/away":
            goaway = encode_frame(FrameType.GOAWAY, encode_uint_var(stream + 4))
            self._quic.send_stream_data(self.http._local_control_stream_id, goaway)
            self.transmit()
            await asyncio.sleep(0.5)
            body = b"after a GOAWAY\n"
        else:
            self.http.send_headers(stream, [(b":status", b"404")], end_stream=True)
            return self.transmit()
        self.http.send_headers(stream, [(b":status", b"200"), *FIELDS])
        self.http.send_data(stream, body, end_stream=not trailers)
        if trailers:
            self.http.send_headers(stream, trailers, end_stream=True)
        self.transmit()
        if path == "/away":
            await asyncio.sleep(0.5)
            self.close(error_code=0x100)


class Client(End):
    """The client."""

    async def fetch(self, authority: str, path: str) -> str:
        stream = self._quic.get_next_available_stream_id()
        head = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", authority.encode()), (b":path", path.encode())]
        upload = b""
        if path.startswith("/echo/"):
            upload = content(int(path.rpartition("/")[2]))
            head[0], head[3] = (b":method", b"POST"), (b":path", b"/echo")
        self.http.send_headers(stream, [*head, *FIELDS], end_stream=not upload)
        if upload:
            self.http.send_data(stream, upload, end_stream=False)
            self.http.send_headers(stream, [(b"x-sum", b"sent")], end_stream=True)
        response = self.message(stream)
        self.transmit()
        try:
            await asyncio.wait_for(response.ended.wait(), TIMEOUT)
        except TimeoutError:
            response.failure = "no end"
        if response.failure:
            return f"{path} {response.failure}"
        notes = [path, response.head[b":status"].decode(), str(len(response.body))]
        notes += ["echoed"] if upload and response.body == upload else []
        notes += [f"trailer={value.decode()}" for value in response.trailers.values()]
        return " ".join(notes)


async def run_client(base: str, authority_file: str, paths: list[str]) -> None:
    url = urllib.parse.urlsplit(base)
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name=url.hostname)
    configuration.load_verify_locations(cafile=authority_file)
    async with connect(url.hostname, url.port, configuration=configuration, create_protocol=Client) as client:
        await client.negotiated.wait()
        for path in paths:
            times, _, path = path.rpartition("*")
            for line in await asyncio.gather(*(client.fetch(url.netloc, path) for _ in range(int(times or 1)))):
                print(line)


async def run_server(address: str, certificate: str, key: str) -> None:
    host, _, port = address.rpartition(":")
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    await serve(host, int(port), configuration=configuration, create_protocol=Site)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    role, *arguments = [word for word in sys.argv[1:] if word != "--trickle"]
    if role == "server":
        asyncio.run(run_server(*arguments))
    else:
        asyncio.run(run_client(*arguments[:2], arguments[2:]))
