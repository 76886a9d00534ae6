"""urllib of Python's standard library: urllib_rounds.py AUTHORITY.pem. It uses the proxies of the environment."""

from __future__ import annotations

import ssl
import sys
import time
import urllib.request

from rounds import LIMIT, serve


def main() -> None:
    context = ssl.create_default_context(cafile=sys.argv[1])

    def one_round(mode: str, url: str) -> float:
        if mode != "h1":
            raise ValueError(f"unknown mode {mode}")
        started = time.perf_counter()
        with urllib.request.urlopen(url, timeout=LIMIT, context=context) as response:
            elapsed = time.perf_counter() - started
            response.read()
        return elapsed

    serve(one_round)


if __name__ == "__main__":
    main()
