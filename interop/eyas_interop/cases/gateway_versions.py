"""`eyas serve --upstream` with third-party clients: h2spec, libcurl in every version, WebSockets over HTTP/2 and HTTP/3."""

import re
import subprocess

from .. import clients, websocket_h2, websocket_h3
from ..certificates import spki_of
from ..world import World
from .case import about
from .gateway import HOST, gateway

# The time limits of h2spec and of each of its cases, in seconds; all of it usually takes a second.
H2SPEC_TIMEOUT, H2SPEC_CASE = 120, 5


def with_h2spec(world: World, kind: str) -> None:
    """h2spec's HTTP/2 conformance tests."""
    binary = world.binary("h2spec")
    with gateway(world, kind) as running:
        command = [
            str(binary), "--host", "localhost", "--port", str(running.port), "--tls", "--insecure",
            "--timeout", str(H2SPEC_CASE),
        ]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=H2SPEC_TIMEOUT, check=False,
        )
    summary = re.search(r"^(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed$", done.stdout, re.MULTILINE)
    good = done.returncode == 0 and summary is not None and int(summary.group(2)) > 100
    detail = summary.group(0) if summary else done.stderr.strip()[-300:]
    if not good:
        failed = [line.strip() for line in done.stdout.splitlines() if "×" in line]
        detail += f" {failed[:10]}"
    world.report.check("h2spec", f"{kind} behind a gateway", good, detail)


def with_libcurl(world: World, kind: str) -> None:
    """A page, and a response with 103 in front of it and a trailer behind it, in each version."""
    with gateway(world, kind) as running:
        for version in ("http1.1", "h2", "h3"):
            url = f"https://localhost:{running.port}"
            page, hinted = (
                clients.libcurl(f"{url}{path}", "localhost", "127.0.0.1", running.certificate, version)
                for path in ("/", "/hints")
            )
            expected = len(f"{kind} received localhost:{running.port} over https\n")
            good = page["version"] == version and (page["status"], page["length"]) == (200, expected)
            world.report.check("libcurl", f"{kind} behind a gateway, {version}", good, str(page))
            lines = [line.lower() for line in hinted["fields"]]
            good = hinted["length"] == len("hinted") and "x-end: yes" in lines
            name = f"{kind} has trailers, {version}"
            world.report.check("libcurl", name, good, str(lines))


# An empty frame of text, with a mask of zeros.
EMPTY_FRAME = b"\x81\x80\0\0\0\0"


def with_websocket(world: World, kind: str) -> None:
    """A frame passes through."""
    for version, client in (("h2", websocket_h2), ("h3", websocket_h3)):
        with gateway(world, kind) as running:
            received = client.connect(running.port, running.certificate, "/chat", EMPTY_FRAME)
        good = received.is_offered and received.status == b"200" and received.bytes == b"\x81\x05hello"
        good = good and b"sec-websocket-accept" not in received.fields
        detail = f"{received.status} {received.bytes} {received.end}"
        name = f"{kind} behind a gateway, {version}"
        world.report.check("websocket", name, good and received.end == "ended", detail)
    with gateway(world, kind) as running:
        other = websocket_h3.connect(running.port, running.certificate, "/chat", b"", protocol="connect-udp")
    good = (other.status, other.end) == (b"501", "ended")
    world.report.check("websocket", f"{kind}: another protocol, h3", good, f"{other.status} {other.end}")


def with_chromium(world: World, kind: str) -> None:
    """A page opens a WebSocket, which over HTTP/2 and HTTP/3 uses the connection of the page."""
    for quic in (False, True):
        with gateway(world, kind) as running:
            spki = spki_of(running.certificate.read_bytes())
            url = f"https://{HOST}:{running.port}/page"
            page = clients.chromium(url, HOST, "127.0.0.1", spki, world.directory, quic)
        good = "received hello" in page.text and page.websockets == {"QUIC_SESSION" if quic else "HTTP2_SESSION"}
        detail = f"{page.text.strip()[:60]} {sorted(page.sessions)} {sorted(page.websockets)}"
        if not good:
            detail += f" {page.stderr[-300:]}"
        name = f"{kind}: a WebSocket from a page over {'h3' if quic else 'h2'}"
        world.report.check("chromium", name, good, detail)


@about("h2spec")
def case_gateway_h2spec_python(world: World) -> None:
    """HTTP/2 in front of Python."""
    with_h2spec(world, "python")


@about("h2spec")
def case_gateway_h2spec_node(world: World) -> None:
    """HTTP/2 in front of Node."""
    with_h2spec(world, "node")


@about("libcurl")
def case_gateway_libcurl_python(world: World) -> None:
    """Over TCP and QUIC."""
    with_libcurl(world, "python")


@about("libcurl")
def case_gateway_libcurl_node(world: World) -> None:
    """Over TCP and QUIC."""
    with_libcurl(world, "node")


@about("websocket")
def case_gateway_websocket_h2_python(world: World) -> None:
    """Over HTTP/2 and HTTP/3."""
    with_websocket(world, "python")


@about("websocket")
def case_gateway_websocket_h2_node(world: World) -> None:
    """Over HTTP/2 and HTTP/3."""
    with_websocket(world, "node")


@about("chromium")
def case_gateway_chromium_websocket_python(world: World) -> None:
    """A page with a WebSocket."""
    with_chromium(world, "python")


@about("chromium")
def case_gateway_chromium_websocket_node(world: World) -> None:
    """A page with a WebSocket."""
    with_chromium(world, "node")


CASES = [
    case_gateway_h2spec_python, case_gateway_h2spec_node, case_gateway_libcurl_python, case_gateway_libcurl_node,
    case_gateway_websocket_h2_python, case_gateway_websocket_h2_node,
    case_gateway_chromium_websocket_python, case_gateway_chromium_websocket_node,
]
