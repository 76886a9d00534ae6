"""Runs the probe through `eyas netem` and through `sch_netem` in a guest, and prints a table.

The delay, the loss and the rate are those of the way back, on both. What the path costs without
them is measured too and taken off, so that only the emulation is compared.
"""

import json
import math
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

from ..network import NoNamespaces
from ..report import Report, Skip
from ..sctp.guest import Guest
from ..sctp.network import SctpNetwork, theirs

PROBE = pathlib.Path(__file__).with_name("probe.py")
# The server of `eyas netem run`.
SERVER = "198.18.1.2"
# A probe takes no longer than this, in seconds.
LIMIT = 120
# A machine that wakes a sleeper up so late, in ms, says nothing about 0.1 ms of an emulator.
TOO_BUSY = 0.3
# Runs of a measurement of time, of which the best counts: others use the machine.
TRIES = 3
# Two-sided normal quantile of a binomial interval that one run in a thousand misses.
QUANTILE = 3.29

# Runs the probe with these arguments over a link of delay, loss, rate: none, or as tc writes it.
Link = Callable[[str, list[str]], dict[str, float]]


def ours(eyas: pathlib.Path) -> Link:
    """Our emulator."""

    def probe(link: str, arguments: list[str]) -> dict[str, float]:
        words = link.split()
        pairs = [f"{key}={value}" for key, value in zip(words[::2], words[1::2])]
        backward = ["--backward", ",".join(pairs)] if pairs else []
        what, *rest = arguments
        command = [str(eyas), "netem", "run", "--quiet", *backward, "--",
                   sys.executable, str(PROBE), what, SERVER, *rest]
        return said(command)

    return probe


def linux(network: SctpNetwork, guest: Guest) -> Link:
    """`sch_netem` of the guest, on what it answers."""

    def probe(link: str, arguments: list[str]) -> dict[str, float]:
        guest.run("tc qdisc del dev vec0 root 2>/dev/null; true")
        if link:
            # tc counts its queue with the packets that are on the way, so it gets a long one but
            # where the queue is what is measured.
            link = link.replace("queue", "limit")
            # It counts the header of Ethernet, which a packet of IP does not have: 14 bytes less.
            link = link.replace("rate 10mbit", "rate 10mbit -14")
            more = "" if "limit" in link else " limit 10000"
            guest.run(f"tc qdisc add dev vec0 root netem {link}{more}")
        what, *rest = arguments
        command = [sys.executable, str(PROBE), what, theirs("tap0"), *rest]
        return said(network.inside(network.ours, command))

    return probe


def said(command: list[str]) -> dict[str, float]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def delay(probe: Link) -> dict[str, float]:
    """10 ms at 1,000 packets a second: the best of some runs, less what the path takes anyway."""
    arguments = ["delay", "3000", "1000", "100"]
    best: dict[str, float] = {}
    for _ in range(TRIES):
        base = probe("", arguments)
        seen = probe("delay 10ms", arguments)
        off = {name: seen[name] - base["p50"] - 10.0 for name in ("least", "p50", "p99")}
        off["machine"] = seen["machine_p99"]
        off["alone"] = base["p99"] - base["p50"]
        if not best or abs(off["p99"]) < abs(best["p99"]):
            best = off
    return best


def loss(probe: Link) -> float:
    """The part of 20,000 packets that is lost where 5 % are to be."""
    seen = probe("loss 5%", ["loss", "20000", "4000", "100"])
    return 1.0 - seen["answered"] / seen["sent"]


def rate(probe: Link) -> float:
    """What comes of 20 Mbit/s through 10 Mbit/s, in Mbit/s of IP packets."""
    seen = probe("rate 10mbit queue 100", ["rate", "8000", "1666", "1500"])
    return seen["bits_per_second"] / 1e6


def measure(name: str, probe: Link, report: Report) -> dict[str, object]:
    """All three, each on its own: one that fails does not hide the others."""
    row: dict[str, object] = {}
    for what in (delay, loss, rate):
        try:
            row[what.__name__] = what(probe)
        except Exception as error:  # told, and the next one is tried
            report.failed("netem", f"{name} {what.__name__}", f"{type(error).__name__}: {error}")
    return row


def judge(row: dict[str, object], report: Report) -> None:
    """Our emulator against what is wanted of it."""
    if isinstance(off := row.get("delay"), dict):
        detail = f"10 ms {off['p50']:+.3f} ms at the median, {off['p99']:+.3f} ms at p99"
        good = abs(off["p50"]) <= 0.1 and abs(off["p99"]) <= 0.5
        if good or off["machine"] <= TOO_BUSY:
            report.figure("netem", "delay", good, detail)
        else:
            busy = f"this machine wakes up {off['machine']:.2f} ms late at p99 without any emulator"
            report.skip("netem", "delay", f"{busy}; seen: {detail}")
    if isinstance(part := row.get("loss"), float):
        error = QUANTILE * math.sqrt(0.05 * 0.95 / 20_000)
        detail = f"{part:.2%} of 20,000 for 5 %, at most {error:.2%} off"
        report.figure("netem", "loss", abs(part - 0.05) <= error, detail)
    if isinstance(bits := row.get("rate"), float):
        report.figure("netem", "rate", abs(bits / 10 - 1) <= 0.005, f"{bits:.3f} Mbit/s for 10")


def table(rows: dict[str, dict[str, object]]) -> None:
    print(f"{'':<12}{'10 ms: median':>15}{'p99':>10}{'5 % loss':>12}{'10 Mbit/s':>13}")
    for name, row in rows.items():
        off, part, bits = row.get("delay"), row.get("loss"), row.get("rate")
        cells = [f"{off['p50']:+.3f} ms", f"{off['p99']:+.3f}"] if isinstance(off, dict) else ["-", "-"]
        cells.append(f"{part:.2%}" if isinstance(part, float) else "-")
        cells.append(f"{bits:.3f}" if isinstance(bits, float) else "-")
        print(f"{name:<12}{cells[0]:>15}{cells[1]:>10}{cells[2]:>12}{cells[3]:>13}", flush=True)


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Both emulators; the guest's only where one can run."""
    rows = {"eyas netem": measure("eyas netem", ours(eyas), report)}
    judge(rows["eyas netem"], report)
    try:
        rows["sch_netem"] = of_linux(directory, report)
    except (Skip, NoNamespaces) as why:
        report.skip("netem", "sch_netem", str(why))
    table(rows)


def of_linux(directory: pathlib.Path, report: Report) -> dict[str, object]:
    tc = shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if tc is None:
        raise Skip("tc is missing (Debian: iproute2)")
    # The guest of the SCTP cases may have been in the directory before.
    own = directory / "netem"
    own.mkdir()
    network = SctpNetwork()
    try:
        guest = Guest(network, own, [pathlib.Path(tc)])
        try:
            if "netem" not in guest.run("tc qdisc add dev vec0 root netem delay 1ms; tc qdisc"):
                raise Skip("the guest's kernel has no sch_netem")
            return measure("sch_netem", linux(network, guest), report)
        finally:
            guest.stop()
    finally:
        network.remove()
