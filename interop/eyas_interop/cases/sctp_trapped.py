"""Unchanged programs that do not use the C library, under `eyas sctp run`, which traps their system calls (seccomp)."""

import os
import pathlib
import signal

from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about
from .sctp_pair_runs import common_values
from .sctp_pairs import fill, ping_command
from .sctp_sockets import CARRIERS, Server, children, client, sctp_run, wait_for_end

def peer(world: World, kind: str) -> str:
    """Returns one of our programs, where its calls can be trapped."""
    program = pathlib.Path(os.environ["EYAS_PEERS"]) / "sctp" / "own_calls" / kind
    if not program.exists():
        raise Skip(f"no {kind} program that makes its own calls; run interop/install sctp to see why")
    status, output = client(world, "--udp", [str(program), "nothing"])
    if "cannot intercept the calls" in output:
        raise Skip(output.strip())
    world.report.check(kind, "starts and ends", status == 0, output)
    return str(program)


@about("Go")
def case_socket_trapped_go(world: World) -> None:
    """No SCTP at all; its SCTP server and client are one of the pairs."""
    program = peer(world, "go")
    status, output = client(world, "--udp", [program, "tcp"])
    world.report.check("Go", "TCP alone", (status, output) == (0, "over TCP\n"), output)


@about("static C")
def case_socket_trapped_static(world: World) -> None:
    """select, poll, fork, dup, messages in parts, and a port that is reused at once."""
    program = peer(world, "static")
    for carrier in CARRIERS:
        with Server(world, carrier, [program, "server", "5310"], "listening") as server:
            status, output = client(world, carrier, [program, "client", "5310"])
            good = (status, output) == (0, "echoed\n") and server.ends_well() and "reused" in server.output()
            world.report.check("static C", f"echo, {carrier}", good, output + server.output()[-300:])
        # The other end uses the preloaded library.
        with Server(world, carrier, [program, "server", "5310"], "listening"):
            command = fill(ping_command("socat -t 1 - SCTP:127.0.0.1:5310"), common_values(world))
            answer = client(world, carrier, ["sh", "-c", command])
            world.report.check("static C", f"with socat, {carrier}", answer == (0, "ping\n"), answer[1])


@about("static C")
def case_socket_trapped_killed(world: World) -> None:
    """A program is killed, and its peer sees the end; eyas is killed, and its program ends."""
    program = peer(world, "static")
    with Server(world, "--udp", [program, "server", "5310"], "listening") as server:
        command = sctp_run(world, "--udp", ["socat", "-d", "-d", "-u", "PIPE", "SCTP:127.0.0.1:5310"])
        sender = Peer("socat", command, world.file("log"))
        sender.wait_until(lambda: "starting data transfer" in sender.tail())
        for child in children(sender.process.pid):
            os.kill(child, signal.SIGKILL)
        world.report.check("static C", "its peer is killed: it sees the end", server.ends_well(), server.output()[-80:])
        sender.stop()
    with Server(world, "--udp", [program, "server", "5310"], "listening") as server:
        command = sctp_run(world, "--udp", ["socat", "-d", "-d", "-u", "PIPE", "SCTP:127.0.0.1:5310"])
        sender = Peer("socat", command, world.file("log"))
        sender.wait_until(lambda: "starting data transfer" in sender.tail())
        programs = children(server.peer.process.pid)
        server.peer.process.kill()
        server.peer.process.wait()
        gone = wait_for_end(programs)
        world.report.check("static C", "eyas is killed: its program ends", gone, server.output()[-120:])
        sender.stop()


CASES = [case_socket_trapped_go, case_socket_trapped_static, case_socket_trapped_killed]
