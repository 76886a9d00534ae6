"""libcurl and eyas itself fetch a large body from `eyas serve`, intact."""

from .. import clients
from ..network import EYAS, ipv4
from ..world import World
from .case import about

LENGTH = 104_857_600
URL = f"https://serve.eyas.test/bytes/{LENGTH}"


@about("libcurl")
def case_libcurl_downloads(world: World) -> None:
    """100 MiB over each version: all bytes, the same bytes."""
    world.server("eyas")
    hashes = {}
    for version in ("http1.1", "h2", "h3"):
        try:
            got = clients.libcurl(
                URL, "serve.eyas.test", ipv4(EYAS), world.authority.file, version
            )
        except RuntimeError as error:
            world.report.failed("libcurl", f"100 MiB over {version}", str(error))
            continue
        hashes[version] = got["sha256"]
        good = got["status"] == 200 and got["version"] == version and got["length"] == LENGTH
        world.report.check("libcurl", f"100 MiB over {version}", good, str(got))
    same = len(hashes) == 3 and len(set(hashes.values())) == 1
    world.report.check("libcurl", "the same bytes over all three", same, str(hashes))


CASES = [case_libcurl_downloads]
