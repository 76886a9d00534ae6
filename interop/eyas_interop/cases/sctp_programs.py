"""More programs written for the kernel's SCTP, unchanged, under `eyas sctp run`: each with itself, on one loopback."""

import concurrent.futures
from collections.abc import Callable

from ..world import World
from .case import about
from .sctp_sockets import CARRIERS, Server, client, needs, on_terminal

# SCTP has no half-close: who ends right behind a request gets no answer.
PING = "(echo ping; sleep 0.5)"


def at_once(one: Callable[[str], None]) -> None:
    """Tries both carriers at the same time: they do not meet, and the programs mostly wait."""
    with concurrent.futures.ThreadPoolExecutor(len(CARRIERS)) as pool:
        for done in [pool.submit(one, carrier) for carrier in CARRIERS]:
            done.result()


@about("ncat")
def case_socket_programs_ncat(world: World) -> None:
    """A line over IPv4 and IPv6, a program behind each connection, and nobody there."""
    needs("ncat")
    check = world.report.check

    def one(carrier: str) -> None:
        for address in ("127.0.0.1", "::1"):
            # Where its input has ended, so has its association.
            listening = ["sh", "-c", f"sleep 1.5 | ncat --sctp -v -l {address} 5002"]
            with Server(world, carrier, listening, "Listening on") as server:
                status, said = client(world, carrier, ["ncat", "--sctp", "--send-only", address, "5002"], "hello\n")
                good = server.ended() and status == 0 and "hello\n" in server.all()
                check("ncat", f"hello to {address}, {carrier}", good, said)
        listening = ["ncat", "--sctp", "-v", "-k", "-l", "127.0.0.1", "5003", "-e", "/bin/cat"]
        with Server(world, carrier, listening, "Listening on"):
            asking = ["sh", "-c", f"{PING} | ncat --sctp 127.0.0.1 5003"]
            answers = [client(world, carrier, asking) for _ in range(2)]
            check("ncat", f"-k -e /bin/cat, {carrier}", answers == [(0, "ping\n")] * 2, str(answers))
        status, said = client(world, carrier, ["ncat", "--sctp", "127.0.0.1", "5999"])
        check("ncat", f"refused, {carrier}", status == 1 and "Connection refused" in said, said)

    at_once(one)


@about("socat")
def case_socket_programs_inherited(world: World) -> None:
    """A program that never made a socket answers over one that it inherited."""
    needs("socat")
    listening = ["socat", "-d", "-d", "SCTP-LISTEN:5001,bind=127.0.0.1,fork", "EXEC:/bin/cat,nofork"]

    def one(carrier: str) -> None:
        with Server(world, carrier, listening, "listening on"):
            asking = ["sh", "-c", f"{PING} | socat -t 1 - SCTP:127.0.0.1:5001"]
            answers = [client(world, carrier, asking) for _ in range(2)]
            world.report.check("socat", f"fork, nofork, {carrier}", answers == [(0, "ping\n")] * 2, str(answers))

    at_once(one)


@about("lksctp")
def case_socket_programs_many(world: World) -> None:
    """sctp_test with one socket for many associations, and over two addresses."""
    needs("sctp_test", "script")
    tests = {
        "one to many": ("-H 127.0.0.1", "-h 127.0.0.1"),
        "two addresses": ("-H 127.0.0.1 -B 127.0.0.2", "-C 127.0.0.1 -C 127.0.0.2"),
    }

    def one(carrier: str) -> None:
        for name, (ours, theirs) in tests.items():
            listening = on_terminal(f"sctp_test {ours} -P 5003 -l")
            with Server(world, carrier, listening, "Receiving packets") as server:
                command = f"sctp_test -H 127.0.0.1 -P 5004 {theirs} -p 5003 -s -x 2 -c 0"
                status, said = client(world, carrier, on_terminal(command))
                server.peer.wait_until(lambda: "SHUTDOWN_COMPLETE" in server.all())
                heard = server.all().count("Data 1 bytes")
                good = status == 0 and heard == 20 and "COMMUNICATION_UP" in server.all()
                world.report.check("lksctp", f"sctp_test, {name}, {carrier}", good, said[-200:])

    at_once(one)


@about("lksctp")
def case_socket_programs_darn_and_status(world: World) -> None:
    """sctp_darn in both styles, and what sctp_status shows."""
    needs("sctp_darn", "sctp_status", "script")
    check = world.report.check

    def one(carrier: str) -> None:
        for style in ("", "-t "):
            listening = on_terminal(f"sctp_darn {style}-H 127.0.0.1 -P 5005 -l")
            with Server(world, carrier, listening, "listening") as server:
                speaking = f"sctp_darn {style}-H 127.0.0.1 -P 5006 -h 127.0.0.1 -p 5005 -s"
                words = f"(printf 'hello\\nsecond\\n'; sleep 0.5) | {speaking}"
                # It ends with 8 where its input ends.
                status, said = client(world, carrier, ["sh", "-c", words])
                server.peer.wait_until(lambda: "DATA(8):  second." in server.all())
                good = status == 8 and "DATA(7):  hello." in server.all()
                check("lksctp", f"sctp_darn {style}{carrier}", good, f"{status}: {said[-200:]}")
        with Server(world, carrier, on_terminal("sctp_status -H 127.0.0.1 -P 5007 -l"), "Starting tests"):
            # It does not end by itself.
            watching = "sctp_status -H 127.0.0.1 -P 5008 -h 127.0.0.1 -p 5007 -s -x 3"
            _, said = client(world, carrier, ["timeout", "2", *on_terminal(watching)])
            shown = next((line.split() for line in said.splitlines() if "ESTABLISHED" in line), [])
            good = shown[6:8] == ["10", "10"] and "ACTIVE" in shown
            check("lksctp", f"sctp_status, {carrier}", good, " ".join(shown) or said[-200:])

    at_once(one)


@about("iperf3")
def case_socket_programs_iperf3(world: World) -> None:
    """Small messages, and few streams."""
    needs("iperf3")
    for carrier in CARRIERS:
        for more in (["-l", "1400", "-N", "-n", "1M"], ["--nstreams", "4", "-n", "64K"]):
            listening = ["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", "5201", "--forceflush"]
            with Server(world, carrier, listening, "listening on") as server:
                command = ["iperf3", "--sctp", "-c", "127.0.0.1", "-p", "5201", *more]
                status, said = client(world, carrier, command)
                good = status == 0 and "iperf Done." in said and server.ended()
                world.report.check("iperf3", f"iperf3 {carrier} {' '.join(more)}", good, said[-200:])


@about("sipp")
def case_socket_programs_sipp(world: World) -> None:
    """Three calls."""
    needs("sipp", "script")

    def one(carrier: str) -> None:
        answering = "-sn uas -t s1 -i 127.0.0.1 -p 5060 -nostdin -m 3"
        with Server(world, carrier, on_terminal(f"sipp {answering}"), "Scenario Screen") as server:
            calling = "-sn uac -t s1 -i 127.0.0.1 -p 5061 127.0.0.1:5060 -nostdin -m 3 -r 10"
            status, said = client(world, carrier, ["sipp", *calling.split()])
            good = status == 0 and server.ended()
            world.report.check("sipp", f"SIPp, {carrier}", good, said[-200:])

    at_once(one)


@about("stress-ng")
def case_socket_programs_alone(world: World) -> None:
    """stress-ng, which tries all options, and mtr, which takes a refused connect for an answer."""
    needs("stress-ng", "mtr")
    check = world.report.check

    def one(carrier: str) -> None:
        status, said = client(world, carrier, "stress-ng --sctp 1 -t 1 --metrics".split())
        counted = [line.split() for line in said.splitlines() if "] sctp " in line]
        rounds = int(counted[0][4]) if counted else 0
        good = status == 0 and rounds > 0 and "successful run completed" in said
        check("stress-ng", f"stress-ng --sctp, {carrier}", good, f"{rounds} rounds" if good else said[-300:])
        status, said = client(world, carrier, "mtr --sctp -r -c 1 -G 1 127.0.0.1".split())
        check("mtr", f"mtr --sctp, {carrier}", status == 0 and "0.0%" in said, said[-200:])

    at_once(one)


CASES = [
    case_socket_programs_ncat, case_socket_programs_inherited, case_socket_programs_many,
    case_socket_programs_darn_and_status, case_socket_programs_iperf3, case_socket_programs_sipp,
    case_socket_programs_alone,
]
