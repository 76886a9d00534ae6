"""Runs every case with every peer, and prints a table at the end."""

import contextlib
import os
import pathlib
import time

from ..network import NoNamespaces
from ..report import Report, Skip
from . import captures, cases, table
from .guest import Guest
from .meeting import Meeting
from .network import TAPS, SctpNetwork
from .peers import Host

# Peers that speak SCTP on links; those in memory are in memory.py.
ON_LINKS = ("linux", "usrsctp", "pion")


class Sctp:
    """The hosts, the meetings, and what came of them."""

    def __init__(self, directory: pathlib.Path, example: pathlib.Path, report: Report) -> None:
        self.directory = directory
        self.report = report
        self.binaries = pathlib.Path(os.environ["EYAS_PEERS"]) / "sctp"
        self.network = SctpNetwork()
        self.us = Host("eyas", self.network, example, namespace=self.network.ours)
        self.guest: Guest | None = None
        self.cells: dict[tuple[str, str], str] = {}
        self.columns: list[str] = []
        self.captures: list[tuple[str, pathlib.Path]] = []

    def peer(self, name: str) -> Host:
        """A peer, started if it has to be."""
        program = self.binaries / name / "peer"
        if name != "linux":
            return Host(name, self.network, program, namespace=self.network.theirs)
        if not program.exists():
            raise Skip("the peer for Linux is not built: interop/install sctp says why")
        self.guest = self.guest or Guest(self.network, self.directory, program)
        return Host(name, self.network, program, guest=self.guest, links=TAPS)

    def run(self, only: list[str]) -> None:
        """Every case with every peer."""
        for name, carriers in (("linux", ("raw", "udp")), ("usrsctp", ("raw", "udp")), ("pion", ("udp",))):
            if only and not any(word in f"sctp {name}" or word.startswith("sctp:") for word in only):
                continue
            words = [word.removeprefix("sctp:") for word in only if word.startswith("sctp:")]
            if words and all(word.split("+")[0] in ON_LINKS and not word.startswith(name) for word in words):
                continue
            try:
                peer = self.peer(name)
            except Skip as why:
                self.report.skip(name, "sctp", str(why))
                continue
            chosen = cases.EVERYWHERE + (cases.PION if name == "pion" else cases.WHOLE)
            for carrier in carriers:
                for we_connect in (True, False):
                    meeting = Meeting(self.network, self.us, peer, carrier, we_connect, self.directory)
                    for case in chosen:
                        label = f"{name} {carrier} {case.__name__}"
                        if not words or any(all(part in label for part in word.split("+")) for word in words):
                            self.one(meeting, case)
                    self.captures += [(f"{name}, {meeting.name}", it) for it in meeting.captures]
        self.read_captures()
        self.table()

    def one(self, meeting: Meeting, case) -> None:
        """One case."""
        title = case.__name__.replace("_", " ")
        column = f"{meeting.peer.name} {meeting.carrier} {'→' if meeting.we_connect else '←'}"
        if column not in self.columns:
            self.columns.append(column)
        start = time.monotonic()
        try:
            fine, detail = self.attempt(meeting, case)
            if not fine:
                # Timers of real kernels and a busy machine meet here: chance gets one more try,
                # and is told of.
                first = detail
                fine, detail = self.attempt(meeting, case)
                detail = f"at the second try: {detail}; the first: {first}"
        except Skip as why:
            self.report.skip(meeting.peer.name, f"{meeting.name}: {title}", str(why))
            self.cells[title, column] = "skip"
            return
        took = time.monotonic() - start
        self.report.check(meeting.peer.name, f"{meeting.name}: {title}", fine, f"{took:.1f} s; {detail}")
        self.cells[title, column] = "ok" if fine else "FAIL"

    def attempt(self, meeting: Meeting, case) -> tuple[bool, str]:
        """Whether the case went well, and what was seen."""
        try:
            return case(meeting)
        except Skip:
            raise
        except Exception as error:  # one broken case must not hide the others
            return False, f"{type(error).__name__}: {error}"
        finally:
            self.network.heal()

    def read_captures(self) -> None:
        """Wireshark finds nothing wrong with any packet."""
        by_meeting: dict[str, list[pathlib.Path]] = {}
        for name, file in self.captures:
            by_meeting.setdefault(name, []).append(file)
        for name, files in by_meeting.items():
            try:
                seen = [captures.read(file) for file in files]
            except Skip as why:
                self.report.skip("tshark", name, str(why))
                continue
            packets, bad = sum(it[0] for it in seen), sum(it[1] for it in seen)
            first = next((it[2] for it in seen if it[2]), "")
            detail = f"{packets} packets, {bad} malformed or with a wrong checksum {first}"
            self.report.check("tshark", name, packets > 0 and bad == 0, detail)

    def table(self) -> None:
        """The cases by row, the peers by column; → where we connect, ← where they do."""
        table.show("SCTP", self.columns, self.cells)

    def stop(self) -> None:
        """Takes everything down."""
        with contextlib.suppress(OSError):
            if self.guest is not None:
                self.guest.stop()
        self.network.remove()


def run(directory: pathlib.Path, example: pathlib.Path, report: Report, only: list[str]) -> None:
    """The whole of it."""
    try:
        sctp = Sctp(directory, example, report)
    except NoNamespaces as missing:
        report.skip("sctp", "all", str(missing))
        return
    try:
        sctp.run(only)
    finally:
        sctp.stop()
