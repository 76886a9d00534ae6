"""Servers that send interim responses without end, or responses that do not match the request.

`eyas get` ends with an error by itself, uses little memory meanwhile, and leaves no file that looks complete.
"""

import _answers
from eyas_interop.hostile.stage import Stage, main

HINT = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n"
UNEXPECTED = {
    "a part": b"HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-3/100\r\ncontent-length: 4\r\n\r\npart",
    "nothing new": b"HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nx",
    "a coding": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
}
# docs/exit-codes.md: the server broke HTTP.
PROTOCOL = 56


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


if __name__ == "__main__":
    main(attack)
