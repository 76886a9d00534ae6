"""Fetches one URL with libcurl and prints length, hash, version of HTTP and the header lines as JSON.

Usage: python -m eyas_interop.fetch URL HOST:PORT:ADDRESS AUTHORITY.pem http1.1|h2|h3
"""

import hashlib
import json
import sys

from curl_cffi import Curl, CurlHttpVersion, CurlInfo, CurlOpt

VERSIONS = {
    "http1.1": CurlHttpVersion.V1_1,
    "h2": CurlHttpVersion.V2TLS,
    "h3": CurlHttpVersion.V3ONLY,
}
# The values of CURLINFO_HTTP_VERSION.
VERSION_NAMES = {2: "http1.1", 3: "h2", 30: "h3"}


def main(url: str, resolve: str, authority: str, version: str) -> None:
    """Does one transfer as a stream, without buffering the body."""
    digest = hashlib.sha256()
    length = 0

    def write_body(chunk: bytes) -> int:
        nonlocal length
        digest.update(chunk)
        length += len(chunk)
        return len(chunk)

    def write_header(line: bytes) -> int:
        fields.append(line.decode("latin-1").strip())
        return len(line)

    fields: list[str] = []
    curl = Curl()
    curl.setopt(CurlOpt.URL, url.encode())
    curl.setopt(CurlOpt.RESOLVE, [resolve])
    curl.setopt(CurlOpt.CAINFO, authority.encode())
    curl.setopt(CurlOpt.HTTP_VERSION, VERSIONS[version])
    curl.setopt(CurlOpt.WRITEFUNCTION, write_body)
    curl.setopt(CurlOpt.HEADERFUNCTION, write_header)
    # Without it a server need not send trailers (RFC 9110 §6.5.1).
    curl.setopt(CurlOpt.HTTPHEADER, [b"TE: trailers"])
    curl.perform()
    result = {
        "status": curl.getinfo(CurlInfo.RESPONSE_CODE),
        "version": VERSION_NAMES.get(curl.getinfo(CurlInfo.HTTP_VERSION)),
        "length": length,
        "sha256": digest.hexdigest(),
        "fields": fields,
    }
    curl.close()
    print(json.dumps(result))


main(*sys.argv[1:])
