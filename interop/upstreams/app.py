"""A Python application that supports only HTTP/1.1: /, /echo, /broken, /silent, /hints, and a WebSocket, which /page opens."""

import base64
import hashlib
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

# A page whose load event comes only after it shows the message from its WebSocket.
PAGE = b"""<!doctype html><p>nothing</p><img src="/wait"><script>
new WebSocket(`wss://${location.host}/chat`).onmessage = ({ data }) => {
  document.querySelector('p').textContent = `received ${data}`;
  fetch('/seen');
};
</script>"""
SEEN = threading.Event()


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
        elif self.path == "/page":
            self.answer(PAGE, "text/html")
        elif self.path == "/seen":
            SEEN.set()
            self.answer(b"seen")
        elif self.path == "/wait":
            SEEN.wait(timeout=30)
            self.answer(b"", "image/png")
        elif self.path == "/hints":
            self.hints()
        elif self.headers.get("Upgrade", "").lower() == "websocket":
            self.websocket()
        else:
            host, proto = self.headers["Host"], self.headers["X-Forwarded-Proto"]
            self.answer(f"python received {host} over {proto}\n".encode())

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

    def answer(self, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hints(self) -> None:
        """Sends 103 before the response, and a trailer after it."""
        self.send_response_only(103)
        self.send_header("Link", "</style.css>; rel=preload; as=style")
        self.end_headers()
        self.send_response(200)
        self.send_header("Trailer", "X-End")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"6\r\nhinted\r\n0\r\nX-End: yes\r\n\r\n")

    def websocket(self) -> None:
        """Sends one text frame, and closes."""
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
