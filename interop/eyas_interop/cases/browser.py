"""Chromium loads a page from `eyas serve`."""

from .. import clients
from ..network import EYAS, ipv4
from ..world import World
from .case import about

HOST = "serve.eyas.test"


def load(world: World, path: str, quic: bool) -> clients.Page:
    """Loads a page of `eyas serve`."""
    world.server("eyas")
    url = f"https://{HOST}{path}"
    return clients.chromium(url, HOST, ipv4(EYAS), world.identity.spki, world.directory, quic)


def check(world: World, quic: bool, session: str, protocol: str) -> None:
    """The server's page names the protocol, and so does Chromium's own log."""
    page = load(world, "/eyas", quic)
    good = f">{protocol}<" in page.text and page.sessions == {session}
    heading = next((line.strip() for line in page.text.splitlines() if "<h1" in line), "no heading")
    detail = f"{heading} {sorted(page.sessions)}"
    if not good:
        detail += f" {page.text[-300:]} {page.stderr[-300:]}"
    world.report.check("chromium", f"the page says {protocol}", good, detail)
    page = load(world, "/page.html", quic)
    good = "loaded from eyas" in page.text and page.sessions == {session}
    world.report.check("chromium", f"a file over {protocol}", good, page.text)


@about("chromium")
def case_page_over_h3(world: World) -> None:
    """Over QUIC from the first packet."""
    check(world, True, "QUIC_SESSION", "HTTP/3")


@about("chromium")
def case_page_over_h2(world: World) -> None:
    """Without QUIC."""
    check(world, False, "HTTP2_SESSION", "HTTP/2")


CASES = [case_page_over_h3, case_page_over_h2]
