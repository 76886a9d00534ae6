"""niquests: every round has its own session, and so a new connection and a new TLS session.

`race` is niquests' own mechanism for HTTP/3: it is configured to expect HTTP/3, tries it, and falls back. `later` is a
new connection in a session that has already done that.
"""

from __future__ import annotations

import sys
import time
from urllib.parse import urlsplit

import niquests

from rounds import serve

OPTIONS = {
    "h1": {"disable_http2": True, "disable_http3": True},
    "h2": {"disable_http1": True, "disable_http3": True},
    "h3": {"disable_http1": True, "disable_http2": True},
    "race": {},
}


def main() -> None:
    authority = sys.argv[1]

    def session_for(mode: str, url: str) -> niquests.Session:
        session = niquests.Session(**OPTIONS[mode])
        session.verify = authority
        session.trust_env = False
        if mode in ("h3", "race"):
            parts = urlsplit(url)
            session.quic_cache_layer.add_domain(parts.hostname, parts.port)
        return session

    def get(session: niquests.Session, url: str) -> float:
        started = time.perf_counter()
        response = session.get(url, stream=True, timeout=10)
        seconds = time.perf_counter() - started
        response.raise_for_status()
        response.content
        return seconds

    warmed_up: dict[str, niquests.Session] = {}

    def one_round(mode: str, url: str) -> float:
        if mode == "later":
            if url not in warmed_up:
                warmed_up[url] = session_for("race", url)
                get(warmed_up[url], url)
            # The adapters close their connections; the session keeps what it has learnt.
            for adapter in warmed_up[url].adapters.values():
                adapter.poolmanager.clear()
            return get(warmed_up[url], url)
        with session_for(mode, url) as session:
            return get(session, url)

    def reuse(mode: str, count: int, url: str) -> float:
        with session_for(mode, url) as session:
            get(session, url)
            started = time.perf_counter()
            for _ in range(count):
                get(session, url)
            return time.perf_counter() - started

    serve(one_round, reuse)


if __name__ == "__main__":
    main()
