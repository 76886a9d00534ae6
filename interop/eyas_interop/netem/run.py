"""Runs the probe through `eyas netem` and through a guest's `sch_netem`, and prints a table.

Both emulate delay, loss and rate on the return path. The delay of the bare path is measured too and
subtracted, so that only the emulation is compared.
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
# The server's address in `eyas netem run`.
SERVER = "198.18.1.2"
# The time limit of a probe, in seconds.
LIMIT = 120
# A machine with a greater wakeup latency, in ms, is too busy to measure 0.1 ms.
TOO_BUSY = 0.3
# The number of time measurements, of which the best counts.
TRIES = 3
# The two-sided normal quantile of a binomial interval that one run in a thousand exceeds.
QUANTILE = 3.29

# Runs the probe with these arguments over a link with these tc parameters; none for a bare link.
Link = Callable[[str, list[str]], dict[str, float]]


def ours(eyas: pathlib.Path) -> Link:
    """Returns the probe through our emulator."""

    def probe(link: str, arguments: list[str]) -> dict[str, float]:
        words = link.split()
        pairs = [f"{key}={value}" for key, value in zip(words[::2], words[1::2])]
        backward = ["--backward", ",".join(pairs)] if pairs else []
        measurement, *rest = arguments
        command = [str(eyas), "netem", "run", "--quiet", *backward, "--",
                   sys.executable, str(PROBE), measurement, SERVER, *rest]
        return run_json(command)

    return probe


def linux(network: SctpNetwork, guest: Guest) -> Link:
    """Returns the probe through the guest's `sch_netem`, applied to its answers."""

    def probe(link: str, arguments: list[str]) -> dict[str, float]:
        guest.run("tc qdisc del dev vec0 root 2>/dev/null; true")
        if link:
            # tc's limit includes delayed packets, so the queue is long except where it is measured.
            link = link.replace("queue", "limit")
            # tc counts the Ethernet header: an overhead of -14 bytes compensates for it.
            link = link.replace("rate 10mbit", "rate 10mbit -14")
            limit = "" if "limit" in link else " limit 10000"
            guest.run(f"tc qdisc add dev vec0 root netem {link}{limit}")
        measurement, *rest = arguments
        command = [sys.executable, str(PROBE), measurement, theirs("tap0"), *rest]
        return run_json(network.inside(network.ours, command))

    return probe


def run_json(command: list[str]) -> dict[str, float]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def delay(probe: Link) -> dict[str, float]:
    """Returns the error of 10 ms delay at 1,000 packets per second: the best of some runs, less the bare path's delay."""
    arguments = ["delay", "3000", "1000", "100"]
    best: dict[str, float] = {}
    for _ in range(TRIES):
        base = probe("", arguments)
        result = probe("delay 10ms", arguments)
        error = {name: result[name] - base["p50"] - 10.0 for name in ("least", "p50", "p99")}
        error["machine"] = result["machine_p99"]
        error["bare"] = base["p99"] - base["p50"]
        if not best or abs(error["p99"]) < abs(best["p99"]):
            best = error
    return best


def loss(probe: Link) -> float:
    """Returns the lost share of 20,000 packets at 5 % loss."""
    result = probe("loss 5%", ["loss", "20000", "4000", "100"])
    return 1.0 - result["answered"] / result["sent"]


def rate(probe: Link) -> float:
    """Returns the throughput of 20 Mbit/s through a 10 Mbit/s link, in Mbit/s of IP packets."""
    result = probe("rate 10mbit queue 100", ["rate", "8000", "1666", "1500"])
    return result["bits_per_second"] / 1e6


def measure(name: str, probe: Link, report: Report) -> dict[str, object]:
    """Runs all three measurements; one that fails does not hide the others."""
    row: dict[str, object] = {}
    for measurement in (delay, loss, rate):
        try:
            row[measurement.__name__] = measurement(probe)
        except Exception as error:  # reported, and the next one is run
            report.failed("netem", f"{name} {measurement.__name__}", f"{type(error).__name__}: {error}")
    return row


def check_targets(row: dict[str, object], report: Report) -> None:
    """Checks our emulator against its targets."""
    if isinstance(error := row.get("delay"), dict):
        detail = f"10 ms {error['p50']:+.3f} ms at the median, {error['p99']:+.3f} ms at p99"
        good = abs(error["p50"]) <= 0.1 and abs(error["p99"]) <= 0.5
        if good or error["machine"] <= TOO_BUSY:
            report.figure("netem", "delay", good, detail)
        else:
            busy = f"this machine wakes processes {error['machine']:.2f} ms late at p99 without any emulator"
            report.skip("netem", "delay", f"{busy}; measured: {detail}")
    if isinstance(part := row.get("loss"), float):
        tolerance = QUANTILE * math.sqrt(0.05 * 0.95 / 20_000)
        detail = f"{part:.2%} of 20,000 for 5 %, at most {tolerance:.2%} off"
        report.figure("netem", "loss", abs(part - 0.05) <= tolerance, detail)
    if isinstance(bits := row.get("rate"), float):
        report.figure("netem", "rate", abs(bits / 10 - 1) <= 0.005, f"{bits:.3f} Mbit/s for 10")


def table(rows: dict[str, dict[str, object]]) -> None:
    print(f"{'':<12}{'10 ms: median':>15}{'p99':>10}{'5 % loss':>12}{'10 Mbit/s':>13}")
    for name, row in rows.items():
        error, part, bits = row.get("delay"), row.get("loss"), row.get("rate")
        cells = [f"{error['p50']:+.3f} ms", f"{error['p99']:+.3f}"] if isinstance(error, dict) else ["-", "-"]
        cells.append(f"{part:.2%}" if isinstance(part, float) else "-")
        cells.append(f"{bits:.3f}" if isinstance(bits, float) else "-")
        print(f"{name:<12}{cells[0]:>15}{cells[1]:>10}{cells[2]:>12}{cells[3]:>13}", flush=True)


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Measures both emulators; the guest's only where a guest can run."""
    rows = {"eyas netem": measure("eyas netem", ours(eyas), report)}
    check_targets(rows["eyas netem"], report)
    try:
        rows["sch_netem"] = measure_linux(directory, report)
    except (Skip, NoNamespaces) as reason:
        report.skip("netem", "sch_netem", str(reason))
    table(rows)


def measure_linux(directory: pathlib.Path, report: Report) -> dict[str, object]:
    tc = shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if tc is None:
        raise Skip("tc is missing (Debian: iproute2)")
    # The guest of the SCTP cases may have used the directory before.
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
