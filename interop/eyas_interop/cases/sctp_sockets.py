"""Programs under `eyas sctp run`: a check for SCTP support, refused connections, and killed programs."""

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
# The time limit of one program, in seconds.
TIMEOUT = 40


def sctp_run(world: World, carrier: str, command: list[str]) -> list[str]:
    """Returns the command line that runs a command with eyas's SCTP sockets."""
    return [str(world.eyas_binary), "sctp", "run", carrier, "--", *command]


def require(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed (Debian: socat, lksctp-tools, iperf3)")


def on_terminal(command: str) -> list[str]:
    """Returns a command line with a terminal: lksctp's programs buffer their output otherwise."""
    return ["script", "-qfec", command, "/dev/null"]


class Server:
    """A listening program under eyas, which is ready once it has printed a text."""

    def __init__(self, world: World, carrier: str, command: list[str], ready: str) -> None:
        self.peer = Peer(command[0], sctp_run(world, carrier, command), world.file("log"))
        self.peer.wait_until(lambda: ready in self.output())

    def output(self) -> str:
        return self.peer.output()

    def ends_well(self) -> bool:
        """Returns whether it ends by itself, with status 0."""
        try:
            return self.peer.process.wait(TIMEOUT) == 0
        except subprocess.TimeoutExpired:
            return False

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        self.peer.stop()


def client(world: World, carrier: str, command: list[str], stdin: str = "") -> tuple[int, str]:
    """Returns the status and all output of a program under eyas that ends by itself."""
    try:
        done = subprocess.run(
            sctp_run(world, carrier, command), input=stdin, timeout=TIMEOUT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", check=False,
        )
    except subprocess.TimeoutExpired as error:
        return -1, f"no end within {TIMEOUT} s: {error.stdout}"
    return done.returncode, done.stdout


def in_parallel(check: Callable, inputs: Sequence = CARRIERS) -> None:
    """Runs a check for both carriers, or for other inputs, in parallel: they are independent, and mostly wait."""
    with concurrent.futures.ThreadPoolExecutor(len(inputs)) as pool:
        for done in [pool.submit(check, it) for it in inputs]:
            done.result()


@about("lksctp")
def case_socket_calls_is_supported(world: World) -> None:
    """A program that only checks for SCTP support."""
    require("checksctp")
    for carrier in CARRIERS:
        status, output = client(world, carrier, ["checksctp"])
        good = status == 0 and "SCTP supported" in output
        world.report.check("lksctp", f"checksctp, {carrier}", good, output)


@about("socat")
def case_socket_calls_refused(world: World) -> None:
    """Without a listener, a connection over UDP is refused at once."""
    require("socat")
    listening = ["socat", "-d", "-d", "-u", "SCTP-LISTEN:5000,bind=127.0.0.1", "STDOUT"]
    with Server(world, "--udp", listening, "listening on"):
        command = ["socat", "-u", "STDIN", "SCTP:127.0.0.1:5001"]
        status, output = client(world, "--udp", command)
    world.report.check("socat", "refused, --udp", status == 1 and "Connection refused" in output, output)


@about("socat")
def case_socket_calls_killed(world: World) -> None:
    """The peer of a killed program sees the end of the connection; when eyas is killed, its programs get errors."""
    require("socat")
    check = world.report.check
    listening = ["socat", "-d", "-d", "-u", "SCTP-LISTEN:5000,bind=127.0.0.1", "STDOUT"]
    with Server(world, "--udp", listening, "listening on") as server:
        command = sctp_run(world, "--udp", ["socat", "-d", "-d", "-u", "PIPE", "SCTP:127.0.0.1:5000"])
        sender = Peer("socat", command, world.file("log"))
        sender.wait_until(lambda: "starting data transfer" in sender.tail())
        for child in children(sender.process.pid):
            os.kill(child, signal.SIGKILL)
        check("socat", "a program is killed: its peer sees the end", server.ends_well(), server.output()[-80:])
        sender.process.wait(TIMEOUT)
    with Server(world, "--udp", listening, "listening on") as server:
        programs = children(server.peer.process.pid)
        server.peer.process.kill()
        server.peer.process.wait()
        gone = wait_for_end(programs)
        check("socat", "eyas is killed: its program ends", gone, server.output()[-120:])


def children(pid: int) -> list[int]:
    """Returns the child processes of a process."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def wait_for_end(programs: list[int]) -> bool:
    """Returns whether they end; those that do not are killed."""
    commands = [f"while kill -0 {pid} 2>/dev/null; do sleep 0.1; done" for pid in programs]
    try:
        subprocess.run(["sh", "-c", "; ".join(commands)], timeout=5, check=False)
        return bool(programs)
    except subprocess.TimeoutExpired:
        for pid in programs:
            os.kill(pid, signal.SIGKILL)
        return False


CASES = [case_socket_calls_is_supported, case_socket_calls_refused, case_socket_calls_killed]
