"""niquests: a new session, and so a fresh connection and a fresh TLS session, in every round.

`race` is niquests' own way to HTTP/3: it is told that the server speaks it, tries it, and falls
back. `later` is a fresh connection of a session that has been through that before.
"""

from __future__ import annotations

import sys
import time
from urllib.parse import urlsplit

import niquests

from rounds import serve

WITHOUT = {
    "h1": {"disable_http2": True, "disable_http3": True},
    "h2": {"disable_http1": True, "disable_http3": True},
    "h3": {"disable_http1": True, "disable_http2": True},
    "race": {},
}


def main() -> None:
    authority = sys.argv[1]

    def session_for(mode: str, url: str) -> niquests.Session:
        session = niquests.Session(**WITHOUT[mode])
        session.verify = authority
        session.trust_env = False
        if mode in ("h3", "race"):
            parts = urlsplit(url)
            session.quic_cache_layer.add_domain(parts.hostname, parts.port)
        return session

    def get(session: niquests.Session, url: str) -> float:
        started = time.perf_counter()
        answer = session.get(url, stream=True, timeout=10)
        seconds = time.perf_counter() - started
        answer.raise_for_status()
        answer.content
        return seconds

    experienced: dict[str, niquests.Session] = {}

    def one_round(mode: str, url: str) -> float:
        if mode == "later":
            if url not in experienced:
                experienced[url] = session_for("race", url)
                get(experienced[url], url)
            # The adapters close their connections; what the session has learnt stays.
            for adapter in experienced[url].adapters.values():
                adapter.poolmanager.clear()
            return get(experienced[url], url)
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
