"""Runs every case with every peer, and prints a table at the end."""

import contextlib
import os
import pathlib
import time
from collections.abc import Callable

from ..network import NoNamespaces
from ..report import Report, Skip
from . import captures, cases, kernel, table
from .guest import Guest
from .exchange import Exchange
from .network import TAPS, SctpNetwork, our_addresses
from .peers import Host
from .retry import Result, with_retry

# The peers on real links and their carriers; those in memory are in memory.py, and `kernel` is the command over the
# kernel's SCTP.
PEERS = (("linux", ("raw", "udp")), ("usrsctp", ("raw", "udp")), ("pion", ("udp",)))
NAMES = ("linux", "usrsctp", "pion", "kernel")


class Cells:
    """The result of each case with each peer."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], str] = {}
        self.columns: list[str] = []

    def run(
        self, report: Report, peer: str, column: str, where: str, name: str, case: Callable[[], Result],
        heal: Callable[[], None],
    ) -> None:
        """Runs one case and reports its result."""
        if column not in self.columns:
            self.columns.append(column)
        start = time.monotonic()
        try:
            outcome = with_retry(case, heal)
        except Skip as reason:
            report.skip(peer, f"{where}: {name}", str(reason))
            self.cells[name, column] = "skip"
            return
        elapsed = time.monotonic() - start
        report.check(peer, f"{where}: {name}", outcome.passed, f"{elapsed:.1f} s; {outcome.detail}")
        self.cells[name, column] = outcome.cell

    def table(self) -> None:
        """Prints the cases as rows and the peers as columns; → where we connect, ← where they do."""
        table.show("SCTP", self.columns, self.cells)


def title(case: Callable) -> str:
    """Returns the readable name of a case."""
    return case.__name__.replace("_", " ")


def is_case_selected(label: str, words: list[str]) -> bool:
    """Returns whether one of the words selects a case: all parts of the word are in its name."""
    return not words or any(all(part in label for part in word.split("+")) for word in words)


def is_peer_selected(name: str, only: list[str], words: list[str]) -> bool:
    """Returns whether any case of this peer is selected."""
    if only and not any(word in f"sctp {name}" or word.startswith("sctp:") for word in only):
        return False
    firsts = [word.split("+")[0] for word in words]
    return not words or any(first == name or first not in NAMES for first in firsts)

class Sctp:
    """The hosts and the results of the cases."""

    def __init__(
        self, directory: pathlib.Path, example: pathlib.Path, eyas: pathlib.Path, report: Report
    ) -> None:
        self.directory = directory
        self.eyas = eyas
        self.report = report
        self.binaries = pathlib.Path(os.environ["EYAS_PEERS"]) / "sctp"
        self.network = SctpNetwork()
        self.our_host = Host("eyas", self.network, example, namespace=self.network.ours)
        self.guest: Guest | None = None
        # Why there is no guest; starting it is tried once.
        self.no_guest: Skip | None = None
        self.cells = Cells()
        self.captures: list[tuple[str, pathlib.Path]] = []

    def peer(self, name: str) -> Host:
        """Returns a peer's host; starts the guest if necessary."""
        program = self.binaries / name / "peer"
        if name != "linux":
            return Host(name, self.network, program, namespace=self.network.theirs)
        if not program.exists():
            raise Skip("the peer for Linux is not built; run interop/install sctp to see why")
        if self.no_guest:
            raise self.no_guest
        try:
            self.guest = self.guest or Guest(self.network, self.directory, [program, self.eyas])
        except Skip as reason:
            self.no_guest = reason
            raise
        return Host(name, self.network, program, guest=self.guest, links=TAPS)

    def run(self, only: list[str]) -> None:
        """Every case with every peer."""
        words = [word.removeprefix("sctp:") for word in only if word.startswith("sctp:")]
        for name, carriers in PEERS:
            if not is_peer_selected(name, only, words):
                continue
            try:
                peer = self.peer(name)
            except Skip as reason:
                self.report.skip(name, "sctp", str(reason))
                continue
            for carrier in carriers:
                for we_connect in (True, False):
                    exchange = Exchange(self.network, self.our_host, peer, carrier, we_connect, self.directory)
                    for case in cases.ALL_PEERS + (cases.PION_ONLY if name == "pion" else cases.FULL_SCTP):
                        if is_case_selected(f"{name} {carrier} {case.__name__}", words):
                            self.run_case(exchange, case)
                    self.captures += [(f"{name}, {exchange.name}", it) for it in exchange.captures]
        if is_peer_selected("kernel", only, words):
            self.run_command(words)
        self.read_captures()
        self.cells.table()

    def run_case(self, exchange: Exchange, case) -> None:
        """Runs one case."""
        self.cells.run(
            self.report, exchange.peer.name,
            f"{exchange.peer.name} {exchange.carrier} {'→' if exchange.we_connect else '←'}", exchange.name,
            title(case), lambda: case(exchange), self.network.heal,
        )

    def run_command(self, words: list[str]) -> None:
        """The command over the kernel's SCTP."""
        try:
            self.peer("linux")
        except Skip as reason:
            self.report.skip("kernel", "sctp", str(reason))
            return
        for listener, connector in kernel.PAIRS:
            command = kernel.Command(self.network, self.guest, self.eyas, listener, connector)
            for case in kernel.ALL_PEERS + ([] if listener == connector else kernel.BETWEEN_HOSTS):
                if is_case_selected(f"kernel {case.__name__}", words):
                    self.cells.run(
                        self.report, "kernel", f"kernel {kernel.ARROWS[listener, connector]}", command.name,
                        title(case), lambda: case(command), self.network.heal,
                    )
            self.captures += [(f"kernel, {command.name}", it) for it in command.captures]

    def read_captures(self) -> None:
        """Checks that Wireshark finds no problem in any packet that we sent."""
        by_exchange: dict[str, list[pathlib.Path]] = {}
        for name, file in self.captures:
            by_exchange.setdefault(name, []).append(file)
        for name, files in by_exchange.items():
            try:
                results = [captures.read(file, our_addresses()) for file in files]
            except Skip as reason:
                self.report.skip("tshark", name, str(reason))
                continue
            packets = sum(it.count for it in results)
            bad = [first for it in results for first in it.ours]
            theirs = [first for it in results for first in it.theirs]
            detail = f"{packets} packets, {len(bad)} of ours malformed or with a wrong checksum"
            detail += f", the first: {bad[0]}" if bad else ""
            detail += f"; {len(theirs)} of theirs, the first: {theirs[0]}" if theirs else ""
            self.report.check("tshark", name, packets > 0 and not bad, detail)

    def stop(self) -> None:
        """Stops the guest and removes the network."""
        with contextlib.suppress(OSError):
            if self.guest is not None:
                self.guest.stop()
        self.network.remove()


def run(
    directory: pathlib.Path, example: pathlib.Path, eyas: pathlib.Path, report: Report, only: list[str]
) -> None:
    """Runs the SCTP cases."""
    try:
        sctp = Sctp(directory, example, eyas, report)
    except NoNamespaces as missing:
        report.skip("sctp", "all", str(missing))
        return
    try:
        sctp.run(only)
    finally:
        sctp.stop()
