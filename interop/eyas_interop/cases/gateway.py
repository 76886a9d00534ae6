"""`eyas serve --upstream` in front of applications in Python and Node that support only HTTP/1.1."""

import contextlib
import pathlib
import re
import shutil
import socket
import ssl
import sys
from collections.abc import Iterator

from .. import clients
from ..certificates import spki_of
from ..process import Peer
from ..report import Skip
from ..world import World
from .application import run
from .case import about

HOST = "gateway.eyas.test"
UPSTREAMS = pathlib.Path(__file__).resolve().parents[2] / "upstreams"
# The key of a WebSocket handshake (RFC 6455 §1.3), and the expected value in the response.
KEY, ACCEPT = "dGhlIHNhbXBsZSBub25jZQ==", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


class Gateway:
    """An application with a gateway in front of it, on the client's loopback."""

    def __init__(self, world: World, kind: str) -> None:
        self.world, self.kind = world, kind
        self.app = self._application("0")
        self.app_port = re.search(r"port (\d+)", self.app.tail()).group(1)
        self.certificate = world.file("pem")
        command = [
            str(world.eyas_binary), "serve", "--listen", "127.0.0.1:0", "--json", "--no-sctp",
            "--names", f"localhost,{HOST}", "--save-cert", str(self.certificate),
            "--upstream", f"{'h2c' if kind == 'grpc' else 'http'}://127.0.0.1:{self.app_port}",
            "--upstream-timeout", "2s",
        ]
        self.gateway = Peer("eyas serve --upstream", command, world.file("log"))
        try:
            self.gateway.wait_until(lambda: self._listening() is not None)
        except RuntimeError:
            self.stop()
            raise
        self.port = int(self._listening().group(1))

    def _listening(self) -> re.Match | None:
        return re.search(r'"address": "127.0.0.1:(\d+)"', self.gateway.tail())

    def _application(self, port: str) -> Peer:
        command = {"python": [sys.executable, str(UPSTREAMS / "app.py")]}
        command["node"] = ["node", str(UPSTREAMS / "app.js")]
        command["grpc"] = [sys.executable, str(UPSTREAMS / "grpc_app.py")]
        peer = Peer(self.kind, [*command[self.kind], port], self.world.file("log"))
        return peer.wait_until(lambda: "port " in peer.tail())

    def restart(self) -> None:
        """Ends the application, and starts it again on the same port."""
        self.app.stop()
        self.app = self._application(self.app_port)

    def stop(self) -> None:
        """Ends both."""
        self.gateway.stop()
        self.app.stop()


@contextlib.contextmanager
def gateway(world: World, kind: str) -> Iterator[Gateway]:
    """Runs an application and its gateway for the duration of a case."""
    if kind == "node" and shutil.which("node") is None:
        raise Skip("node is not installed (Debian: nodejs)")
    running = Gateway(world, kind)
    try:
        yield running
    finally:
        running.stop()


def with_curl(world: World, kind: str) -> None:
    """Pages and bodies over HTTP/1.1 and 2, and the responses when the application fails."""
    if shutil.which("curl") is None:
        raise Skip("curl is not installed (Debian: curl)")
    check = world.report.check
    with gateway(world, kind) as running:
        url = f"https://localhost:{running.port}"
        plain = ["curl", "-sS", "--cacert", str(running.certificate)]
        for flag in ("--http1.1", "--http2"):
            page = run([*plain, flag, f"{url}/"], "")
            good = page == f"{kind} received localhost:{running.port} over https\n"
            check("curl", f"{kind} behind a gateway, {flag}", good, page.strip())
            sent = "x" * 3_000_000
            for framing in ("Content-Length: 3000000", "Transfer-Encoding: chunked"):
                if flag == "--http2" and framing.startswith("T"):
                    continue
                command = [*plain, flag, "-H", framing, "-X", "POST", "-T", "-", f"{url}/echo"]
                back = run(command, sent)
                detail = f"{len(back)} bytes echoed"
                check("curl", f"{kind} echoes, {flag}, {framing}", back == sent, detail)
            broken = run([*plain, flag, f"{url}/broken"], "")
            check("curl", f"{kind} breaks the connection, {flag}", broken.startswith("status "), broken.strip())
            silent = run([*plain, flag, f"{url}/silent"], "")
            check("curl", f"{kind} never answers, {flag}", silent.startswith("504 "), silent[:60])
        running.restart()
        page = run([*plain, f"{url}/"], "")
        check("curl", f"{kind} restarted", page.startswith(f"{kind} received"), page.strip())
        running.app.stop()
        page = run([*plain, f"{url}/"], "")
        check("curl", f"{kind} is stopped", page.startswith("502 "), page[:60])
        opened = websocket(running)
        check("websocket", f"{kind} is stopped", opened.startswith(b"HTTP/1.1 502 "), str(opened[:60]))


def websocket(running: Gateway) -> bytes:
    """Returns everything that a WebSocket client reads."""
    context = ssl.create_default_context(cafile=str(running.certificate))
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as tcp:
        with context.wrap_socket(tcp, server_hostname="localhost") as tls:
            tls.sendall(
                f"GET /chat HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
                .encode()
            )
            read = b""
            while not read.endswith(b"hello") and (more := tls.recv(4096)):
                read += more
                if b"HTTP/1.1 5" in read:
                    break
            return read


def with_websocket(world: World, kind: str) -> None:
    """A frame passes through."""
    with gateway(world, kind) as running:
        read = websocket(running)
    good = read.startswith(b"HTTP/1.1 101 ") and ACCEPT in read and read.endswith(b"\x81\x05hello")
    world.report.check("websocket", f"{kind} behind a gateway", good, str(read[-40:]))


def with_chromium(world: World, kind: str) -> None:
    """A page over HTTP/3, over HTTP/2, and over HTTP/1.1, which has no session."""
    with gateway(world, kind) as running:
        spki = spki_of(running.certificate.read_bytes())
        url = f"https://{HOST}:{running.port}/"
        for version, session in (("h3", {"QUIC_SESSION"}), ("h2", {"HTTP2_SESSION"}), ("http1.1", set())):
            page = clients.chromium(url, HOST, "127.0.0.1", spki, world.directory,
                                    quic=version == "h3", http2=version != "http1.1")
            good = f"{kind} received" in page.text and page.sessions == session
            detail = f"{page.text.strip()[:200]} {sorted(page.sessions)}"
            world.report.check("chromium", f"{kind} behind a gateway, {version}", good, detail)


@about("curl")
def case_gateway_before_python(world: World) -> None:
    """Over TCP."""
    with_curl(world, "python")


@about("curl")
def case_gateway_before_node(world: World) -> None:
    """Over TCP."""
    with_curl(world, "node")


@about("websocket")
def case_gateway_websocket_python(world: World) -> None:
    """Over TLS."""
    with_websocket(world, "python")


@about("websocket")
def case_gateway_websocket_node(world: World) -> None:
    """Over TLS."""
    with_websocket(world, "node")


@about("chromium")
def case_gateway_chromium_python(world: World) -> None:
    """Over QUIC and TCP."""
    with_chromium(world, "python")


@about("chromium")
def case_gateway_chromium_node(world: World) -> None:
    """Over QUIC and TCP."""
    with_chromium(world, "node")


CASES = [
    case_gateway_before_python, case_gateway_before_node, case_gateway_websocket_python,
    case_gateway_websocket_node, case_gateway_chromium_python, case_gateway_chromium_node,
]
