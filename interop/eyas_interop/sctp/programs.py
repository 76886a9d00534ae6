"""Programs written for the kernel's SCTP, directly over IP: over the kernel's sockets in the guest, under `eyas sctp run` here."""

import os
import pathlib
import shutil
import time
from collections.abc import Callable

from ..report import Skip
from .guest import ROOT, Guest
from .kernel import PAIRS as ALL
from .kernel import Place, Running
from .network import SctpNetwork
from .peers import READY_WITHIN
from .tries import Seen

# Between the guest and our host, both ways round.
PAIRS = ALL[1:]
NAMES = ("socat", "sctp_test", "iperf3")
# What Linux answered to each call of `behaviour`, when it was written down.
EXPECTED = ROOT / "peers" / "rfc6458" / "behaviour.linux-6.1"
# Messages of one sctp_test.
MESSAGES = 20
# A program may run this long, in seconds.
LIMIT = 20


def found() -> list[pathlib.Path]:
    """Those that this host has, for the guest to have them, too."""
    programs = [pathlib.Path(path) for name in NAMES if (path := shutil.which(name))]
    return programs + ([answering()] if answering().exists() else [])


def answering() -> pathlib.Path:
    """What prints the answer to each call."""
    return pathlib.Path(os.environ["EYAS_PEERS"]) / "sctp" / "linux" / "behaviour"


class Somewhere(Place):
    """Where a program runs."""

    def here(self, words: list[str]) -> list[str]:
        return [str(self.eyas), "sctp", "run", "--ip", "--", *words]

    def there(self, words: list[str]) -> str:
        return " ".join(words)


class Programs:
    """Who listens, who connects."""

    def __init__(self, network: SctpNetwork, guest: Guest, eyas: pathlib.Path, listener: str, connector: str) -> None:
        self.guest = guest
        self.listener = Somewhere(listener, network, guest, eyas)
        self.connector = Somewhere(connector, network, guest, eyas)
        self._numbers = 0

    @property
    def name(self) -> str:
        """For people."""
        return f"{'its kernel' if self.connector.name == 'guest' else 'our stack'} connects"

    def log(self) -> str:
        """A name for files that are not there yet."""
        self._numbers += 1
        return f"programs-{self.listener.name}-{self._numbers}"

    def listens(self, words: list[str], port: int, ready: str) -> Running:
        """A program that listens: the guest's kernel says so, and here the program."""
        running = self.listener.start(words, self.log())
        if self.listener.name != "guest":
            running.until_says(ready)
            return running
        deadline = time.monotonic() + READY_WITHIN
        while f" {port} " not in self.guest.run("cat /proc/net/sctp/eps"):
            if running.status() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the listener does not listen: {said(running)}")
        return running

    def connects(self, words: list[str], given: str = "/dev/null") -> Running:
        """A program that connects, at its end."""
        running = self.connector.start(words, self.log(), given)
        running.end(LIMIT)
        running.stop()
        return running

    def in_order(self) -> int:
        """DATA chunks that the guest's kernel has taken in."""
        counted = dict(line.split() for line in self.guest.run("cat /proc/net/sctp/snmp").splitlines())
        return int(counted["SctpInOrderChunks"]) + int(counted["SctpInUnorderChunks"])


def needs(name: str) -> None:
    if shutil.which(name) is None:
        raise Skip(f"{name} is not installed")


def said(running: Running) -> str:
    """The end of all that it said."""
    return (running.out().decode(errors="replace") + running.aside())[-300:]


def line(pair: Programs) -> Seen:
    """socat: a line, and the end of both."""
    needs("socat")
    address = pair.listener.address()
    (pair.guest.share / "hello").write_text("hello\n")
    words = ["socat", "-d", "-d", "-u", f"SCTP-LISTEN:5500,bind={address}", "STDOUT"]
    listening = pair.listens(words, 5500, "listening on")
    try:
        connecting = pair.connects(["socat", "-u", "STDIN", f"SCTP:{address}:5500"], "hello")
        listening.end(LIMIT)
    finally:
        listening.stop()
    fine = (listening.status(), connecting.status(), listening.out()) == (0, 0, b"hello\n")
    return fine, f"{said(listening)} {said(connecting)}"


def refused(pair: Programs) -> Seen:
    """socat: a port that nobody has is refused."""
    needs("socat")
    # Somebody answers for the host.
    words = ["socat", "-d", "-d", "-u", "SCTP-LISTEN:5502", "STDOUT"]
    listening = pair.listens(words, 5502, "listening on")
    try:
        connecting = pair.connects(["socat", "-u", "STDIN", f"SCTP:{pair.listener.address()}:5503"])
    finally:
        listening.stop()
    return connecting.status() == 1 and "Connection refused" in said(connecting), said(connecting)


def messages(pair: Programs) -> Seen:
    """sctp_test: messages, and what tells of the association."""
    needs("sctp_test")
    address = pair.listener.address()
    words = ["sctp_test", "-H", address, "-P", "5501", "-l", "-T"]
    if pair.listener.name == "ours":
        # What it prints it would keep to itself.
        words = ["script", "-qfec", " ".join(words), "/dev/null"]
    listening = pair.listens(words, 5501, "Receiving packets")
    before = pair.in_order()
    try:
        connector = pair.connector.address()
        speaking = f"sctp_test -H {connector} -P 5504 -h {address} -p 5501 -s -x 2 -c 0 -T".split()
        connecting = pair.connects(speaking)
        if pair.listener.name == "ours":
            listening.until_says("No association is present now")
    finally:
        listening.stop()
    if pair.listener.name == "guest":
        heard = pair.in_order() - before
        return connecting.status() == 0 and heard == MESSAGES, f"{heard} chunks; {said(connecting)}"
    told = listening.out().decode(errors="replace")
    heard = told.count("Data 1 bytes")
    fine = heard == MESSAGES and "COMMUNICATION_UP" in told and "SHUTDOWN_COMPLETE" in told
    return connecting.status() == 0 and fine, f"{heard} messages; {said(listening)}"


def bulk(pair: Programs) -> Seen:
    """iperf3: as quick as it goes, there and back."""
    needs("iperf3")
    address, rates = pair.listener.address(), []
    for more in ([], ["-R"]):
        words = ["iperf3", "-s", "-1", "-B", address, "-p", "5201", "--forceflush"]
        # Its own connection to control the test is one of TCP.
        listening = pair.listener.start(words, pair.log())
        try:
            listening.until_says("listening on")
            connecting = pair.connects(["iperf3", "--sctp", "-c", address, "-p", "5201", "-t", "1", *more])
            listening.end(LIMIT)
        finally:
            listening.stop()
        if (connecting.status(), listening.status()) != (0, 0) or b"iperf Done." not in connecting.out():
            return False, f"{' '.join(more)}: {said(connecting)}"
        told = [line.split() for line in connecting.out().decode().splitlines() if "receiver" in line]
        rates += [" ".join(words[6:8]) for words in told]
    return True, "; ".join(rates)


def answers(pair: Programs) -> Seen:
    """The kernel answers what was written down of one."""
    if not answering().exists():
        raise Skip("the program is not built")
    told, known = pair.guest.run("behaviour").splitlines(), EXPECTED.read_text().splitlines()
    differ = [f"{now!r}, once {once!r}" for now, once in zip(told, known) if now != once]
    return told == known, "; ".join(differ) or f"{len(told)} of {len(known)} lines"


CASES: list[Callable[[Programs], Seen]] = [line, refused, messages, bulk]
# What the kernel does by itself is no matter of who connects.
CASES_OF_THE_KERNEL = [answers]
