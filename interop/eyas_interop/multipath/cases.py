"""The cases: all lines are fully used, a failing line costs little, an added line is used."""

import pathlib
import time
from typing import NamedTuple

from ..network import NoNamespaces
from ..report import Report
from .lines import Lines
from .transfer import Transfer

# The target share of the ceiling.
TARGET = 0.97
# The target after a line was removed or added.
TARGET_AFTER_CHANGE = 0.9
# Round trips that a failing line may cost: three, and one for the probe that detects the failure.
ROUND_TRIPS = 4
SECONDS = 10
# The number of attempts: rates are measured in real time.
TRIES = 3
RATES = ([10, 10], [10, 4], [8, 5, 3])


class Outcome(NamedTuple):
    """The outcome of a case."""

    # Everything arrived, and the expected events happened: this does not depend on the machine.
    passed: bool
    # The figures meet their targets.
    meets_target: bool
    detail: str


def full(transfer: Transfer) -> Outcome:
    """Compares the throughput on all lines with their capacity."""
    transfer.run(SECONDS)
    ceiling = sum(line.ceiling(transfer.carrier) for line in transfer.lines.all)
    rate = transfer.rate()
    terms = " + ".join(f"{line.ceiling(transfer.carrier):.2f}" for line in transfer.lines.all)
    detail = f"{rate:.2f} of {terms} = {ceiling:.2f} Mbit/s, {rate / ceiling:.1%}"
    return Outcome(transfer.received == transfer.amount, rate >= TARGET * ceiling, detail)


def cut(transfer: Transfer) -> Outcome:
    """The last line fails during the transfer; the others soon carry its data."""
    *remaining, failing = transfer.lines.all
    failed_at = []

    def fail() -> None:
        transfer.lines.cut(failing)
        failed_at.append(time.monotonic())

    transfer.run(SECONDS, fail)
    # The round-trip time is that of the full queue.
    allowed = ROUND_TRIPS * failing.queue_time()
    pause = transfer.longest_pause(failed_at[0], 5)
    ceiling = sum(line.ceiling(transfer.carrier) for line in remaining)
    rate = transfer.rate(0.6, 0.85)
    detected = f"path to {failing.address(2)}: no answer" in transfer.log("send")
    detail = (
        f"no progress for {pause:.2f} s of {allowed:.2f} s allowed, then {rate:.2f} of {ceiling:.2f} Mbit/s on the"
        f" remaining lines; {'detected' if detected else 'not detected'}"
    )
    is_complete = transfer.received == transfer.amount
    meets_target = pause <= allowed and rate >= TARGET_AFTER_CHANGE * ceiling
    return Outcome(is_complete and detected, meets_target, detail)


def add(transfer: Transfer) -> Outcome:
    """The last line gets its addresses during the transfer, and carries its share from then on."""
    before = {}

    def add_line() -> None:
        before.update(transfer.lines.sent())
        transfer.lines.add_addresses(transfer.lines.all[-1])

    transfer.run(SECONDS, add_line)
    ceiling = sum(line.ceiling(transfer.carrier) for line in transfer.lines.all)
    rate = transfer.rate(0.6, 0.85)
    last = transfer.lines.all[-1].number
    carried = transfer.lines.sent()[last] - before[last]
    detail = f"{carried / 1e6:.1f} MB on the new line, {rate:.2f} of {ceiling:.2f} Mbit/s in the end"
    is_complete = transfer.received == transfer.amount
    return Outcome(is_complete and carried > 0, rate >= TARGET_AFTER_CHANGE * ceiling, detail)


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Runs every case over UDP and over IP."""
    for carrier in ("udp", "raw"):
        for case, rates, without_addresses in (
            *((full, rates, ()) for rates in RATES),
            (cut, [8, 5, 3], ()),
            (add, [8, 4], (1,)),
        ):
            name = f"{carrier}: {case.__name__}, {' + '.join(map(str, rates))} Mbit/s"
            try:
                outcome = attempt(case, rates, without_addresses, eyas, carrier, directory)
                detail = outcome.detail
                for number in range(2, TRIES + 1):
                    if not (outcome.passed and outcome.meets_target):
                        # On a busy machine another attempt may succeed, which is reported.
                        outcome = attempt(case, rates, without_addresses, eyas, carrier, directory)
                        detail = f"attempt {number}: {outcome.detail}; before: {detail}"
            except NoNamespaces as missing:
                report.skip("multipath", "all", str(missing))
                return
            if outcome.passed:
                report.figure("multipath", name, outcome.meets_target, detail)
            else:
                report.failed("multipath", name, detail)


def attempt(
    case, rates: list[float], without_addresses: tuple[int, ...], eyas: pathlib.Path, carrier: str,
    directory: pathlib.Path,
) -> Outcome:
    """Runs the case on its own lines."""
    lines = Lines(rates, without_addresses)
    try:
        return case(Transfer(lines, eyas, carrier, directory))
    except Exception as error:  # one broken case must not hide the others
        return Outcome(False, False, f"{type(error).__name__}: {error}")
    finally:
        lines.remove()
