"""Runs the pairs of `sctp_pairs`: on our hosts under `eyas sctp run`, and in the guest over Linux's own SCTP."""

import collections
import functools
import pathlib
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable

from ..process import READY_TIMEOUT, Peer
from ..report import Skip
from ..sctp.guest import Guest, Program
from ..sctp.network import SctpNetwork
from ..world import World
from .sctp_pairs import Pair, fill
from .sctp_sockets import in_parallel, on_terminal, sctp_run

# The time limit of the connecting program, in seconds.
TIMEOUT = 60
# How long the listener may take to print what it has received, in seconds.
OUTPUT_TIMEOUT = 15
# The message of `eyas` where the calls of a static program cannot be intercepted.
NO_SECCOMP = "cannot intercept the calls"
JAVA = pathlib.Path(__file__).parents[2] / "peers" / "java" / "Channels.java"


class OurHost:
    """One of our hosts: this one, or a namespace."""

    def __init__(self, world: World, carrier: str, network: SctpNetwork | None = None, namespace: str = "") -> None:
        self.world, self.carrier, self.network, self.namespace = world, carrier, network, namespace

    def command(self, words: list[str]) -> list[str]:
        words = sctp_run(self.world, self.carrier, words)
        return self.network.inside(self.namespace, words) if self.network else words

    def start(self, name: str, words: list[str]) -> Peer:
        return Peer(name, self.command(words), self.world.file("log"))

    def run(self, words: list[str]) -> tuple[int, str]:
        return run_to_end(self.command(words))


class GuestHost:
    """The guest, with the programs of this host."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest

    def start(self, _name: str, words: list[str]) -> Program:
        return Program(self.guest, words)

    def run(self, words: list[str]) -> tuple[int, str]:
        program = Program(self.guest, words)
        wait_until(lambda: program.status() is not None, TIMEOUT)
        if program.status() is None:
            program.stop()
            return -1, f"no end within {TIMEOUT} s: {program.output()}"
        return program.status(), program.output()


Host = OurHost | GuestHost


def run_pair(world: World, pair: Pair, listener: Host, connector: Host, addresses: dict[str, str]) -> tuple[bool, str]:
    """Runs a pair; returns whether both outputs are as expected, and details."""
    values = {**addresses, **common_values(world)}
    for name, text in pair.files:
        file = world.file(name)
        file.write_text(fill(text, values))
        values[name] = str(file)
    listening = shell(fill(pair.listen_command, values))
    listening = on_terminal(shlex.join(listening)) if pair.terminal else listening
    server = listener.start(pair.name, listening)
    try:
        wait_until(lambda: pair.ready in server.output())
        status, output = connector.run(shell(fill(pair.connect_command, {**values, "log": str(server.log)})))
        wait_until(lambda: matches_all(pair.listener_prints, server.output()), OUTPUT_TIMEOUT)
    finally:
        server.stop()
    if NO_SECCOMP in output:
        raise Skip(output.strip())
    return check_outputs(pair, status, output, server.output())


# Waits until a file contains a word, for a limited time in seconds.
WAIT_FOR = """timeout ${3:-10} sh -c 'until grep -q "$1" "$0"; do sleep 0.05; done' "$2" "$1"
"""


@functools.cache
def common_values(world: World) -> dict[str, str]:
    """Returns the values for all pairs: the Python of this run, the Java program, a certificate, and a script that waits for a word."""
    classes, wait = world.file("classes"), world.file("sh")
    subprocess.run(["sh", "-c", f"javac -d {classes} {JAVA}"], capture_output=True, check=False)
    wait.write_text(WAIT_FOR)
    return {
        "python": sys.executable, "classes": str(classes), "chain": str(world.identity.chain),
        "key": str(world.identity.key), "authority": str(world.authority.file), "wait_for": f"sh {wait}",
    }


def shell(words: str) -> list[str]:
    """Returns the words of a command, or a shell for it; a single command replaces the shell, so that a signal reaches the program."""
    if not any(sign in words for sign in "|;&$"):
        return shlex.split(words)
    return ["sh", "-c", words if any(sign in words for sign in "|;&") else f"exec {words}"]


def wait_until(condition: Callable[[], bool], within: float = READY_TIMEOUT) -> None:
    """Waits for a condition, for a limited time."""
    deadline = time.monotonic() + within
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def run_to_end(command: list[str]) -> tuple[int, str]:
    """Returns the status and all output of a command that ends by itself."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=TIMEOUT, check=False,
        )
    except subprocess.TimeoutExpired as error:
        return -1, f"no end within {TIMEOUT} s: {error.stdout}"
    return done.returncode, done.stdout


def matches_all(wanted: tuple[str, ...], text: str) -> bool:
    """Returns whether the text contains every word; `2 x word` exactly that often; `~pattern` is a regular expression."""
    return all(matches(word, text) for word in wanted)


def matches(word: str, text: str) -> bool:
    if word.startswith("~"):
        return re.search(word[1:], text) is not None
    count, _, counted = word.partition(" x ")
    return text.count(counted) == int(count) if counted else word in text


def check_outputs(pair: Pair, status: int, output: str, listener_output: str) -> tuple[bool, str]:
    good = pair.status == status and matches_all(pair.connector_prints, output) and matches_all(pair.listener_prints, listener_output)
    if good and pair.same:
        sent, received = (collections.Counter(re.findall(pair.same, text)) for text in (output, listener_output))
        good = received <= sent and 0 < sent.total() <= received.total() + 1
    return good, "" if good else f"status {status}: {output[-250:]}; the listener: {listener_output[-250:]}"


def report_pair(world: World, where: str, pair: Pair, run: Callable[[Pair, str], tuple[bool, str]]) -> None:
    """Reports one line for each carrier."""
    if missing := pair.missing():
        world.report.skip(pair.peer, f"{where}, {pair.name}", missing)
        return

    def check(carrier: str) -> None:
        name = f"{where}, {pair.name}, {carrier}"
        try:
            world.report.check(pair.peer, name, *run(pair, carrier))
        except Skip as reason:
            world.report.skip(pair.peer, name, str(reason))

    # Computed once, before both carriers need it.
    common_values(world)
    if pair.uses_tcp_port:
        check("--udp")
        check("--ip")
    else:
        in_parallel(check)
