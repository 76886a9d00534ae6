"""Checks the captures of the runs with Wireshark."""

import dataclasses
import pathlib
import shutil
import subprocess

from ..report import Skip

# The time limit of tshark for one capture, in seconds.
LIMIT = 60
# tshark's value for a verified checksum.
VERIFIED = "1"


@dataclasses.dataclass
class Packets:
    """The SCTP packets of one capture."""

    count: int = 0
    # The packets that we sent that are malformed or have a wrong checksum.
    ours: list[str] = dataclasses.field(default_factory=list)
    # The same for other stacks, which we cannot fix: pion's HEARTBEAT is empty.
    theirs: list[str] = dataclasses.field(default_factory=list)


def read(capture: pathlib.Path, our_addresses: set[str]) -> Packets:
    """Returns Wireshark's verdict on the packets of a capture."""
    if shutil.which("tshark") is None:
        raise Skip("tshark is not installed (Debian: tshark)")
    command = [
        "tshark", "-n", "-r", str(capture), "-o", "sctp.checksum:CRC 32c", "-d", "udp.port==9899,sctp",
        "-Y", "sctp", "-T", "fields", "-e", "frame.number", "-e", "_ws.malformed",
        "-e", "sctp.checksum.status", "-e", "ip.src", "-e", "ipv6.src", "-e", "_ws.col.Info",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    packets = Packets()
    for line in done.stdout.splitlines():
        number, malformed, checksum, ipv4, ipv6, info = line.split("\t")
        packets.count += 1
        if malformed or checksum != VERIFIED:
            problem = malformed or f"checksum {checksum or 'not verified'}"
            problems = packets.ours if {ipv4, ipv6} & our_addresses else packets.theirs
            problems.append(f"{ipv4 or ipv6} {capture.name} {number}: {info} ({problem})")
    return packets


def fields(capture: pathlib.Path, *names: str, where: str) -> list[tuple[str, ...]]:
    """Returns these fields of the packets that match `where`, with one tuple per value."""
    if shutil.which("tshark") is None:
        raise Skip("tshark is not installed (Debian: tshark)")
    command = ["tshark", "-n", "-r", str(capture), "-Y", where, "-T", "fields"]
    command += [word for name in names for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    rows = [[cell.split(",") for cell in line.split("\t")] for line in done.stdout.splitlines()]
    return [values for row in rows for values in zip(*row)]
