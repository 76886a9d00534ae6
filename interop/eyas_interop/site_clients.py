"""Clients of a site: curl, libcurl and eyas in each version of HTTP, WebSockets, streams, and a load of requests."""

import contextlib
import http.client
import itertools
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator

from . import clients, websocket_h2
from .process import Peer
from .site import ADDRESS, HOST, Site, wait_for

# The program, the flag and the version of each client. Only libcurl brings a third party's HTTP/3.
VERSIONS = {
    "curl h1": ("curl", "--http1.1", "1.1"), "curl h2": ("curl", "--http2", "2"),
    "eyas h1": ("eyas", "--http1.1", "1.1"), "eyas h2": ("eyas", "--http2", "2"),
    "eyas h3": ("eyas", "--http3-only", "3"), "libcurl h3": ("libcurl", "h3", "h3"),
}
OVER_TCP = [name for name in VERSIONS if "h3" not in name]
# The time limit of one request, in seconds.
LIMIT = 40
# Three megabytes.
BODY = bytes(range(256)) * 12_000
UPLOADS = itertools.count()
# The key of a WebSocket handshake (RFC 6455 §1.3); a masked frame of text, and the same text without a mask.
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
FRAME, REPEATED = b"\x81\x85\1\2\3\4" + bytes(a ^ b for a, b in zip(b"hello", b"\1\2\3\4\1")), b"\x81\x05hello"


class Answer:
    """A response as a client shows it."""

    def __init__(self, status: str, version: str, text: str) -> None:
        self.status, self.version, self.text = status, version, text

    @property
    def fields(self) -> dict[str, str]:
        """What an application has received; empty if the response is not from one."""
        with contextlib.suppress(ValueError):
            return json.loads(self.text)["fields"]
        return {}

    @property
    def application(self) -> str:
        """The name of the application; empty if the response is not from one."""
        with contextlib.suppress(ValueError):
            return json.loads(self.text)["application"]
        return ""

    def __str__(self) -> str:
        return f"{self.status} over HTTP/{self.version} {self.text.strip()[-300:]}"


def command(
    site: Site, client: str, path: str, *more: str, host: str = HOST, port: int = 443, address: str = ADDRESS,
) -> list[str]:
    """Returns the command line of curl or eyas; it prints the status and the version behind the body."""
    program, flag, _ = VERSIONS[client]
    start = [str(site.world.eyas_binary), "get", "--memory", "none"] if program == "eyas" else ["curl"]
    authority = host if port == 443 else f"{host}:{port}"
    return [
        *start, "-sS", "--max-time", str(LIMIT), flag, "--cacert", str(site.world.authority.file),
        "--resolve", f"{host}:{port}:{address}", "-w", "\\n%{http_code} %{http_version}", *more,
        f"https://{authority}{path}",
    ]


def get(site: Site, client: str, path: str, *more: str, stdin: bytes = b"", host: str = HOST, port: int = 443,
        address: str = ADDRESS) -> Answer:
    """Does a request with one of `VERSIONS`."""
    program, flag, version = VERSIONS[client]
    if program == "libcurl":
        url = f"https://{host}:{port}{path}" if port != 443 else f"https://{host}{path}"
        try:
            got = clients.libcurl(url, host, address, site.world.authority.file, flag)
        except RuntimeError as error:
            return Answer("no response", "", str(error))
        return Answer(str(got["status"]), "3" if got["version"] == version else str(got["version"]), got["text"])
    done = subprocess.run(
        command(site, client, path, *more, host=host, port=port, address=address),
        input=stdin, capture_output=True, timeout=LIMIT + 20, check=False,
    )
    text, _, last = done.stdout.decode(errors="replace").rpartition("\n")
    status, _, used = last.partition(" ")
    if done.returncode != 0:
        return Answer(f"exit status {done.returncode}", used, done.stderr.decode(errors="replace"))
    return Answer(status, used, text)


def is_over(client: str, answer: Answer) -> bool:
    """Returns whether the response has status 200 and came over the client's version."""
    return answer.status == "200" and answer.version == VERSIONS[client][2].replace("h", "")


def post(site: Site, client: str, path: str, *more: str) -> Answer:
    """Sends the body, and returns `same` for its text if it comes back."""
    body, back = site.world.file("body"), site.world.file("back")
    body.write_bytes(BODY)
    answer = get(site, client, path, "--data-binary", f"@{body}", "-o", str(back), *more)
    received = back.read_bytes() if back.exists() else b""
    text = "same" if received == BODY else f"{len(received)} bytes, {answer.text}"
    return Answer(answer.status, answer.version, text)


def streamed_events(site: Site, client: str, prefix: str) -> str:
    """Returns the events, of which the second one is only sent after the first one has arrived."""
    peer = Peer(client, command(site, client, f"{prefix}events", "-N"), site.world.file("events"))
    try:
        if not wait_for(lambda: "data: one" in peer.output() or peer.process.poll() is not None):
            return f"no event: {peer.output()}"
        get(site, "curl h2", f"{prefix}release")
        wait_for(lambda: peer.process.poll() is not None)
        return " ".join(peer.output().split())
    finally:
        peer.stop()


def streamed_upload(site: Site, client: str, prefix: str) -> tuple[str, Answer]:
    """Sends a body whose second half follows when the application has the first one. Returns whether it got that, and
    the answer."""
    number = next(UPLOADS)
    process = subprocess.Popen(
        command(site, client, f"{prefix}pieces?{number}", "-T", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    try:
        process.stdin.write(b"x" * 1000)
        process.stdin.flush()
        arrived = get(site, "curl h2", f"{prefix}arrived?{number}").text
        output = process.communicate(b"y" * 1000, timeout=LIMIT)[0].decode()
    finally:
        process.kill()
        process.wait()
    text, _, last = output.rpartition("\n")
    return arrived, Answer(*last.partition(" ")[::2], text)


def websocket(site: Site, path: str) -> bytes:
    """Opens a WebSocket over HTTP/1.1, sends a frame, and returns everything that comes."""
    context = ssl.create_default_context(cafile=str(site.world.authority.file))
    head = (
        f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
    )
    read = b""
    with socket.create_connection((ADDRESS, 443), timeout=LIMIT) as tcp:
        with context.wrap_socket(tcp, server_hostname=HOST) as tls:
            tls.sendall(head.encode())
            while b"\r\n\r\n" not in read and (more := tls.recv(4096)):
                read += more
            if read.startswith(b"HTTP/1.1 101 "):
                tls.sendall(FRAME)
                while not read.endswith(REPEATED) and (more := tls.recv(4096)):
                    read += more
    return read


def websocket_over_h2(site: Site, path: str) -> websocket_h2.Received:
    """The same over HTTP/2 (RFC 8441)."""
    return websocket_h2.connect(443, site.world.authority.file, path, FRAME, ADDRESS, HOST)


class Load:
    """GET requests one after the other on kept connections, from some threads, each until it is told to stop."""

    def __init__(self, site: Site, path: str) -> None:
        self.path = path
        self.context = ssl.create_default_context(cafile=str(site.world.authority.file))
        self.done, self.failures = 0, []
        self.lock = threading.Lock()
        self.ending = threading.Event()

    def run(self) -> None:
        connection = None
        while not self.ending.is_set():
            try:
                connection = connection or Connection(self.context)
                connection.request("GET", self.path, headers={"Host": HOST})
                response = connection.getresponse()
                response.read()
                failure = None if response.status == 200 else f"status {response.status}"
            except (OSError, http.client.HTTPException) as error:
                failure, connection = f"{type(error).__name__}: {error}", None
            with self.lock:
                self.done += 1
                if failure:
                    self.failures.append(failure)
            if failure:
                # Failures can be quick.
                time.sleep(0.1)

    def reaches(self, number: int) -> bool:
        """Waits until that many more requests have ended."""
        goal = self.done + number
        return wait_for(lambda: self.done >= goal)

    def __str__(self) -> str:
        return f"{self.done} requests, {len(self.failures)} failed {self.failures[:3]}"


class Connection(http.client.HTTPSConnection):
    """A connection to the site, by its name."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(HOST, timeout=LIMIT, context=context)
        self.tls = context

    def connect(self) -> None:
        tcp = socket.create_connection((ADDRESS, 443), timeout=LIMIT)
        self.sock = self.tls.wrap_socket(tcp, server_hostname=HOST)


@contextlib.contextmanager
def load(site: Site, path: str) -> Iterator[Load]:
    """Runs a load for the duration of a block, from three threads."""
    running = Load(site, path)
    threads = [threading.Thread(target=running.run, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        running.ending.set()
        for thread in threads:
            thread.join(LIMIT)
