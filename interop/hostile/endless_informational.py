"""Servers that send interim responses without end, or responses that do not match the request.

`eyas get` ends with an error by itself, uses little memory meanwhile, and leaves no file that looks complete. A gateway
with such an upstream answers 502, and a proxy behind such a proxy refuses its clients, both with little CPU time.
"""

import socket

import _answers
import _relay
import _upstream
from eyas_interop.hostile.stage import Stage, main

HINT = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n"
UNEXPECTED = {
    "a part": b"HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-3/100\r\ncontent-length: 4\r\n\r\npart",
    "nothing new": b"HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nx",
    "a coding": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
}
# docs/reference/exit-codes.md: the server broke HTTP.
PROTOCOL = 56
# There: a status of 400 or above, with --fail.
STATUS = 22


def attack(stage: Stage) -> None:
    output = stage.directory / "body"
    with _answers.answering(b"", HINT) as url:
        process = _answers.start(stage.eyas, "get", url, "-o", str(output))
        with stage.watched(process.pid) as watch:
            code, stderr = _answers.finish(process)
    stage.check("endless 103", code == PROTOCOL and not output.exists(),
                f"status {code}, {stderr.strip()[:200]}")
    stage.memory_within(watch, 50)
    for name, answer in UNEXPECTED.items():
        with _answers.answering(answer) as url:
            code, stderr = _answers.finish(_answers.start(stage.eyas, "get", url, "-o", str(output)))
        left = [path.name for path in stage.directory.iterdir()]
        stage.check(name, code == PROTOCOL and not left,
                    f"status {code}, files: {' '.join(left) or 'none'}; {stderr.strip()[:200]}")
    gateway(stage)
    proxy(stage)


def gateway(stage: Stage) -> None:
    with _answers.answering(b"", HINT) as url:
        server = _upstream.gateway(stage, url.rstrip("/"), "--plain")
        with stage.watched(server.process) as watch:
            process = _answers.start(stage.eyas, "get", "--fail", server.url("/"))
            code, stderr = _answers.finish(process)
    stage.check("a gateway", code == STATUS and "502" in stderr, f"status {code}, {stderr.strip()[:200]}")
    stage.cpu_within(watch, 2)


def proxy(stage: Stage) -> None:
    with _answers.answering(b"", HINT) as url:
        server = _relay.proxy(stage, "--via", url)
        with stage.watched(server.process) as watch, \
                socket.create_connection((_relay.LOCALHOST, server.port), _relay.TIMEOUT) as client:
            client.sendall(_relay.request(9))
            try:
                _relay.expect(client, 2 + 10, b"\x05\x00\x05\x01")
                answer = "refused"
            except (OSError, RuntimeError) as error:
                answer = str(error)
    stage.check("a proxy", answer == "refused", answer)
    stage.cpu_within(watch, 2)


if __name__ == "__main__":
    main(attack)
