"""libcurl: one fresh connection and one fresh TLS session in every round.

The time is libcurl's own, from the start of the transfer to the first byte of the answer, so what
Python costs is not in it. Addresses are told, so that the time holds no look-up:
libcurl_rounds.py AUTHORITY.pem [HOST:PORT:ADDRESS,ADDRESS]...
"""

from __future__ import annotations

import sys

from curl_cffi import Curl, CurlHttpVersion, CurlInfo, CurlOpt

from rounds import serve

VERSIONS = {
    "h1": CurlHttpVersion.V1_1,
    "h2": CurlHttpVersion.V2TLS,
    "h3": CurlHttpVersion.V3ONLY,
    # HTTP/3 first, HTTP over TCP some time later, and the first that connects is taken.
    "race": CurlHttpVersion.V3,
}


def main() -> None:
    authority, *told = sys.argv[1:]
    handle = Curl(cacert=authority)

    def one_round(mode: str, url: str) -> float:
        # libcurl remembers nothing of a failure, so a later request is as any other.
        mode = "race" if mode == "later" else mode
        handle.setopt(CurlOpt.URL, url.encode())
        handle.setopt(CurlOpt.HTTP_VERSION, VERSIONS[mode])
        handle.setopt(CurlOpt.CAINFO, authority.encode())
        handle.setopt(CurlOpt.RESOLVE, told)
        handle.setopt(CurlOpt.FRESH_CONNECT, 1)
        handle.setopt(CurlOpt.FORBID_REUSE, 1)
        handle.setopt(CurlOpt.SSL_SESSIONID_CACHE, 0)
        handle.setopt(CurlOpt.CONNECTTIMEOUT_MS, 10_000)
        handle.setopt(CurlOpt.TIMEOUT_MS, 20_000)
        handle.setopt(CurlOpt.WRITEFUNCTION, lambda data: len(data))
        handle.perform()
        status = handle.getinfo(CurlInfo.RESPONSE_CODE)
        if status != 200:
            raise ValueError(f"the status is {status}")
        seconds = handle.getinfo(CurlInfo.STARTTRANSFER_TIME)
        handle.reset()
        return seconds

    serve(one_round)


if __name__ == "__main__":
    main()
