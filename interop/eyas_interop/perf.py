"""`eyas perf` beside iperf3, over the same TCP on the same emulated link; and over a link that drops UDP."""

import json
import pathlib
import shlex
import shutil
import subprocess

from .report import Report, Skip

# The server's address in `eyas netem run`, and its ports.
SERVER, PERF, IPERF = "198.18.1.2", 7117, 5201
LINK = ["--rate", "20mbit", "--delay", "20ms", "--queue", "100"]
# For how long data flows before it counts, and then, in seconds.
OMITTED, SECONDS = 2, 10
# How far the two may be apart, as a share.
TOLERANCE = 0.03
# The time limit of a run, in seconds.
LIMIT = 90
# A network whose firewall drops UDP.
WITHOUT_UDP = """\
[path.line]
delay = "5 ms"

[[path.line.middlebox]]
kind = "firewall"
drops = ["udp"]
"""


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Compares the two in both directions, and checks what is said of transports that do not get through."""
    try:
        for way, flags in [("up", []), ("down", ["-R"])]:
            compare(eyas, way, flags, report)
    except Skip as reason:
        report.skip("perf", "iperf3", str(reason))
    without_udp(directory, eyas, report)


def compare(eyas: pathlib.Path, way: str, flags: list[str], report: Report) -> None:
    if not shutil.which("iperf3"):
        raise Skip("iperf3 is not installed (Debian: iperf3)")
    theirs = iperf3(eyas, flags)
    object_ = perf(eyas, LINK, ["--transport", "tcp", *flags, "-t", str(SECONDS), "-O", str(OMITTED)])
    flow = object_["tests"][0][way]
    ours, interval = flow["goodput_bits_per_second"], flow["confidence"]
    difference = ours / theirs - 1
    detail = (f"{ours / 1e6:.2f} Mbit/s ({interval['low'] / 1e6:.2f} to {interval['high'] / 1e6:.2f}), "
              f"iperf3 {theirs / 1e6:.2f}, {difference:+.1%}")
    report.figure("perf", f"goodput {way} beside iperf3", abs(difference) <= TOLERANCE, detail)


def iperf3(eyas: pathlib.Path, flags: list[str]) -> float:
    """Returns what iperf3's receiver has received, in bits per second."""
    client = ["iperf3", "-c", SERVER, "-p", str(IPERF), "-t", str(SECONDS), "-O", str(OMITTED), "-J", *flags]
    server = f"exec iperf3 -s -p {IPERF} > /dev/null"
    command = [str(eyas), "netem", "run", "--quiet", *LINK, "--server", server, "--", *client]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    return json.loads(ran.stdout)["end"]["sum_received"]["bits_per_second"]


def perf(eyas: pathlib.Path, link: list[str], flags: list[str]) -> dict:
    """Returns the report of `eyas perf` over a link."""
    server = shlex.join([str(eyas), "perf", "serve", "--plain", "--json", "-l", f"{SERVER}:{PERF}"])
    client = [str(eyas), "perf", "--plain", "--json", *flags, f"{SERVER}:{PERF}"]
    command = [str(eyas), "netem", "run", "--quiet", *link, "--server", f"exec {server} > /dev/null", "--", *client]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    return json.loads(ran.stdout)


def without_udp(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """A middlebox drops UDP: TCP is measured, and SCTP inside UDP is a row with its cause."""
    topology = directory / "perf-without-udp.toml"
    topology.write_text(WITHOUT_UDP)
    flags = ["--transport", "tcp,sctp-udp", "-t", "1", "-i", "200ms", "--idle", "200ms"]
    object_ = perf(eyas, ["--topology", str(topology)], flags)
    measured = [test["transport"] for test in object_["tests"]]
    failed = [(row["transport"], row["kind"], row["message"]) for row in object_["failed"]]
    good = measured == ["tcp"] and [row[:2] for row in failed] == [("sctp-udp", "timeout")]
    report.check("perf", "UDP is dropped", good, f"measured {measured}, failed {failed}")
