"""HTTP/2 clients that request the listings of directories, of which one is large, on every available stream, and read
nothing.

A listing that cannot be sent need not be generated: the directory is not read for them.
"""

import os

import _h2
from eyas_interop.hostile.stage import SMALL_SIZE, Stage, main
from eyas_interop.report import Skip

CONNECTIONS = 4
STREAMS = 128
NAMES = 10_000
# How long the streams are held, in seconds.
HOLD = 6


def attack(stage: Stage) -> None:
    files = stage.files(small=SMALL_SIZE)
    many = files / "many"
    many.mkdir()
    for number in range(NAMES):
        (many / f"a file with a name that is not short {number:05}").touch()
    # Which directories are read shows in their times of access.
    unread = [files / f"unread-{number}" for number in range(STREAMS)]
    for directory in unread:
        directory.mkdir()
    for directory in (many, *unread):
        os.utime(directory, (1, directory.stat().st_mtime))
    server = stage.serve("--no-sctp", files=files)
    honest = (("/many/", "--http2"), ("/small", "--http3-only"))
    with stage.attacked(server, *honest, memory=100, cpu=8):
        # Half of them read one byte of each listing, so that its generation begins.
        attackers = [_h2.Connection(server.port, window=number % 2) for number in range(CONNECTIONS)]
        for attacker in attackers:
            attacker.request("/many/", STREAMS)
        attackers.append(_h2.Connection(server.port, window=0))
        for directory in unread:
            attackers[-1].request(f"/{directory.name}/", 1)
        _h2.hold(attackers, HOLD)
    read = sum(directory.stat().st_atime != 1 for directory in unread)
    stage.within("directories that were read for nobody", read, 0)
    if many.stat().st_atime == 1:
        raise Skip("this file system keeps no times of access")


if __name__ == "__main__":
    main(attack)
