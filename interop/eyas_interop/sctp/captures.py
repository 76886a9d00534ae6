"""What Wireshark makes of the captures of the runs."""

import dataclasses
import pathlib
import shutil
import subprocess

from ..report import Skip

# tshark may take this long for one capture, in seconds.
LIMIT = 60
# What it says of a checksum that it has verified.
GOOD = "1"


@dataclasses.dataclass
class Seen:
    """Packets of SCTP of one capture."""

    packets: int = 0
    # Those that we sent and that are malformed or have a wrong checksum.
    ours: list[str] = dataclasses.field(default_factory=list)
    # The same of those that others sent, which we cannot mend: pion's HEARTBEAT is empty.
    theirs: list[str] = dataclasses.field(default_factory=list)


def read(capture: pathlib.Path, our_addresses: set[str]) -> Seen:
    """What Wireshark says of each packet of a capture."""
    if shutil.which("tshark") is None:
        raise Skip("tshark is not installed (Debian: tshark)")
    command = [
        "tshark", "-n", "-r", str(capture), "-o", "sctp.checksum:CRC 32c", "-d", "udp.port==9899,sctp",
        "-Y", "sctp", "-T", "fields", "-e", "frame.number", "-e", "_ws.malformed",
        "-e", "sctp.checksum.status", "-e", "ip.src", "-e", "ipv6.src", "-e", "_ws.col.Info",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    seen = Seen()
    for line in done.stdout.splitlines():
        number, malformed, checksum, four, six, info = line.split("\t")
        seen.packets += 1
        if malformed or checksum != GOOD:
            what = malformed or f"checksum {checksum or 'not looked at'}"
            of = seen.ours if {four, six} & our_addresses else seen.theirs
            of.append(f"{four or six} {capture.name} {number}: {info} ({what})")
    return seen


def fields(capture: pathlib.Path, *names: str, where: str) -> list[tuple[str, ...]]:
    """These fields of the packets that have `where`, each value of a packet by itself."""
    if shutil.which("tshark") is None:
        raise Skip("tshark is not installed (Debian: tshark)")
    command = ["tshark", "-n", "-r", str(capture), "-Y", where, "-T", "fields"]
    command += [word for name in names for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    rows = [[cell.split(",") for cell in line.split("\t")] for line in done.stdout.splitlines()]
    return [values for row in rows for values in zip(*row)]
