"""Programs for the kernel's SCTP that were not written for each other, under `eyas sctp run`: every listener with every
client."""

import dataclasses
import importlib.util
import shutil
import sys

from ..process import READY_TIMEOUT, Peer
from ..world import World
from .case import about
from .sctp_pair_runs import common_values, run_to_end, wait_until
from .sctp_pairs import ERLANG_LISTENER, OPEN, PYTHON_LISTENER, fill
from .sctp_sockets import in_parallel, on_terminal, require, sctp_run

# The message. A client that ends at once may be gone before it is accepted, and some listeners then fail to query its
# address; so the client's input ends once the listener has printed the message.
LINE = "crosswise"
INPUT = f"(echo {LINE}; {{wait_for}} {LINE} {{log}})"


@dataclasses.dataclass(frozen=True)
class Listener:
    """A program that prints what it receives."""

    program: str
    command: list[str]
    # What it prints once it listens.
    ready: str
    # How it prints the message.
    prints: str = LINE


@dataclasses.dataclass(frozen=True)
class Client:
    """A program that sends a line and ends with this status."""

    program: str
    command: str
    status: int = 0


# The port of all listeners.
PORT = 5200
LOOPBACK = {"server": "127.0.0.1", "server2": "127.0.0.2"}
# It stays until its client has gone: sctp_darn asks for the peer's addresses after it has sent, and ends with EINVAL if
# the association has ended by then.
STAYING_PYTHON_LISTENER = f"{PYTHON_LISTENER}server.sctp_recv(1000)\n"
ERLANG = ["env", "ERL_CRASH_DUMP_BYTES=0", "erl", "-noshell", "-eval"]
LISTENERS = [
    Listener("socat", ["socat", "-d", "-d", "-u", f"SCTP-LISTEN:{PORT},bind=127.0.0.1", "STDOUT"], "listening on"),
    Listener("ncat", ["ncat", "--sctp", "-v", "-l", "127.0.0.1", str(PORT), "--sh-exec", "cat >&2"], "Listening on"),
    Listener("sctp_darn", on_terminal(f"sctp_darn -H 127.0.0.1 -P {PORT} -l"), "listening", f":  {LINE}"),
    Listener("sctp_darn -t", on_terminal(f"sctp_darn -t -H 127.0.0.1 -P {PORT} -l"), "listening", f":  {LINE}"),
    Listener("sctp_test", on_terminal(f"sctp_test -H 127.0.0.1 -P {PORT} -l"), "Receiving packets", f"bytes: {LINE}"),
    Listener("gensiot", ["sh", "-c", f"{OPEN} | gensiot -a -p -i 'stdio(self)' sctp,127.0.0.1,{PORT} 2>&1"], str(PORT)),
    Listener("erl", [*ERLANG, fill(ERLANG_LISTENER, LOOPBACK)], "listening"),
    Listener("pysctp", [sys.executable, "-c", fill(STAYING_PYTHON_LISTENER, LOOPBACK)], "listening"),
    Listener("java", ["java", "-cp", "{classes}", "Channels", "listen", "127.0.0.1"], "listening"),
]
# These three wait for the end of their input.
ERLANG_CLIENT = (
    f"{{ok, S}} = gen_sctp:open([{{active, false}}, binary]), {{ok, A}} = gen_sctp:connect(S, {{127,0,0,1}}, {PORT}, []),"
    f" ok = gen_sctp:send(S, A, 0, <<\"{LINE}\\n\">>), io:get_line([]), eof = io:get_line([]), halt(0)."
)
PYTHON_CLIENT = (
    "import sctp, socket, sys; client = sctp.sctpsocket_tcp(socket.AF_INET);"
    f" client.connect((\"127.0.0.1\", {PORT})); client.sctp_send(b\"{LINE}\\n\"); sys.stdin.read(); client.close()"
)
# The exit status of sctp_darn is the length of what it read last.
CLIENTS = [
    Client("socat", f"{INPUT} | socat -u STDIN SCTP:127.0.0.1:{PORT}"),
    Client("ncat", f"{INPUT} | ncat --sctp --send-only 127.0.0.1 {PORT}"),
    Client("sctp_darn", f"{INPUT} | sctp_darn -H 127.0.0.1 -P 5211 -h 127.0.0.1 -p {PORT} -s", len(LINE) + 2),
    Client("sctp_darn -t", f"{INPUT} | sctp_darn -t -H 127.0.0.1 -P 5212 -h 127.0.0.1 -p {PORT} -s", len(LINE) + 2),
    Client("gensiot", f"{INPUT} | gensiot -i 'stdio(self)' sctp,127.0.0.1,{PORT}"),
    Client("erl", f"{INPUT} | env ERL_CRASH_DUMP_BYTES=0 erl -noshell -eval '{ERLANG_CLIENT}'"),
    Client("pysctp", f"{INPUT} | {sys.executable} -c '{PYTHON_CLIENT}'"),
    Client("java", f"{INPUT} | java -cp {{classes}} Channels say 127.0.0.1 {LINE}"),
]


def is_installed(program:  Listener | Client) -> bool:
    if program.program == "pysctp":
        return importlib.util.find_spec("sctp") is not None
    return shutil.which({"java": "javac"}.get(program.program, program.program.split()[0])) is not None


def run_pair(world: World, carrier: str, listener: Listener, client: Client) -> str:
    """Returns what went wrong; empty if nothing did."""
    listening = [fill(word, common_values(world)) for word in listener.command]
    server = Peer(listener.program, sctp_run(world, carrier, listening), world.file("log"))
    try:
        wait_until(lambda: listener.ready in server.output())
        sending = fill(client.command, {**common_values(world), "log": str(server.log)})
        status, output = run_to_end(sctp_run(world, carrier, ["sh", "-c", sending]))
        wait_until(lambda: listener.prints in server.output(), READY_TIMEOUT / 6)
        if listener.prints not in server.output() or status != client.status:
            return f"{client.program}: status {status}, {output[-150:]}; listener: {server.output()[-150:]}"
        return ""
    finally:
        server.stop()


@about("sctp")
def case_socket_crosswise(world: World) -> None:
    """A line from every client to every listener."""
    require("script")
    clients = [client for client in CLIENTS if is_installed(client)]
    for program in {one.program for one in (*LISTENERS, *CLIENTS) if not is_installed(one)}:
        world.report.skip("sctp", f"crosswise, {program}", "it is not installed")

    def check(carrier: str) -> None:
        for listener in filter(is_installed, LISTENERS):
            wrong = [run_pair(world, carrier, listener, client) for client in clients]
            detail = "; ".join(filter(None, wrong)) or ", ".join(client.program for client in clients)
            name = f"crosswise, {listener.program} with all clients, {carrier}"
            world.report.check(listener.program.split()[0], name, not any(wrong), detail)

    # Computed once, before both carriers need it.
    common_values(world)
    in_parallel(check)


CASES = [case_socket_crosswise]
