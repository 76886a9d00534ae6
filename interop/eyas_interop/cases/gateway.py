"""`eyas serve --upstream` in front of applications in Python and Node that know HTTP/1.1 alone."""

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
# Half a handshake of WebSocket (RFC 6455 §1.3), and what its other half must hold.
KEY, ACCEPT = "dGhlIHNhbXBsZSBub25jZQ==", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


class Behind:
    """An application, and a gateway before it, on the client's own loopback."""

    def __init__(self, world: World, kind: str) -> None:
        self.world, self.kind = world, kind
        self.app = self._application("0")
        self.app_port = re.search(r"port (\d+)", self.app.said()).group(1)
        self.certificate = world.file("pem")
        command = [
            str(world.eyas_binary), "serve", "--listen", "127.0.0.1:0", "--json", "--no-sctp",
            "--names", f"localhost,{HOST}", "--save-cert", str(self.certificate),
            "--upstream", f"http://127.0.0.1:{self.app_port}", "--upstream-timeout", "2s",
        ]
        self.gateway = Peer("eyas serve --upstream", command, world.file("log"))
        try:
            self.gateway.wait_until(lambda: self._listens() is not None)
        except RuntimeError:
            self.stop()
            raise
        self.port = int(self._listens().group(1))

    def _listens(self) -> re.Match | None:
        return re.search(r'"address": "127.0.0.1:(\d+)"', self.gateway.said())

    def _application(self, port: str) -> Peer:
        command = {"python": [sys.executable, str(UPSTREAMS / "app.py")]}
        command["node"] = ["node", str(UPSTREAMS / "app.js")]
        peer = Peer(self.kind, [*command[self.kind], port], self.world.file("log"))
        return peer.wait_until(lambda: "port " in peer.said())

    def restart(self) -> None:
        """Ends the application, and begins it again at the same port."""
        self.app.stop()
        self.app = self._application(self.app_port)

    def stop(self) -> None:
        """Ends both."""
        self.gateway.stop()
        self.app.stop()


@contextlib.contextmanager
def behind(world: World, kind: str) -> Iterator[Behind]:
    """Both, until the end of a case."""
    if kind == "node" and shutil.which("node") is None:
        raise Skip("node is not installed (Debian: nodejs)")
    both = Behind(world, kind)
    try:
        yield both
    finally:
        both.stop()


def with_curl(world: World, kind: str) -> None:
    """Pages and bodies over HTTP/1.1 and 2, and what an application that fails looks like."""
    if shutil.which("curl") is None:
        raise Skip("curl is not installed (Debian: curl)")
    check = world.report.check
    with behind(world, kind) as both:
        url = f"https://localhost:{both.port}"
        plain = ["curl", "-sS", "--cacert", str(both.certificate)]
        for flag in ("--http1.1", "--http2"):
            page = run([*plain, flag, f"{url}/"], "")
            good = page == f"{kind} heard localhost:{both.port} over https\n"
            check("curl", f"{kind} behind a gateway, {flag}", good, page.strip())
            sent = "x" * 3_000_000
            for framing in ("Content-Length: 3000000", "Transfer-Encoding: chunked"):
                if flag == "--http2" and framing.startswith("T"):
                    continue
                command = [*plain, flag, "-H", framing, "-X", "POST", "-T", "-", f"{url}/echo"]
                back = run(command, sent)
                detail = f"{len(back)} bytes came back"
                check("curl", f"{kind} echoes, {flag}, {framing}", back == sent, detail)
            broken = run([*plain, flag, f"{url}/broken"], "")
            check("curl", f"{kind} breaks off, {flag}", broken.startswith("status "), broken.strip())
            silent = run([*plain, flag, f"{url}/silent"], "")
            check("curl", f"{kind} never answers, {flag}", silent.startswith("504 "), silent[:60])
        both.restart()
        page = run([*plain, f"{url}/"], "")
        check("curl", f"{kind} restarted", page.startswith(f"{kind} heard"), page.strip())
        both.app.stop()
        page = run([*plain, f"{url}/"], "")
        check("curl", f"{kind} is gone", page.startswith("502 "), page[:60])
        opened = websocket(both)
        check("websocket", f"{kind} is gone", opened.startswith(b"HTTP/1.1 502 "), str(opened[:60]))


def websocket(both: Behind) -> bytes:
    """All that a client of a WebSocket gets to read."""
    context = ssl.create_default_context(cafile=str(both.certificate))
    with socket.create_connection(("127.0.0.1", both.port), timeout=20) as tcp:
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
    """A frame comes through."""
    with behind(world, kind) as both:
        read = websocket(both)
    good = read.startswith(b"HTTP/1.1 101 ") and ACCEPT in read and read.endswith(b"\x81\x05hello")
    world.report.check("websocket", f"{kind} behind a gateway", good, str(read[-40:]))


def with_chromium(world: World, kind: str) -> None:
    """A page over HTTP/3, over HTTP/2, and over HTTP/1.1, of which there is no session."""
    with behind(world, kind) as both:
        spki = spki_of(both.certificate.read_bytes())
        url = f"https://{HOST}:{both.port}/"
        for version, session in (("h3", {"QUIC_SESSION"}), ("h2", {"HTTP2_SESSION"}), ("http1.1", set())):
            page = clients.chromium(url, HOST, "127.0.0.1", spki, world.directory,
                                    quic=version == "h3", http2=version != "http1.1")
            good = f"{kind} heard" in page.text and page.sessions == session
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
