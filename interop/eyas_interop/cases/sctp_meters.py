"""Programs that measure SCTP, unchanged, under `eyas sctp run`; and some that were not made for each other."""

from ..world import World
from .case import about
from .sctp_programs import at_once
from .sctp_sockets import CARRIERS, Server, client, needs


@about("d-itg")
def case_socket_meters_ditg(world: World) -> None:
    """A flow at an even rate, with a connection of TCP to control it."""
    needs("ITGRecv", "ITGSend")
    # In turns: they have ports of TCP.
    for carrier in CARRIERS:
        with Server(world, carrier, ["stdbuf", "-oL", "ITGRecv"], "Press Ctrl-C") as server:
            flow = "-a 127.0.0.1 -T SCTP 0 1 -t 1000 -C 50 -c 500 -rp 5252".split()
            status, said = client(world, carrier, ["ITGSend", *flow])
            server.peer.wait_until(lambda: "Finish on SCTP port : 5252" in server.all())
            good = status == 0 and "Finished sending" in said
            world.report.check("d-itg", f"a flow, {carrier}", good, "" if good else said[-200:])


@about("netperfm")
def case_socket_meters_netperfmeter(world: World) -> None:
    """Messages both ways, with the control of the test over SCTP, too, of which it reads parts."""
    needs("netperfmeter")

    # In turns: it takes the port of TCP, too.
    for carrier in CARRIERS:
        with Server(world, carrier, ["stdbuf", "-oL", "netperfmeter", "5250"], "Passive Mode"):
            flow = "127.0.0.1:5250 -runtime=1 -sctp const10:const1200:const5:const300".split()
            status, said = client(world, carrier, ["netperfmeter", *flow])
            lines = [line.split() for line in said.splitlines() if "* Bytes:" in line]
            counts = [int(line[2]) for line in lines]
            # Sent, received and lost, of the flow and of all.
            good = status == 0 and len(counts) >= 3 and min(counts[:2]) > 0
            world.report.check("netperfm", f"both ways, {carrier}", good, f"{counts} bytes" if good else said[-300:])


@about("ncat")
def case_socket_meters_crosswise(world: World) -> None:
    """ncat to socat, and socat to ncat."""
    needs("ncat", "socat")

    def one(carrier: str) -> None:
        listening = ["socat", "-d", "-d", "-u", "SCTP-LISTEN:5010,bind=127.0.0.1", "STDOUT"]
        with Server(world, carrier, listening, "listening on") as server:
            status, said = client(world, carrier, ["ncat", "--sctp", "--send-only", "127.0.0.1", "5010"], "hello\n")
            good = server.ended() and status == 0 and "hello\n" in server.all()
            world.report.check("ncat", f"ncat to socat, {carrier}", good, said)
        # Its own input would end it at once.
        listening = ["ncat", "--sctp", "-v", "-l", "127.0.0.1", "5011", "--sh-exec", "cat >&2"]
        with Server(world, carrier, listening, "Listening on") as server:
            status, said = client(world, carrier, ["socat", "-u", "STDIN", "SCTP:127.0.0.1:5011"], "hello\n")
            good = server.ended() and status == 0 and "hello\n" in server.all()
            world.report.check("ncat", f"socat to ncat, {carrier}", good, said)

    at_once(one)


CASES = [case_socket_meters_ditg, case_socket_meters_netperfmeter, case_socket_meters_crosswise]
