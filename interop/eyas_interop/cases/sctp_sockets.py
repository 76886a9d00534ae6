"""Programs under `eyas sctp run`: what asks for SCTP, who is refused, and who is killed."""

import concurrent.futures
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence

from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

CARRIERS = ("--udp", "--ip")
# One program may run this long, in seconds.
WITHIN = 40


def under(world: World, carrier: str, command: list[str]) -> list[str]:
    """The command, with sockets of eyas."""
    return [str(world.eyas_binary), "sctp", "run", carrier, "--", *command]


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed (Debian: socat, lksctp-tools, iperf3)")


def on_terminal(command: str) -> list[str]:
    """lksctp's programs keep what they print to themselves for long, unless on a terminal."""
    return ["script", "-qfec", command, "/dev/null"]


class Server:
    """A program under eyas that listens, known by what it then prints."""

    def __init__(self, world: World, carrier: str, command: list[str], ready: str) -> None:
        self.peer = Peer(command[0], under(world, carrier, command), world.file("log"))
        self.peer.wait_until(lambda: ready in self.all())

    def all(self) -> str:
        return self.peer.all()

    def ended(self) -> bool:
        """Whether it ends by itself, with 0."""
        try:
            return self.peer.process.wait(WITHIN) == 0
        except subprocess.TimeoutExpired:
            return False

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        self.peer.stop()


def client(world: World, carrier: str, command: list[str], said: str = "") -> tuple[int, str]:
    """The status and all output of a program under eyas that ends by itself."""
    try:
        done = subprocess.run(
            under(world, carrier, command), input=said, timeout=WITHIN, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", check=False,
        )
    except subprocess.TimeoutExpired as late:
        return -1, f"no end within {WITHIN} s: {late.stdout}"
    return done.returncode, done.stdout


def at_once(one: Callable, of: Sequence = CARRIERS) -> None:
    """Tries both carriers, or what else there is, at the same time: they do not meet, and the programs mostly wait."""
    with concurrent.futures.ThreadPoolExecutor(len(of)) as pool:
        for done in [pool.submit(one, it) for it in of]:
            done.result()


@about("lksctp")
def case_socket_calls_is_supported(world: World) -> None:
    """What asks for SCTP alone."""
    needs("checksctp")
    for carrier in CARRIERS:
        status, said = client(world, carrier, ["checksctp"])
        good = status == 0 and "SCTP supported" in said
        world.report.check("lksctp", f"checksctp, {carrier}", good, said)


@about("socat")
def case_socket_calls_refused(world: World) -> None:
    """Nobody listens, and inside UDP that is told at once."""
    needs("socat")
    listening = ["socat", "-d", "-d", "-u", "SCTP-LISTEN:5000,bind=127.0.0.1", "STDOUT"]
    with Server(world, "--udp", listening, "listening on"):
        command = ["socat", "-u", "STDIN", "SCTP:127.0.0.1:5001"]
        status, said = client(world, "--udp", command)
    world.report.check("socat", "refused, --udp", status == 1 and "Connection refused" in said, said)


@about("socat")
def case_socket_calls_killed(world: World) -> None:
    """A program that is killed is hung up on its peer; without eyas programs get errors."""
    needs("socat")
    check = world.report.check
    listening = ["socat", "-d", "-d", "-u", "SCTP-LISTEN:5000,bind=127.0.0.1", "STDOUT"]
    with Server(world, "--udp", listening, "listening on") as server:
        command = under(world, "--udp", ["socat", "-d", "-d", "-u", "PIPE", "SCTP:127.0.0.1:5000"])
        speaking = Peer("socat", command, world.file("log"))
        speaking.wait_until(lambda: "starting data transfer" in speaking.said())
        for child in children(speaking.process.pid):
            os.kill(child, signal.SIGKILL)
        check("socat", "a program is killed: its peer sees the end", server.ended(), server.all()[-80:])
        speaking.process.wait(WITHIN)
    with Server(world, "--udp", listening, "listening on") as server:
        programs = children(server.peer.process.pid)
        server.peer.process.kill()
        server.peer.process.wait()
        gone = wait_for_end(programs)
        check("socat", "eyas is killed: its program ends", gone, server.all()[-120:])


def children(pid: int) -> list[int]:
    """The programs that this one has started."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as listed:
        return [int(child) for child in listed.read().split()]


def wait_for_end(programs: list[int]) -> bool:
    """Whether they end; those that do not are killed."""
    commands = [f"while kill -0 {pid} 2>/dev/null; do sleep 0.1; done" for pid in programs]
    try:
        subprocess.run(["sh", "-c", "; ".join(commands)], timeout=5, check=False)
        return bool(programs)
    except subprocess.TimeoutExpired:
        for pid in programs:
            os.kill(pid, signal.SIGKILL)
        return False


CASES = [case_socket_calls_is_supported, case_socket_calls_refused, case_socket_calls_killed]
