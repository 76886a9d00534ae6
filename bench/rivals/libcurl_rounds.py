"""libcurl: one fresh connection and one fresh TLS session in every round.

The time is libcurl's own, from the start of the transfer to the first byte of the answer, so what
Python costs is not in it. Addresses are told, so that the time holds no look-up:
libcurl_rounds.py AUTHORITY.pem [HOST:PORT:ADDRESS,ADDRESS]...
"""

from __future__ import annotations

import sys

import pycurl

from rounds import LIMIT, serve

VERSIONS = {
    "h1": pycurl.CURL_HTTP_VERSION_1_1,
    "h2": pycurl.CURL_HTTP_VERSION_2TLS,
    "h3": pycurl.CURL_HTTP_VERSION_3ONLY,
    # HTTP/3 first, HTTP over TCP some time later, and the first that connects is taken.
    "race": pycurl.CURL_HTTP_VERSION_3,
}
# What libcurl says afterwards of a connection over that version.
SPOKEN = {
    "h1": pycurl.CURL_HTTP_VERSION_1_1,
    "h2": pycurl.CURL_HTTP_VERSION_2_0,
    "h3": pycurl.CURL_HTTP_VERSION_3,
}


def main() -> None:
    authority, *told = sys.argv[1:]
    handle = pycurl.Curl()

    def one_round(mode: str, url: str) -> float:
        # libcurl remembers nothing of a failure, so a later request is as any other.
        mode = "race" if mode == "later" else mode
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.HTTP_VERSION, VERSIONS[mode])
        handle.setopt(pycurl.CAINFO, authority)
        handle.setopt(pycurl.RESOLVE, told)
        handle.setopt(pycurl.FRESH_CONNECT, 1)
        handle.setopt(pycurl.FORBID_REUSE, 1)
        handle.setopt(pycurl.SSL_SESSIONID_CACHE, 0)
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, 10_000)
        handle.setopt(pycurl.TIMEOUT_MS, int(LIMIT * 1000))
        handle.setopt(pycurl.WRITEFUNCTION, lambda data: len(data))
        handle.perform()
        status = handle.getinfo(pycurl.RESPONSE_CODE)
        if status != 200:
            raise ValueError(f"the status is {status}")
        spoken = handle.getinfo(pycurl.INFO_HTTP_VERSION)
        if mode != "race" and spoken != SPOKEN[mode]:
            raise ValueError(f"{mode} was asked for, and the answer is of version {spoken}")
        seconds = handle.getinfo(pycurl.STARTTRANSFER_TIME)
        handle.reset()
        return seconds

    serve(one_round)


if __name__ == "__main__":
    main()
