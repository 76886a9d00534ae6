"""What is checked: all lines are full, one that dies costs little, one that comes is used."""

import pathlib
import time
from typing import NamedTuple

from ..network import NoNamespaces
from ..report import Report
from .lines import Lines
from .transfer import Transfer

# The share of the ceiling that is wanted.
WANTED = 0.97
# Of the lines that are left, or that come, while everything else changes.
WANTED_CHANGING = 0.9
# Round trips that a line which dies may cost: three, and one for the probe that finds out.
ROUND_TRIPS = 4
SECONDS = 10
# Rates are measured in real time: chance gets so many tries.
TRIES = 3
RATES = ([10, 10], [10, 4], [8, 5, 3])


class Seen(NamedTuple):
    """What a case saw."""

    # Everything arrived, and what had to happen did: this does not depend on the machine.
    sound: bool
    # The figures are as wanted.
    meets: bool
    told: str


def full(transfer: Transfer) -> Seen:
    """Throughput on all lines against what they can carry."""
    transfer.run(SECONDS)
    ceiling = sum(line.ceiling(transfer.carrier) for line in transfer.lines.all)
    rate = transfer.rate()
    terms = " + ".join(f"{line.ceiling(transfer.carrier):.2f}" for line in transfer.lines.all)
    told = f"{rate:.2f} of {terms} = {ceiling:.2f} Mbit/s, {rate / ceiling:.1%}"
    return Seen(transfer.received == transfer.amount, rate >= WANTED * ceiling, told)


def cut(transfer: Transfer) -> Seen:
    """The last line fails in the middle; its data goes over the others soon."""
    *left, dying = transfer.lines.all
    moment = []

    def die() -> None:
        transfer.lines.cut(dying)
        moment.append(time.monotonic())

    transfer.run(SECONDS, die)
    # Only the queue takes time.
    allowed = ROUND_TRIPS * dying.queue_time()
    pause = transfer.longest_pause(moment[0], 5)
    ceiling = sum(line.ceiling(transfer.carrier) for line in left)
    rate = transfer.rate(0.6, 0.85)
    noticed = f"path to {dying.address(2)}: no answer" in transfer.said("send")
    told = (
        f"nothing new for {pause:.2f} s of {allowed:.2f} s allowed, then {rate:.2f} of {ceiling:.2f} Mbit/s on what is"
        f" left; {'noticed' if noticed else 'not noticed'}"
    )
    whole = transfer.received == transfer.amount
    meets = pause <= allowed and rate >= WANTED_CHANGING * ceiling
    return Seen(whole and noticed, meets, told)


def come(transfer: Transfer) -> Seen:
    """The last line gets its addresses in the middle, and carries its share from then on."""
    before = {}

    def add() -> None:
        before.update(transfer.lines.sent())
        transfer.lines.add_addresses(transfer.lines.all[-1])

    transfer.run(SECONDS, add)
    ceiling = sum(line.ceiling(transfer.carrier) for line in transfer.lines.all)
    rate = transfer.rate(0.6, 0.85)
    last = transfer.lines.all[-1].number
    carried = transfer.lines.sent()[last] - before[last]
    told = f"{carried / 1e6:.1f} MB on the new line, {rate:.2f} of {ceiling:.2f} Mbit/s in the end"
    whole = transfer.received == transfer.amount
    return Seen(whole and carried > 0, rate >= WANTED_CHANGING * ceiling, told)


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Every case over UDP and directly over IP."""
    for carrier in ("udp", "raw"):
        for case, rates, bare in (
            *((full, rates, ()) for rates in RATES),
            (cut, [8, 5, 3], ()),
            (come, [8, 4], (1,)),
        ):
            name = f"{carrier}: {case.__name__}, {' + '.join(map(str, rates))} Mbit/s"
            try:
                seen = attempt(case, rates, bare, eyas, carrier, directory)
                detail = seen.told
                for number in range(2, TRIES + 1):
                    if not (seen.sound and seen.meets):
                        # A busy machine gets one more try, and is told of.
                        seen = attempt(case, rates, bare, eyas, carrier, directory)
                        detail = f"at try {number}: {seen.told}; before: {detail}"
            except NoNamespaces as missing:
                report.skip("multipath", "all", str(missing))
                return
            if seen.sound:
                report.figure("multipath", name, seen.meets, detail)
            else:
                report.failed("multipath", name, detail)


def attempt(
    case, rates: list[float], bare: tuple[int, ...], eyas: pathlib.Path, carrier: str,
    directory: pathlib.Path,
) -> Seen:
    """The case on lines of its own."""
    lines = Lines(rates, bare)
    try:
        return case(Transfer(lines, eyas, carrier, directory))
    except Exception as error:  # one broken case must not hide the others
        return Seen(False, False, f"{type(error).__name__}: {error}")
    finally:
        lines.remove()
