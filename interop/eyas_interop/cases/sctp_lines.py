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
from .sctp_sockets import on_terminal, require

# The time limit of one program, in seconds.
TIMEOUT = 30
# The bytes after which a line counts as used.
MIN_USED_BYTES = 1_000_000
# Mbit/s of each of two lines.
RATES = ([10.0, 10.0], [10.0, 100.0])
# The required share of the capacity of both lines.
TARGET = 0.9
IPERF_SERVER = ["iperf3", "-s", "-1", "-p", "5201", "--forceflush"]


def listener(world: World, command: list[str]) -> Peer:
    """Starts a program that prints when it listens."""
    peer = Peer("iperf3", command, world.file("log"))
    return peer.wait_until(lambda: "listening on" in peer.log.read_text())


@about("iperf3")
def case_socket_lines_failing(world: World) -> None:
    """The line that carries all data fails: the other one takes over."""
    require("iperf3", "nft")
    eyas = [str(world.eyas_binary), "sctp", "run", "--ip", "--"]
    try:
        network = SctpNetwork()
    except NoNamespaces as missing:
        raise Skip(str(missing)) from missing
    try:
        server = listener(world, network.inside(network.theirs, [*eyas, *IPERF_SERVER]))
        command = [*eyas, "iperf3", "--sctp", "-c", theirs(CABLES[0]), "-p", "5201", "-t", "4"]
        client = Peer("iperf3", network.inside(network.ours, command), world.file("log"))
        client.wait_until(lambda: network.carried(CABLES)[0][0] > MIN_USED_BYTES)
        # iperf3's TCP control connection stays.
        network.lose(CABLES[0], 1)
        lost = network.carried(CABLES)[0]
        good = client.process.wait(TIMEOUT) == 0 and server.process.wait(TIMEOUT) == 0
        after = network.carried(CABLES)[0]
        detail = f"{after[1] - lost[1]} bytes on the other line then" if good else client.tail()
        world.report.check("iperf3", "a line fails, --ip", good and after[1] - lost[1] > MIN_USED_BYTES, detail)
    finally:
        network.remove()


@about("lksctp")
def case_socket_lines_silent(world: World) -> None:
    """A line fails while the association is idle: the next message takes the other one."""
    require("sctp_darn", "script", "nft")
    eyas = [str(world.eyas_binary), "sctp", "run", "--ip", "--"]
    try:
        network = SctpNetwork()
    except NoNamespaces as missing:
        raise Skip(str(missing)) from missing
    fifo = world.file("words")
    os.mkfifo(fifo)
    peers = []
    try:
        listening = [*eyas, *on_terminal("sctp_darn -H 0.0.0.0 -P 5005 -l")]
        peers.append(Peer("sctp_darn", network.inside(network.theirs, listening), world.file("log")))
        received = peers[0].log.read_text
        peers[0].wait_until(lambda: "listening" in received())
        sending = f"sctp_darn -H 0.0.0.0 -P 5006 -h {theirs(CABLES[0])} -p 5005 -s"
        command = [*eyas, "sh", "-c", f"(echo hello; cat {fifo}) | {sending}"]
        peers.append(Peer("sctp_darn", network.inside(network.ours, command), world.file("log")))
        peers[0].wait_until(lambda: "DATA(7):  hello." in received())
        network.lose(CABLES[0], 1)
        before = network.carried(CABLES)[0]
        fifo.write_text("second\n", encoding="ascii")
        peers[0].wait_until(lambda: "DATA(8):  second." in received())
        after = network.carried(CABLES)[0]
        # The message is first sent on the failed line.
        tried, carried = (after[line] - before[line] for line in range(2))
        detail = f"{tried} bytes on the failed line, {carried} on the other line"
        world.report.check("lksctp", "sctp_darn, a line fails, --ip", carried > 0, detail)
    finally:
        for peer in reversed(peers):
            peer.stop()
        network.remove()


@about("iperf3")
def case_socket_lines_multipath(world: World) -> None:
    """Both lines simultaneously."""
    require("iperf3", "tc")
    eyas = [str(world.eyas_binary), "sctp", "run", "--ip", "--multipath", "--"]
    for rates in RATES:
        try:
            lines = Lines(rates)
        except NoNamespaces as missing:
            raise Skip(str(missing)) from missing
        try:
            server = listener(world, lines.inside(lines.server, [*eyas, *IPERF_SERVER]))
            command = [*eyas, "iperf3", "--sctp", "-c", lines.all[0].address(2), "-p", "5201", "-O", "1", "-t", "3", "-J"]
            done = subprocess.run(
                lines.inside(lines.client, command), timeout=TIMEOUT, capture_output=True, text=True, check=False
            )
            rate_lines = [line for line in done.stdout.splitlines() if "bits_per_second" in line]
            rate = float(rate_lines[-1].split(":")[1].strip(" ,")) / 1e6 if rate_lines else 0.0
            server.process.wait(TIMEOUT)
            sent = lines.sent()
        finally:
            lines.remove()
        ceiling = sum(line.ceiling("ip") for line in lines.all)
        detail = f"{rate:.2f} of {ceiling:.2f} Mbit/s" if rate_lines else done.stderr[-300:]
        name = f"--multipath, {' + '.join(map(str, rates))} Mbit/s"
        if world.report.check("iperf3", f"{name}: both are used", min(sent.values()) > MIN_USED_BYTES, f"{sent}; {detail}"):
            world.report.figure("iperf3", f"{name}: {TARGET:.0%} of the ceiling", rate >= TARGET * ceiling, detail)


CASES = [case_socket_lines_failing, case_socket_lines_silent, case_socket_lines_multipath]
