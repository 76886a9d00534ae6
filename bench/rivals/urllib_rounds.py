"""urllib of Python's standard library: urllib_rounds.py AUTHORITY.pem. Proxies are those of the environment."""

from __future__ import annotations

import ssl
import sys
import time
import urllib.request

from rounds import LIMIT, serve


def main() -> None:
    security = ssl.create_default_context(cafile=sys.argv[1])

    def one_round(mode: str, url: str) -> float:
        if mode != "h1":
            raise ValueError(f"urllib does not know {mode}")
        started = time.perf_counter()
        with urllib.request.urlopen(url, timeout=LIMIT, context=security) as answer:
            elapsed = time.perf_counter() - started
            answer.read()
        return elapsed

    serve(one_round)


if __name__ == "__main__":
    main()
