"""Programs for the kernel's SCTP directly over IP, under `eyas sctp run` here and over Linux's own SCTP in the guest."""

import dataclasses
import os
import pathlib

from ..network import NoNamespaces
from ..report import Skip
from ..sctp.guest import ROOT, Guest
from ..sctp.network import TAPS, SctpNetwork, ours, theirs
from ..sctp.retry import with_retry
from ..world import World
from .case import about
from .sctp_pair_runs import GuestHost, OurHost, common_values, run_pair
from .sctp_pairs import LANGUAGES, SIGNALLING, TOOLS, Pair
from .sctp_sockets import in_parallel

# The programs in peers/rfc6458 whose calls are compared with Linux's.
PROGRAMS = ("behaviour", "options")


def recorded(program: str) -> list[str]:
    """Returns the results of Linux for each call of a program."""
    return (ROOT / "peers" / "rfc6458" / f"{program}.linux-6.1").read_text().splitlines()


def built(program: str) -> pathlib.Path:
    """Returns the path of a program, if it was built."""
    path = pathlib.Path(os.environ["EYAS_PEERS"]) / "sctp" / "linux" / program
    if not path.exists():
        raise Skip("the program is not built; run interop/install sctp to see why")
    return path


class Linux:
    """Our host, and the guest at the other end of two taps."""

    def __init__(self, world: World) -> None:
        try:
            self.network = SctpNetwork()
        except NoNamespaces as missing:
            raise Skip(str(missing)) from missing
        try:
            directory = world.file("linux")
            directory.mkdir()
            self.guest = Guest(self.network, directory, [])
        except Exception:
            self.network.remove()
            raise
        self.world = world

    def run_pair(self, pair: Pair, guest_listens: bool) -> tuple[bool, str]:
        """Runs a pair, in which the guest listens or connects; returns whether both outputs are as expected, and details."""
        our_host, guest = OurHost(self.world, "--ip", self.network, self.network.ours), GuestHost(self.guest)
        server, client = (theirs, ours) if guest_listens else (ours, theirs)
        addresses = {
            "server": server(TAPS[0]), "server2": server(TAPS[1]), "server6": server(TAPS[0], ipv6=True),
            "client": client(TAPS[0]), "client2": client(TAPS[1]),
        }
        if not guest_listens:
            return run_pair(self.world, pair, our_host, guest, addresses)
        if pair.linux_listener_prints is not None:
            pair = dataclasses.replace(pair, listener_prints=pair.linux_listener_prints)
        return run_pair(self.world, pair, guest, our_host, addresses)

    def stop(self) -> None:
        self.guest.stop()
        self.network.remove()


@about("sctp")
def case_socket_guest(world: World) -> None:
    """All pairs, with Linux as the listener and as the client."""
    linux = Linux(world)
    try:
        for program in PROGRAMS:
            check_recording(world, linux.guest, program)
        for pair in [*TOOLS, *LANGUAGES, *SIGNALLING]:
            if missing := pair.missing():
                world.report.skip(pair.peer, f"Linux, {pair.name}", missing)
                continue
            both_directions(world, linux, pair)
    finally:
        linux.stop()


def both_directions(world: World, linux: Linux, pair: Pair) -> None:
    """Reports one line for each direction."""

    def check(guest_listens: bool) -> None:
        name = f"Linux {'listens' if guest_listens else 'connects'}, {pair.name}"
        try:
            outcome = with_retry(lambda: linux.run_pair(pair, guest_listens), lambda: None)
            world.report.check(pair.peer, name, outcome.passed, outcome.detail)
        except Skip as reason:
            world.report.skip(pair.peer, name, str(reason))

    common_values(world)
    if pair.uses_tcp_port or pair.needs_two_hosts:
        check(True)
        check(False)
    else:
        in_parallel(check, (True, False))


def check_recording(world: World, guest: Guest, program: str) -> None:
    """Checks that the guest's kernel gives the recorded results."""
    try:
        _, output = GuestHost(guest).run([str(built(program))])
    except Skip as reason:
        world.report.skip("rfc6458", f"Linux's results, {program}", str(reason))
        return
    lines, expected = output.splitlines(), recorded(program)
    differences = [f"{now!r}, recorded {then!r}" for now, then in zip(lines, expected) if now != then]
    detail = "; ".join(differences) or f"{len(lines)} of {len(expected)} lines"
    world.report.check("rfc6458", f"Linux gives the recorded results, {program}", lines == expected, detail)


CASES = [case_socket_guest]
