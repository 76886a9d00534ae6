"""An application in Python that knows HTTP/1.1 alone: /, /echo, /broken, /silent, and a WebSocket."""

import base64
import hashlib
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/silent":
            time.sleep(3600)
        elif self.path == "/broken":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"begun")
            self.close_connection = True
        elif self.headers.get("Upgrade", "").lower() == "websocket":
            self.websocket()
        else:
            host, proto = self.headers["Host"], self.headers["X-Forwarded-Proto"]
            self.answer(f"python heard {host} over {proto}\n".encode())

    def do_POST(self) -> None:
        self.answer(self.body())

    def body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        pieces = []
        while length := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(length))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def websocket(self) -> None:
        """Sends one frame of text, and closes."""
        key = self.headers["Sec-WebSocket-Key"].encode()
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "websocket")
        self.send_header("Sec-WebSocket-Accept", accept)
        self.end_headers()
        self.wfile.write(b"\x81\x05hello")
        self.close_connection = True

    def log_message(self, *_) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.daemon_threads = True
print(f"port {server.server_address[1]}", flush=True)
server.serve_forever()
