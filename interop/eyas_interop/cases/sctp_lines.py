"""A program under `eyas sctp run` between two hosts with two lines: one that fails, and both at once."""

import os
import subprocess

from ..multipath.lines import Lines
from ..network import NoNamespaces
from ..process import Peer
from ..report import Skip
from ..sctp.network import CABLES, SctpNetwork, theirs
from ..world import World
from .case import about
from .sctp_sockets import needs, on_terminal

# One program may run this long, in seconds.
WITHIN = 30
# Bytes on a line that is in use.
BEGUN = 1_000_000
# Mbit/s of each of two lines.
RATES = ([10.0, 10.0], [10.0, 100.0])
# Of what two lines carry at most.
WANTED = 0.9
LISTENING = ["iperf3", "-s", "-1", "-p", "5201", "--forceflush"]


def listener(world: World, command: list[str]) -> Peer:
    """A program that says when it listens."""
    peer = Peer("iperf3", command, world.file("log"))
    return peer.wait_until(lambda: "listening on" in peer.log.read_text())


@about("iperf3")
def case_socket_lines_failing(world: World) -> None:
    """The line that carries all of it fails: the other one does."""
    needs("iperf3", "nft")
    eyas = [str(world.eyas_binary), "sctp", "run", "--ip", "--"]
    try:
        network = SctpNetwork()
    except NoNamespaces as missing:
        raise Skip(str(missing)) from missing
    try:
        server = listener(world, network.inside(network.theirs, [*eyas, *LISTENING]))
        command = [*eyas, "iperf3", "--sctp", "-c", theirs(CABLES[0]), "-p", "5201", "-t", "4"]
        client = Peer("iperf3", network.inside(network.ours, command), world.file("log"))
        client.wait_until(lambda: network.carried(CABLES)[0][0] > BEGUN)
        # Its own connection to control the test, one of TCP, stays.
        network.lose(CABLES[0], 1)
        lost = network.carried(CABLES)[0]
        good = client.process.wait(WITHIN) == 0 and server.process.wait(WITHIN) == 0
        after = network.carried(CABLES)[0]
        detail = f"{after[1] - lost[1]} bytes on the other line then" if good else client.said()
        world.report.check("iperf3", "a line fails, --ip", good and after[1] - lost[1] > BEGUN, detail)
    finally:
        network.remove()


@about("lksctp")
def case_socket_lines_silent(world: World) -> None:
    """A line fails while nothing is said: what is said next takes the other one."""
    needs("sctp_darn", "script", "nft")
    eyas = [str(world.eyas_binary), "sctp", "run", "--ip", "--"]
    try:
        network = SctpNetwork()
    except NoNamespaces as missing:
        raise Skip(str(missing)) from missing
    words = world.file("words")
    os.mkfifo(words)
    peers = []
    try:
        listening = [*eyas, *on_terminal("sctp_darn -H 0.0.0.0 -P 5005 -l")]
        peers.append(Peer("sctp_darn", network.inside(network.theirs, listening), world.file("log")))
        heard = peers[0].log.read_text
        peers[0].wait_until(lambda: "listening" in heard())
        speaking = f"sctp_darn -H 0.0.0.0 -P 5006 -h {theirs(CABLES[0])} -p 5005 -s"
        command = [*eyas, "sh", "-c", f"(echo hello; cat {words}) | {speaking}"]
        peers.append(Peer("sctp_darn", network.inside(network.ours, command), world.file("log")))
        peers[0].wait_until(lambda: "DATA(7):  hello." in heard())
        network.lose(CABLES[0], 1)
        before = network.carried(CABLES)[0]
        words.write_text("second\n", encoding="ascii")
        peers[0].wait_until(lambda: "DATA(8):  second." in heard())
        after = network.carried(CABLES)[0]
        # It says that first where nobody hears it.
        tried, carried = (after[line] - before[line] for line in range(2))
        detail = f"{tried} bytes in vain, {carried} on the other line"
        world.report.check("lksctp", "sctp_darn, a line fails, --ip", carried > 0, detail)
    finally:
        for peer in reversed(peers):
            peer.stop()
        network.remove()


@about("iperf3")
def case_socket_lines_multipath(world: World) -> None:
    """Both lines at once."""
    needs("iperf3", "tc")
    eyas = [str(world.eyas_binary), "sctp", "run", "--ip", "--multipath", "--"]
    for rates in RATES:
        try:
            lines = Lines(rates)
        except NoNamespaces as missing:
            raise Skip(str(missing)) from missing
        try:
            server = listener(world, lines.inside(lines.there, [*eyas, *LISTENING]))
            command = [*eyas, "iperf3", "--sctp", "-c", lines.all[0].address(2), "-p", "5201", "-O", "1", "-t", "3", "-J"]
            done = subprocess.run(
                lines.inside(lines.here, command), timeout=WITHIN, capture_output=True, text=True, check=False
            )
            told = [line for line in done.stdout.splitlines() if "bits_per_second" in line]
            rate = float(told[-1].split(":")[1].strip(" ,")) / 1e6 if told else 0.0
            server.process.wait(WITHIN)
            sent = lines.sent()
        finally:
            lines.remove()
        ceiling = sum(line.ceiling("ip") for line in lines.all)
        detail = f"{rate:.2f} of {ceiling:.2f} Mbit/s" if told else done.stderr[-300:]
        name = f"--multipath, {' + '.join(map(str, rates))} Mbit/s"
        if world.report.check("iperf3", f"{name}: both are used", min(sent.values()) > BEGUN, f"{sent}; {detail}"):
            world.report.figure("iperf3", f"{name}: {WANTED:.0%} of the ceiling", rate >= WANTED * ceiling, detail)


CASES = [case_socket_lines_failing, case_socket_lines_silent, case_socket_lines_multipath]
