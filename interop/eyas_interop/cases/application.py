"""An axum application on the eyas server, the example `axum`, with third-party clients and our own."""

import re
import shutil
import subprocess

from .. import clients
from ..certificates import spki_of
from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

HOST = "application.eyas.test"
# The time limit of one request, in seconds.
TIMEOUT = 30


class Application:
    """The example, on a free port of the client's loopback."""

    def __init__(self, world: World) -> None:
        self.certificate = world.file("pem")
        command = [str(world.example("axum")), str(self.certificate)]
        self.peer = Peer("axum", command, world.file("log"))
        self.peer.wait_until(self._is_ready)
        self.port = int(self._listening().group(1))

    def _listening(self) -> re.Match | None:
        return re.search(r"^https://localhost:(\d+)/$", self.peer.tail(), re.MULTILINE)

    def _is_ready(self) -> bool:
        return self._listening() is not None

    def __enter__(self) -> "Application":
        return self

    def __exit__(self, *_) -> None:
        self.peer.stop()


@about("curl")
def case_application_over_h1_and_h2(world: World) -> None:
    """A page, and an echoed body."""
    if shutil.which("curl") is None:
        raise Skip("curl is not installed (Debian: curl)")
    sent = "x" * 1_000_000
    with Application(world) as app:
        url = f"https://localhost:{app.port}"
        for flag, version in (("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2.0")):
            command = ["curl", "-sS", flag, "--cacert", str(app.certificate)]
            page = run([*command, f"{url}/"], "")
            good = f"this is {version} over" in page and "tcp" in page
            world.report.check("curl", f"an axum page over {version}", good, page.strip())
            back = run([*command, "--data-binary", "@-", f"{url}/echo"], sent)
            detail = f"{len(back)} bytes echoed"
            world.report.check("curl", f"an axum echo over {version}", back == sent, detail)


def run(command: list[str], stdin: str) -> str:
    """Returns what a program prints for this input."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    return done.stdout if done.returncode == 0 else f"status {done.returncode}: {done.stderr}"


@about("chromium")
def case_application_over_h3(world: World) -> None:
    """A page over QUIC from the first packet."""
    with Application(world) as app:
        url = f"https://{HOST}:{app.port}/"
        spki = spki_of(app.certificate.read_bytes())
        page = clients.chromium(url, HOST, "127.0.0.1", spki, world.directory, True)
    good = "this is HTTP/3.0 over quic" in page.text and page.sessions == {"QUIC_SESSION"}
    detail = f"{page.text.strip()} {sorted(page.sessions)}"
    if not good:
        detail += f" {page.stderr[-300:]}"
    world.report.check("chromium", "an axum page over HTTP/3", good, detail)


@about("eyas")
def case_application_over_sctp(world: World) -> None:
    """`eyas get --prefer sctp` uses SCTP, over IP or over UDP."""
    with Application(world) as app:
        page = world.file("page")
        completed = world.eyas.run(
            "get", f"https://localhost:{app.port}/", "--prefer", "sctp", "--json",
            "--memory", "none", "--output", str(page), "--cacert", str(app.certificate),
        )
    body = page.read_text() if page.exists() else ""
    good = completed.status == 0 and "this is HTTP/1.1 over sctp" in body
    good = good and str(completed.winner.get("transport")).startswith("sctp")
    world.report.check("eyas", "an axum page over SCTP", good, f"{body.strip()} {completed.outline()}")


CASES = [
    case_application_over_h1_and_h2, case_application_over_h3, case_application_over_sctp
]
