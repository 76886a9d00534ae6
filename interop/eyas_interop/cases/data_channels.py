"""A page in Chromium opens data channels to str0m on our SCTP; and str0m's own tests of them."""

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

# Of loopback alone, and told to the other side as they are.
CANDIDATES = ["--allow-loopback-in-peer-connection", "--disable-features=WebRtcHideLocalIpsWithMdns"]
# The association's parameters go into the descriptions (SNAP).
SNAP = ["--force-fieldtrials=WebRTC-Sctp-Snap/Enabled/"]
# What the page and the program send each other: page.html and session.rs in peers/str0m/browser.
MESSAGES = 2 * 16 + 2 * 8 + 8
BYTES = (2 * 16 + 8) * (64 << 10) + 2 * 8 * (256 << 10)
CHANNELS = 6
WORDS = 5
# The page with all its messages may take this long, in seconds.
WITHIN = 120
# str0m may be compiled this long, in seconds.
BUILT_WITHIN = 1800


@about("chromium")
def case_data_channels(world: World) -> None:
    """Ordered and unordered, 64 KiB and 256 KiB, both ways; text, empty messages; channels that close."""
    for name, flags in (("data channels", []), ("data channels, SNAP", SNAP)):
        report = visited(world, flags)
        if isinstance(report, str):
            world.report.failed("chromium", name, report)
            continue
        judge(world, name, report["page"], report["program"])
        if flags:
            has_snap = report["program"]["snap"]
            world.report.check("chromium", "data channels, both INITs in the descriptions", has_snap)


def visited(world: World, flags: list[str]) -> dict | str:
    """What the page and the program report; or why they do not."""
    program = str0m("program").stdout.strip()
    profile = world.file("chromium")
    browser = clients.headless(profile)
    serving = Peer("browser-peer", [program], world.file("log"))
    page = None
    try:
        serving.wait_until(lambda: serving.said().startswith("http://"))
        url = serving.said().split()[0]
        page = Peer("chromium", [*browser, *CANDIDATES, *flags, url], world.file("log"))
        status, told = serving.process.wait(WITHIN), serving.said().splitlines()[-1]
    except subprocess.TimeoutExpired:
        status, told = -1, f"no end within {WITHIN} s"
    finally:
        serving.stop()
        if page is not None:
            page.stop()
        shutil.rmtree(profile, ignore_errors=True)
    return json.loads(told) if status == 0 else f"{told}; {page.said()}"


def judge(world: World, what: str, page: dict, program: dict) -> None:
    """What each side has received, and what became of the channels."""
    check = world.report.check
    for name, side in (("to the page", page), ("to str0m", program)):
        good = (side["messages"], side["bytes"], side["bad"], side["disordered"]) == (MESSAGES, BYTES, 0, 0)
        check("chromium", f"{what}, {name}", good and "error" not in side, json.dumps(side))
    good = page["echoed"] == program["echoed"] == WORDS
    check("chromium", f"{what}, text and empty messages", good, f"{page['echoed']} of {WORDS} came back")
    good = page["closed"] == program["closed"] == program["opened"] == CHANNELS
    good = good and page["opened_by_peer"] == 1 and program["mistaken"] == 0
    check("chromium", f"{what}, opened and closed by both", good, f"{page['closed']} of {CHANNELS} closed")


@about("str0m")
def case_data_channels_of_str0m(world: World) -> None:
    """Its own tests of data channels, as they are published."""
    done = str0m("test")
    results = [line.split() for line in done.stdout.splitlines() if line.startswith("test result:")]
    passed, failed = (sum(int(line[at]) for line in results) for at in (3, 5))
    detail = f"{passed} passed, {failed} failed"
    detail += "".join(f"; {line}" for line in done.stdout.splitlines() if line.endswith("... FAILED"))
    if not results:
        detail = done.stderr[-300:]
    world.report.check("str0m", "its own tests of data channels", done.returncode == 0 and passed > 0, detail)


def str0m(what: str) -> subprocess.CompletedProcess:
    """Builds str0m on our SCTP, or runs its tests; it was fetched before, for there is no way out of here."""
    if not (pathlib.Path(os.environ["EYAS_PEERS"]) / "str0m" / "source").exists():
        raise Skip("str0m is not here: interop/install str0m says why")
    script = pathlib.Path(__file__).parents[2] / "peers" / "str0m" / "run"
    done = subprocess.run(
        [str(script), what], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILT_WITHIN,
        check=False,
    )
    if what == "program" and done.returncode != 0:
        raise RuntimeError(f"str0m on our SCTP cannot be built: {done.stderr[-300:]}")
    return done


CASES = [case_data_channels, case_data_channels_of_str0m]
