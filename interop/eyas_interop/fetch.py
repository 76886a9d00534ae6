"""Fetches one URL with libcurl and prints length, hash, text, version of HTTP and the header lines as JSON.

Usage: python -m eyas_interop.fetch URL HOST:PORT:ADDRESS[ HOST:PORT:ADDRESS...] AUTHORITY.pem http1.1|h2|h3|any [FILE]
With FILE, Alt-Svc is stored there, and followed if it is there already.
"""

import hashlib
import json
import sys

from curl_cffi import Curl, CurlHttpVersion, CurlInfo, CurlOpt

VERSIONS = {
    "http1.1": CurlHttpVersion.V1_1,
    "h2": CurlHttpVersion.V2TLS,
    "h3": CurlHttpVersion.V3ONLY,
    "any": CurlHttpVersion.NONE,
}
# The values of CURLINFO_HTTP_VERSION.
VERSION_NAMES = {2: "http1.1", 3: "h2", 30: "h3"}
# CURLALTSVC_H1, H2 and H3.
FOLLOW_ALL = 8 | 16 | 32
# The bytes of a body that are printed.
SHOWN = 4096


def main(url: str, resolve: str, authority: str, version: str, alt_svc: str = "") -> None:
    """Does one transfer as a stream, without buffering the body."""
    digest = hashlib.sha256()
    length, shown = 0, b""

    def write_body(chunk: bytes) -> int:
        nonlocal length, shown
        digest.update(chunk)
        shown += chunk[:SHOWN - len(shown)]
        length += len(chunk)
        return len(chunk)

    def write_header(line: bytes) -> int:
        fields.append(line.decode("latin-1").strip())
        return len(line)

    fields: list[str] = []
    curl = Curl()
    curl.setopt(CurlOpt.URL, url.encode())
    curl.setopt(CurlOpt.RESOLVE, resolve.split())
    curl.setopt(CurlOpt.CAINFO, authority.encode())
    curl.setopt(CurlOpt.HTTP_VERSION, VERSIONS[version])
    curl.setopt(CurlOpt.WRITEFUNCTION, write_body)
    curl.setopt(CurlOpt.HEADERFUNCTION, write_header)
    if alt_svc:
        curl.setopt(CurlOpt.ALTSVC_CTRL, FOLLOW_ALL)
        curl.setopt(CurlOpt.ALTSVC, alt_svc.encode())
    # Without it a server need not send trailers (RFC 9110 §6.5.1).
    curl.setopt(CurlOpt.HTTPHEADER, [b"TE: trailers"])
    curl.perform()
    result = {
        "status": curl.getinfo(CurlInfo.RESPONSE_CODE),
        "version": VERSION_NAMES.get(curl.getinfo(CurlInfo.HTTP_VERSION)),
        "port": curl.getinfo(CurlInfo.PRIMARY_PORT),
        "length": length,
        "sha256": digest.hexdigest(),
        "text": shown.decode(errors="replace"),
        "fields": fields,
    }
    curl.close()
    print(json.dumps(result))


main(*sys.argv[1:])
