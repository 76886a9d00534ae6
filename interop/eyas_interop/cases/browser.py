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


@about("chromium")
def case_page_over_h3(world: World) -> None:
    """The page comes, and Chromium's own log has a QUIC session and none of HTTP/2."""
    page = load(world, "/page.html", quic=True)
    good = "loaded from eyas" in page.text and page.sessions == {"QUIC_SESSION"}
    detail = f"{page.text} {sorted(page.sessions)}" + ("" if good else page.complained[-300:])
    world.report.check("chromium", "a page over h3", good, detail)


@about("chromium")
def case_page_over_h2(world: World) -> None:
    """The same without QUIC."""
    page = load(world, "/page.html", quic=False)
    good = "loaded from eyas" in page.text and page.sessions == {"HTTP2_SESSION"}
    detail = f"{page.text} {sorted(page.sessions)}" + ("" if good else page.complained[-300:])
    world.report.check("chromium", "a page over h2", good, detail)


CASES = [case_page_over_h3, case_page_over_h2]
