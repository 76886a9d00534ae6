"""Where the programs of `sctp_pairs` meet: hosts of ours under `eyas sctp run`, and the guest, over Linux's own SCTP."""

import collections
import functools
import pathlib
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable

from ..process import READY_WITHIN, Peer
from ..report import Skip
from ..sctp.guest import Guest, Program
from ..sctp.network import SctpNetwork
from ..world import World
from .sctp_pairs import Pair, fill
from .sctp_sockets import at_once, on_terminal, under

# The one that connects may run this long, in seconds.
WITHIN = 60
# What connects speaks for itself; what listens may be this long in printing what it has heard, in seconds.
HEARD_WITHIN = 15
# What `eyas` says where a static program cannot be served.
NO_SECCOMP = "cannot intercept the calls"
JAVA = pathlib.Path(__file__).parents[2] / "peers" / "java" / "Channels.java"


class Here:
    """A host of ours: this one, or the one of a namespace."""

    def __init__(self, world: World, carrier: str, network: SctpNetwork | None = None, namespace: str = "") -> None:
        self.world, self.carrier, self.network, self.namespace = world, carrier, network, namespace

    def command(self, words: list[str]) -> list[str]:
        words = under(self.world, self.carrier, words)
        return self.network.inside(self.namespace, words) if self.network else words

    def starts(self, name: str, words: list[str]) -> Peer:
        return Peer(name, self.command(words), self.world.file("log"))

    def runs(self, words: list[str]) -> tuple[int, str]:
        return ended(self.command(words))


class There:
    """The guest, with the programs of this host."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest

    def starts(self, _name: str, words: list[str]) -> Program:
        return Program(self.guest, words)

    def runs(self, words: list[str]) -> tuple[int, str]:
        program = Program(self.guest, words)
        until(lambda: program.status() is not None, WITHIN)
        if program.status() is None:
            program.stop()
            return -1, f"no end within {WITHIN} s: {program.all()}"
        return program.status(), program.all()


Place = Here | There


def meet(world: World, pair: Pair, listener: Place, connector: Place, addresses: dict[str, str]) -> tuple[bool, str]:
    """Whether both say what they should."""
    values = {**addresses, **shared(world)}
    for name, text in pair.files:
        file = world.file(name)
        file.write_text(fill(text, values))
        values[name] = str(file)
    listening = shell(fill(pair.listens, values))
    listening = on_terminal(shlex.join(listening)) if pair.terminal else listening
    server = listener.starts(pair.name, listening)
    try:
        until(lambda: pair.ready in server.all())
        status, said = connector.runs(shell(fill(pair.connects, {**values, "log": str(server.log)})))
        until(lambda: all_in(pair.heard, server.all()), HEARD_WITHIN)
    finally:
        server.stop()
    if NO_SECCOMP in said:
        raise Skip(said.strip())
    return judge(pair, status, said, server.all())


# Waits until a file holds a word, for so many seconds at most.
UNTIL = """timeout ${3:-10} sh -c 'until grep -q "$1" "$0"; do sleep 0.05; done' "$2" "$1"
"""


@functools.cache
def shared(world: World) -> dict[str, str]:
    """What every pair may use: the Python of this run, the program in Java, a certificate of any name of ours, and a wait."""
    classes, wait = world.file("classes"), world.file("sh")
    subprocess.run(["sh", "-c", f"javac -d {classes} {JAVA}"], capture_output=True, check=False)
    wait.write_text(UNTIL)
    return {
        "python": sys.executable, "classes": str(classes), "chain": str(world.identity.chain),
        "key": str(world.identity.key), "authority": str(world.authority.file), "until": f"sh {wait}",
    }


def shell(words: str) -> list[str]:
    """The words of a command; or the shell, of which one command alone takes the place, so that who ends it ends the program."""
    if not any(sign in words for sign in "|;&$"):
        return shlex.split(words)
    return ["sh", "-c", words if any(sign in words for sign in "|;&") else f"exec {words}"]


def until(true: Callable[[], bool], within: float = READY_WITHIN) -> None:
    """Waits, but not for ever."""
    deadline = time.monotonic() + within
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)


def ended(command: list[str]) -> tuple[int, str]:
    """The status and all output of one that ends by itself."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=WITHIN, check=False,
        )
    except subprocess.TimeoutExpired as late:
        return -1, f"no end within {WITHIN} s: {late.stdout}"
    return done.returncode, done.stdout


def all_in(wanted: tuple[str, ...], text: str) -> bool:
    """Whether all of that is there; `2 x word` as often as it says, and not more often; `~pattern` as a regular expression."""
    return all(is_in(word, text) for word in wanted)


def is_in(word: str, text: str) -> bool:
    if word.startswith("~"):
        return re.search(word[1:], text) is not None
    count, _, counted = word.partition(" x ")
    return text.count(counted) == int(count) if counted else word in text


def judge(pair: Pair, status: int, said: str, heard: str) -> tuple[bool, str]:
    good = pair.status == status and all_in(pair.said, said) and all_in(pair.heard, heard)
    if good and pair.same:
        sent, received = (collections.Counter(re.findall(pair.same, text)) for text in (said, heard))
        good = received <= sent and 0 < sent.total() <= received.total() + 1
    return good, "" if good else f"status {status}: {said[-250:]}; the listener: {heard[-250:]}"


def tell(world: World, where: str, pair: Pair, meet: Callable[[Pair, str], tuple[bool, str]]) -> None:
    """A line for each carrier."""
    if missing := pair.missing():
        world.report.skip(pair.peer, f"{where}, {pair.name}", missing)
        return

    def one(carrier: str) -> None:
        name = f"{where}, {pair.name}, {carrier}"
        try:
            world.report.check(pair.peer, name, *meet(pair, carrier))
        except Skip as why:
            world.report.skip(pair.peer, name, str(why))

    # Before both carriers ask for it.
    shared(world)
    if pair.alone:
        one("--udp")
        one("--ip")
    else:
        at_once(one)
