"""What Wireshark makes of the captures of the runs."""

import pathlib
import shutil
import subprocess

from ..report import Skip

# tshark may take this long for one capture, in seconds.
LIMIT = 60


def read(capture: pathlib.Path) -> tuple[int, int, str]:
    """Packets of SCTP, those that are malformed or have a wrong checksum, and the first of these."""
    if shutil.which("tshark") is None:
        raise Skip("tshark is not installed (Debian: tshark)")
    command = [
        "tshark", "-n", "-r", str(capture), "-o", "sctp.checksum:CRC32C", "-d", "udp.port==9899,sctp",
        "-Y", "sctp", "-T", "fields", "-e", "frame.number", "-e", "_ws.malformed",
        "-e", "sctp.checksum.status", "-e", "_ws.col.Info",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    bad = [row for row in rows if len(row) > 2 and (row[1] or row[2] == "0")]
    return len(rows), len(bad), " ".join(bad[0]) if bad else ""


def fields(capture: pathlib.Path, *names: str, where: str) -> list[tuple[str, ...]]:
    """These fields of the packets that have `where`, each value of a packet by itself."""
    if shutil.which("tshark") is None:
        raise Skip("tshark is not installed (Debian: tshark)")
    command = ["tshark", "-n", "-r", str(capture), "-Y", where, "-T", "fields"]
    command += [word for name in names for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    rows = [[cell.split(",") for cell in line.split("\t")] for line in done.stdout.splitlines()]
    return [values for row in rows for values in zip(*row)]
