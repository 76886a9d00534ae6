"""libcurl, with a new connection and a new TLS session in every round.

The time is measured by libcurl, from the start of the transfer to the first byte of the response, so it excludes the
cost of Python. Addresses are arguments, so that it excludes DNS lookups as well:
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
    # HTTP/3 first, HTTP over TCP a little later, and the first that connects is used.
    "race": pycurl.CURL_HTTP_VERSION_3,
}
# The version that libcurl reports afterwards.
USED = {
    "h1": pycurl.CURL_HTTP_VERSION_1_1,
    "h2": pycurl.CURL_HTTP_VERSION_2_0,
    "h3": pycurl.CURL_HTTP_VERSION_3,
}


def main() -> None:
    authority, *addresses = sys.argv[1:]
    handle = pycurl.Curl()

    def one_round(mode: str, url: str) -> float:
        # libcurl does not remember failures, so later requests do not differ.
        mode = "race" if mode == "later" else mode
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.HTTP_VERSION, VERSIONS[mode])
        handle.setopt(pycurl.CAINFO, authority)
        handle.setopt(pycurl.RESOLVE, addresses)
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
        used = handle.getinfo(pycurl.INFO_HTTP_VERSION)
        if mode != "race" and used != USED[mode]:
            raise ValueError(f"{mode} was requested, but the response is of version {used}")
        seconds = handle.getinfo(pycurl.STARTTRANSFER_TIME)
        handle.reset()
        return seconds

    serve(one_round)


if __name__ == "__main__":
    main()
