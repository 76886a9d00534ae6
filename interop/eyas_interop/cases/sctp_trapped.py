"""Programs that no library reaches, unchanged, under `eyas sctp run`: the kernel stops their calls (seccomp)."""

import os
import pathlib
import signal

from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about
from .sctp_meeting import shared
from .sctp_pairs import asking, fill
from .sctp_sockets import CARRIERS, Server, children, client, under, wait_for_end

def peer(world: World, kind: str) -> str:
    """One of our programs, where the kernel stops calls for it."""
    program = pathlib.Path(os.environ["EYAS_PEERS"]) / "sctp" / "own_calls" / kind
    if not program.exists():
        raise Skip(f"no {kind} program that makes its own calls: interop/install sctp says why")
    status, said = client(world, "--udp", [str(program), "nothing"])
    if "cannot intercept the calls" in said:
        raise Skip(said.strip())
    world.report.check(kind, "begins and ends", status == 0, said)
    return str(program)


@about("Go")
def case_socket_trapped_go(world: World) -> None:
    """No SCTP at all; how it speaks to itself is one of the pairs."""
    program = peer(world, "go")
    status, said = client(world, "--udp", [program, "tcp"])
    world.report.check("Go", "TCP alone", (status, said) == (0, "over TCP\n"), said)


@about("static C")
def case_socket_trapped_static(world: World) -> None:
    """select, poll, fork, copies and messages in parts, and a port that is used again at once."""
    program = peer(world, "static")
    for carrier in CARRIERS:
        with Server(world, carrier, [program, "server", "5310"], "listening") as server:
            status, said = client(world, carrier, [program, "client", "5310"])
            good = (status, said) == (0, "echoed\n") and server.ended() and "again" in server.all()
            world.report.check("static C", f"echo, {carrier}", good, said + server.all()[-300:])
        # The other end has the library.
        with Server(world, carrier, [program, "server", "5310"], "listening"):
            asked = fill(asking("socat -t 1 - SCTP:127.0.0.1:5310"), shared(world))
            answer = client(world, carrier, ["sh", "-c", asked])
            world.report.check("static C", f"with socat, {carrier}", answer == (0, "ping\n"), answer[1])


@about("static C")
def case_socket_trapped_killed(world: World) -> None:
    """A program is killed, and is hung up on its peer; eyas is killed, and its program ends."""
    program = peer(world, "static")
    with Server(world, "--udp", [program, "server", "5310"], "listening") as server:
        command = under(world, "--udp", ["socat", "-d", "-d", "-u", "PIPE", "SCTP:127.0.0.1:5310"])
        speaking = Peer("socat", command, world.file("log"))
        speaking.wait_until(lambda: "starting data transfer" in speaking.said())
        for child in children(speaking.process.pid):
            os.kill(child, signal.SIGKILL)
        world.report.check("static C", "its peer is killed: it sees the end", server.ended(), server.all()[-80:])
        speaking.stop()
    with Server(world, "--udp", [program, "server", "5310"], "listening") as server:
        command = under(world, "--udp", ["socat", "-d", "-d", "-u", "PIPE", "SCTP:127.0.0.1:5310"])
        speaking = Peer("socat", command, world.file("log"))
        speaking.wait_until(lambda: "starting data transfer" in speaking.said())
        programs = children(server.peer.process.pid)
        server.peer.process.kill()
        server.peer.process.wait()
        gone = wait_for_end(programs)
        world.report.check("static C", "eyas is killed: its program ends", gone, server.all()[-120:])
        speaking.stop()


CASES = [case_socket_trapped_go, case_socket_trapped_static, case_socket_trapped_killed]
