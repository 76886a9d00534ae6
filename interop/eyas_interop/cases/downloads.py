"""libcurl and eyas itself fetch a large body from `eyas serve`, intact."""

import hashlib

from .. import clients
from ..network import EYAS, ipv4
from ..world import World
from .case import about

LENGTH = 104_857_600
URL = f"https://serve.eyas.test/bytes/{LENGTH}"
# Each byte is its offset modulo this.
PERIOD = 251


def pattern_hash(length: int) -> str:
    """Returns the hash of the expected body of `/bytes/N`."""
    block = bytes(range(PERIOD)) * 4096
    digest = hashlib.sha256()
    while length > 0:
        digest.update(block[:length])
        length -= len(block)
    return digest.hexdigest()


@about("libcurl")
def case_libcurl_downloads(world: World) -> None:
    """100 MiB over each version, byte for byte."""
    world.server("eyas")
    expected = pattern_hash(LENGTH)
    for version in ("http1.1", "h2", "h3"):
        try:
            got = clients.libcurl(
                URL, "serve.eyas.test", ipv4(EYAS), world.authority.file, version
            )
        except RuntimeError as error:
            world.report.failed("libcurl", f"100 MiB over {version}", str(error))
            continue
        good = got["status"] == 200 and got["version"] == version
        good = good and got["length"] == LENGTH and got["sha256"] == expected
        world.report.check("libcurl", f"100 MiB over {version}", good, str(got))


@about("eyas")
def case_own_downloads(world: World) -> None:
    """The same by `eyas get`, into a file."""
    world.server("eyas")
    expected = pattern_hash(LENGTH)
    for flag in ("--http1.1", "--http2", "--http3-only"):
        file = world.file("bytes")
        completed = world.eyas.run(
            "get", URL, flag, "--json", "--memory", "none", "--output", str(file), *world.trust
        )
        same = file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == expected
        file.unlink(missing_ok=True)
        name = f"100 MiB by eyas get {flag}"
        world.report.check("eyas", name, completed.status == 0 and same, completed.outline())


CASES = [case_libcurl_downloads, case_own_downloads]
