"""Programs for the kernel's SCTP directly over IP, under `eyas sctp run` here and over Linux's own SCTP in the guest."""

import dataclasses
import os
import pathlib

from ..network import NoNamespaces
from ..report import Skip
from ..sctp.guest import ROOT, Guest
from ..sctp.network import TAPS, SctpNetwork, ours, theirs
from ..sctp.tries import tries
from ..world import World
from .case import about
from .sctp_meeting import Here, There, meet, shared
from .sctp_pairs import LANGUAGES, SIGNALLING, TOOLS, Pair
from .sctp_sockets import at_once

# What Linux answered to each call of `behaviour`, when it was written down.
EXPECTED = ROOT / "peers" / "rfc6458" / "behaviour.linux-6.1"


class Linux:
    """Our host, and the guest at the other end of two taps."""

    def __init__(self, world: World) -> None:
        try:
            self.network = SctpNetwork()
        except NoNamespaces as missing:
            raise Skip(str(missing)) from missing
        try:
            place = world.file("linux")
            place.mkdir()
            self.guest = Guest(self.network, place, [])
        except Exception:
            self.network.remove()
            raise
        self.world = world

    def meet(self, pair: Pair, it_listens: bool) -> tuple[bool, str]:
        """Whether both say what they should; the guest listens, or connects."""
        here, there = Here(self.world, "--ip", self.network, self.network.ours), There(self.guest)
        server, client = (theirs, ours) if it_listens else (ours, theirs)
        addresses = {
            "server": server(TAPS[0]), "server2": server(TAPS[1]), "server6": server(TAPS[0], six=True),
            "client": client(TAPS[0]), "client2": client(TAPS[1]),
        }
        if not it_listens:
            return meet(self.world, pair, here, there, addresses)
        if pair.heard_by_linux is not None:
            pair = dataclasses.replace(pair, heard=pair.heard_by_linux)
        return meet(self.world, pair, there, here, addresses)

    def stop(self) -> None:
        self.guest.stop()
        self.network.remove()


@about("sctp")
def case_socket_guest(world: World) -> None:
    """All of them, with Linux as the listener and as the one that connects."""
    linux = Linux(world)
    try:
        answers(world, linux.guest)
        for pair in [*TOOLS, *LANGUAGES, *SIGNALLING]:
            if missing := pair.missing():
                world.report.skip(pair.peer, f"Linux, {pair.name}", missing)
                continue
            both_ways(world, linux, pair)
    finally:
        linux.stop()


def both_ways(world: World, linux: Linux, pair: Pair) -> None:
    """A line for each way round."""

    def one(it_listens: bool) -> None:
        name = f"Linux {'listens' if it_listens else 'connects'}, {pair.name}"
        try:
            outcome = tries(lambda: linux.meet(pair, it_listens), lambda: None)
            world.report.check(pair.peer, name, outcome.fine, outcome.detail)
        except Skip as why:
            world.report.skip(pair.peer, name, str(why))

    shared(world)
    if pair.alone or pair.apart:
        one(True)
        one(False)
    else:
        at_once(one, (True, False))


def answers(world: World, guest: Guest) -> None:
    """The kernel answers what was written down of one."""
    program = pathlib.Path(os.environ["EYAS_PEERS"]) / "sctp" / "linux" / "behaviour"
    if not program.exists():
        world.report.skip("rfc6458", "Linux's answers", "the program is not built: interop/install sctp says why")
        return
    _, said = There(guest).runs([str(program)])
    told, known = said.splitlines(), EXPECTED.read_text().splitlines()
    differ = [f"{now!r}, once {once!r}" for now, once in zip(told, known) if now != once]
    detail = "; ".join(differ) or f"{len(told)} of {len(known)} lines"
    world.report.check("rfc6458", "Linux answers as it was written down", told == known, detail)


CASES = [case_socket_guest]
