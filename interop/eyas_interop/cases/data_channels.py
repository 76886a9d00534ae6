"""A page in Chromium opens data channels to str0m on our SCTP; and str0m's own data channel tests."""

import json
import os
import pathlib
import shutil
import subprocess

from .. import clients
from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

# Loopback candidates only, and without mDNS names.
CANDIDATES = ["--allow-loopback-in-peer-connection", "--disable-features=WebRtcHideLocalIpsWithMdns"]
# The association's parameters go into the descriptions (SNAP).
SNAP = ["--force-fieldtrials=WebRTC-Sctp-Snap/Enabled/"]
# What the page and the program exchange: page.html and session.rs in peers/str0m/browser.
MESSAGES = 2 * 16 + 2 * 8 + 8
BYTES = (2 * 16 + 8) * (64 << 10) + 2 * 8 * (256 << 10)
CHANNELS = 6
WORDS = 5
# The time limit of the page with all its messages, in seconds.
TIMEOUT = 120
# The time limit of compiling str0m, in seconds.
BUILD_TIMEOUT = 1800


@about("chromium")
def case_data_channels(world: World) -> None:
    """Ordered and unordered, 64 KiB and 256 KiB, both ways; text, empty messages; channels that close."""
    for name, flags in (("data channels", []), ("data channels, SNAP", SNAP)):
        report = visit(world, flags)
        if isinstance(report, str):
            world.report.failed("chromium", name, report)
            continue
        check_reports(world, name, report["page"], report["program"])
        if flags:
            has_snap = report["program"]["snap"]
            world.report.check("chromium", "data channels, both INITs in the descriptions", has_snap)


def visit(world: World, flags: list[str]) -> dict | str:
    """Returns what the page and the program report, or an error message."""
    program = str0m("program").stdout.strip()
    profile = world.file("chromium")
    browser = clients.headless(profile)
    server = Peer("browser-peer", [program], world.file("log"))
    page = None
    try:
        server.wait_until(lambda: server.tail().startswith("http://"))
        url = server.tail().split()[0]
        page = Peer("chromium", [*browser, *CANDIDATES, *flags, url], world.file("log"))
        status, output = server.process.wait(TIMEOUT), server.tail().splitlines()[-1]
    except subprocess.TimeoutExpired:
        status, output = -1, f"no end within {TIMEOUT} s"
    finally:
        server.stop()
        if page is not None:
            page.stop()
        shutil.rmtree(profile, ignore_errors=True)
    return json.loads(output) if status == 0 else f"{output}; {page.tail()}"


def check_reports(world: World, what: str, page: dict, program: dict) -> None:
    """Checks what each side has received, and that the channels were opened and closed."""
    check = world.report.check
    for name, side in (("to the page", page), ("to str0m", program)):
        good = (side["messages"], side["bytes"], side["bad"], side["disordered"]) == (MESSAGES, BYTES, 0, 0)
        check("chromium", f"{what}, {name}", good and "error" not in side, json.dumps(side))
    good = page["echoed"] == program["echoed"] == WORDS
    check("chromium", f"{what}, text and empty messages", good, f"{page['echoed']} of {WORDS} echoed")
    good = page["closed"] == program["closed"] == program["opened"] == CHANNELS
    good = good and page["opened_by_peer"] == 1 and program["mistaken"] == 0
    check("chromium", f"{what}, opened and closed by both", good, f"{page['closed']} of {CHANNELS} closed")


@about("str0m")
def case_data_channels_of_str0m(world: World) -> None:
    """Its own data channel tests, as published."""
    done = str0m("test")
    results = [line.split() for line in done.stdout.splitlines() if line.startswith("test result:")]
    passed, failed = (sum(int(line[at]) for line in results) for at in (3, 5))
    detail = f"{passed} passed, {failed} failed"
    detail += "".join(f"; {line}" for line in done.stdout.splitlines() if line.endswith("... FAILED"))
    if not results:
        detail = done.stderr[-300:]
    world.report.check("str0m", "its own data channel tests", done.returncode == 0 and passed > 0, detail)


def str0m(what: str) -> subprocess.CompletedProcess:
    """Builds str0m on our SCTP, or runs its tests. It was fetched before: the namespace has no route to the Internet."""
    if not (pathlib.Path(os.environ["EYAS_PEERS"]) / "str0m" / "source").exists():
        raise Skip("str0m is not fetched; run interop/install str0m to see why")
    script = pathlib.Path(__file__).parents[2] / "peers" / "str0m" / "run"
    done = subprocess.run(
        [str(script), what], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_TIMEOUT,
        check=False,
    )
    if what == "program" and done.returncode != 0:
        raise RuntimeError(f"str0m on our SCTP cannot be built: {done.stderr[-300:]}")
    return done


CASES = [case_data_channels, case_data_channels_of_str0m]
