"""Clients of `eyas serve`: Chromium and libcurl."""

import json
import pathlib
import shutil
import subprocess
import sys
import urllib.parse

from .report import Skip

# The time limit of Chromium for one page, in seconds.
PAGE_TIMEOUT = 60
# The time limit of libcurl for one body, in seconds.
BODY_TIMEOUT = 120


class Page:
    """A page as loaded by Chromium."""

    def __init__(self, text: str, sessions: set[str], websockets: set[str], stderr: str) -> None:
        self.text = text
        self.sessions = sessions
        # The kinds of session on whose streams WebSockets were requested (RFC 8441, RFC 9220).
        self.websockets = websockets
        self.stderr = stderr


def headless(profile: pathlib.Path) -> list[str]:
    """Returns the command line of headless Chromium without background traffic."""
    binary = shutil.which("chromium")
    if binary is None:
        raise Skip("Chromium is not installed (Debian: chromium)")
    return [
        binary, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", f"--user-data-dir={profile}",
    ]


def chromium(
    url: str, host: str, address: str, spki: str, scratch: pathlib.Path, quic: bool, http2: bool = True,
) -> Page:
    """Loads a page headless, over QUIC from the first packet or without QUIC, and then with or without
    HTTP/2."""
    log = scratch / "chromium-net.json"
    port = urllib.parse.urlsplit(url).port or 443
    done = load(scratch, [
        f"--host-resolver-rules=MAP {host} {address}, MAP * ~NOTFOUND",
        f"--ignore-certificate-errors-spki-list={spki}",
        f"--log-net-log={log}",
        f"--origin-to-force-quic-on={host}:{port}" if quic else "--disable-quic",
        # Off by default; then WebSockets use a connection over HTTP/3 that there is already.
        "--enable-features=EnableWebsocketsOverHttp3",
        *([] if http2 else ["--disable-http2"]),
        "--dump-dom", url,
    ])
    return Page(done.stdout, sessions(log, host), sessions(log, ":protocol: websocket"), done.stderr)


def chromium_by_socks(url: str, proxy: str, scratch: pathlib.Path, inside: list[str]) -> subprocess.CompletedProcess:
    """Loads a page through a SOCKS5 proxy, which resolves all names, in the namespace of `inside`."""
    return load(scratch, [f"--proxy-server=socks5://{proxy}", "--proxy-bypass-list=<-loopback>",
                          "--dump-dom", url], inside)


def load(scratch: pathlib.Path, arguments: list[str], inside: list[str] | None = None) -> subprocess.CompletedProcess:
    """Runs Chromium with a fresh profile until it ends."""
    profile = scratch / "chromium"
    command = [*(inside or []), *headless(profile), *arguments]
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=PAGE_TIMEOUT, check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"Chromium did not end within {PAGE_TIMEOUT} s") from error
    finally:
        shutil.rmtree(profile, ignore_errors=True)


def sessions(log: pathlib.Path, text: str) -> set[str]:
    """Returns the kinds of session with events that contain this, by Chromium's network log."""
    try:
        record = json.loads(log.read_text(errors="replace"))
    except (OSError, ValueError):
        return set()
    kinds = {number: name for name, number in record["constants"]["logSourceType"].items()}
    found = set()
    for event in record["events"]:
        kind = kinds.get(event["source"]["type"], "")
        if kind in ("QUIC_SESSION", "HTTP2_SESSION") and text in json.dumps(event.get("params", {})):
            found.add(kind)
    return found


def libcurl(url: str, host: str, address: str, authority: pathlib.Path, version: str) -> dict:
    """Fetches a body in a separate process; returns its length and its hash."""
    port = urllib.parse.urlsplit(url).port or 443
    return fetch(url, f"{host}:{port}:{address}", str(authority), version)


def fetch(*arguments: str) -> dict:
    """Runs `eyas_interop.fetch` with these arguments."""
    command = [sys.executable, "-m", "eyas_interop.fetch", *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BODY_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"libcurl over {arguments[3]}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)
