"""An application behind other servers, with a name and a port; the last segment of a path chooses what it does.

fields: the request's fields as JSON; health; echo: the body; chat: a WebSocket that repeats one frame; events: two
server-sent events, the second one after a request for release; held: a response after release, and holds tells whether
it has begun to wait; pieces: takes a body, and arrived, with the same query, tells whether a piece of it has come.
"""

import base64
import hashlib
import json
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
# The longest wait for another request, in seconds.
PATIENCE = 15
PORT, NAME = int(sys.argv[1]), sys.argv[2]
RELEASED, HELD = threading.Event(), threading.Event()
# By the query of the request.
ARRIVED: dict[str, threading.Event] = defaultdict(threading.Event)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The head and the body are two writes.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        segment = path.rsplit("/", 1)[-1]
        if segment == "fields":
            fields = {name.lower(): value for name, value in self.headers.items()}
            self.answer(json.dumps({"application": NAME, "path": self.path, "fields": fields}).encode())
        elif segment == "release":
            RELEASED.set()
            self.answer(b"released")
        elif segment == "held":
            RELEASED.clear()
            HELD.set()
            self.answer(b"released in time" if RELEASED.wait(PATIENCE) else b"not released")
        elif segment == "holds":
            self.answer(b"yes" if HELD.wait(PATIENCE) else b"no")
        elif segment == "arrived":
            self.answer(b"yes" if ARRIVED[query].wait(PATIENCE) else b"no")
        elif segment == "events":
            self.events()
        elif segment == "chat":
            self.chat()
        elif segment == "health":
            self.answer(b"healthy")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        self.answer(b"".join(self.pieces()))

    def do_PUT(self) -> None:
        length = 0
        for piece in self.pieces():
            length += len(piece)
            ARRIVED[self.path.partition("?")[2]].set()
        self.answer(f"{length} bytes".encode())

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes."""
        if "Content-Length" in self.headers:
            left = int(self.headers["Content-Length"])
            while left and (piece := self.rfile.read1(min(left, 65536))):
                left -= len(piece)
                yield piece
            return
        while length := int(self.rfile.readline(), 16):
            yield self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self) -> None:
        RELEASED.clear()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.event(b"one")
        self.event(b"two" if RELEASED.wait(PATIENCE) else b"not released")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, data: bytes) -> None:
        text = b"data: " + data + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))

    def chat(self) -> None:
        """Repeats one short masked frame, and closes."""
        key = self.headers["Sec-WebSocket-Key"].encode()
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "websocket")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key + GUID).digest()).decode())
        self.end_headers()
        length = self.rfile.read(2)[1] & 0x7F
        mask, masked = self.rfile.read(4), self.rfile.read(length)
        text = bytes(byte ^ mask[number % 4] for number, byte in enumerate(masked))
        self.wfile.write(bytes([0x81, length]) + text)
        self.close_connection = True

    def log_message(self, *_) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
server.daemon_threads = True
print("ready", flush=True)
server.serve_forever()
