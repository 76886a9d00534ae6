"""Programs for the kernel's SCTP that were not made for each other, under `eyas sctp run`: each listens to each."""

import dataclasses
import importlib.util
import shutil
import sys

from ..process import READY_WITHIN, Peer
from ..world import World
from .case import about
from .sctp_meeting import ended, shared, until
from .sctp_pairs import ERLANG_HEARS, OPEN, PYTHON_HEARS, fill
from .sctp_sockets import at_once, needs, on_terminal, under

# What is sent. Who ends at once may be gone before it is accepted, and some listeners then ask in vain who it was: the
# input of who sends ends once the listener has heard.
LINE = "crosswise"
SAYS = f"(echo {LINE}; {{until}} {LINE} {{log}})"


@dataclasses.dataclass(frozen=True)
class Listener:
    """Prints what comes."""

    program: str
    command: list[str]
    # What it says once it listens.
    ready: str
    # How it says what has come.
    hears: str = LINE


@dataclasses.dataclass(frozen=True)
class Speaker:
    """Sends a line, and ends with this status."""

    program: str
    command: str
    status: int = 0


# The port that all of them take.
PORT = 5200
LOOPBACK = {"server": "127.0.0.1", "server2": "127.0.0.2"}
ERLANG = ["env", "ERL_CRASH_DUMP_BYTES=0", "erl", "-noshell", "-eval"]
LISTENERS = [
    Listener("socat", ["socat", "-d", "-d", "-u", f"SCTP-LISTEN:{PORT},bind=127.0.0.1", "STDOUT"], "listening on"),
    Listener("ncat", ["ncat", "--sctp", "-v", "-l", "127.0.0.1", str(PORT), "--sh-exec", "cat >&2"], "Listening on"),
    Listener("sctp_darn", on_terminal(f"sctp_darn -H 127.0.0.1 -P {PORT} -l"), "listening", f":  {LINE}"),
    Listener("sctp_darn -t", on_terminal(f"sctp_darn -t -H 127.0.0.1 -P {PORT} -l"), "listening", f":  {LINE}"),
    Listener("sctp_test", on_terminal(f"sctp_test -H 127.0.0.1 -P {PORT} -l"), "Receiving packets", f"bytes: {LINE}"),
    Listener("gensiot", ["sh", "-c", f"{OPEN} | gensiot -a -p -i 'stdio(self)' sctp,127.0.0.1,{PORT} 2>&1"], str(PORT)),
    Listener("erl", [*ERLANG, fill(ERLANG_HEARS, LOOPBACK)], "listening"),
    Listener("pysctp", [sys.executable, "-c", fill(PYTHON_HEARS, LOOPBACK)], "listening"),
    Listener("java", ["java", "-cp", "{classes}", "Channels", "listen", "127.0.0.1"], "listening"),
]
# These three wait for the end of their input.
TALKS = (
    f"{{ok, S}} = gen_sctp:open([{{active, false}}, binary]), {{ok, A}} = gen_sctp:connect(S, {{127,0,0,1}}, {PORT}, []),"
    f" ok = gen_sctp:send(S, A, 0, <<\"{LINE}\\n\">>), io:get_line([]), eof = io:get_line([]), halt(0)."
)
PYTHON_TALKS = (
    "import sctp, socket, sys; client = sctp.sctpsocket_tcp(socket.AF_INET);"
    f" client.connect((\"127.0.0.1\", {PORT})); client.sctp_send(b\"{LINE}\\n\"); sys.stdin.read(); client.close()"
)
# sctp_darn ends with what it has read last.
SPEAKERS = [
    Speaker("socat", f"{SAYS} | socat -u STDIN SCTP:127.0.0.1:{PORT}"),
    Speaker("ncat", f"{SAYS} | ncat --sctp --send-only 127.0.0.1 {PORT}"),
    Speaker("sctp_darn", f"{SAYS} | sctp_darn -H 127.0.0.1 -P 5211 -h 127.0.0.1 -p {PORT} -s", len(LINE) + 2),
    Speaker("sctp_darn -t", f"{SAYS} | sctp_darn -t -H 127.0.0.1 -P 5212 -h 127.0.0.1 -p {PORT} -s", len(LINE) + 2),
    Speaker("gensiot", f"{SAYS} | gensiot -i 'stdio(self)' sctp,127.0.0.1,{PORT}"),
    Speaker("erl", f"{SAYS} | env ERL_CRASH_DUMP_BYTES=0 erl -noshell -eval '{TALKS}'"),
    Speaker("pysctp", f"{SAYS} | {sys.executable} -c '{PYTHON_TALKS}'"),
    Speaker("java", f"{SAYS} | java -cp {{classes}} Channels say 127.0.0.1 {LINE}"),
]


def is_here(one: Listener | Speaker) -> bool:
    if one.program == "pysctp":
        return importlib.util.find_spec("sctp") is not None
    return shutil.which({"java": "javac"}.get(one.program, one.program.split()[0])) is not None


def meet(world: World, carrier: str, listener: Listener, speaker: Speaker) -> str:
    """What was not as it should be; empty if all was."""
    hearing = [fill(word, shared(world)) for word in listener.command]
    server = Peer(listener.program, under(world, carrier, hearing), world.file("log"))
    try:
        until(lambda: listener.ready in server.all())
        saying = fill(speaker.command, {**shared(world), "log": str(server.log)})
        status, said = ended(under(world, carrier, ["sh", "-c", saying]))
        until(lambda: listener.hears in server.all(), READY_WITHIN / 6)
        if listener.hears not in server.all() or status != speaker.status:
            return f"{speaker.program}: status {status}, {said[-150:]}; heard: {server.all()[-150:]}"
        return ""
    finally:
        server.stop()


@about("sctp")
def case_socket_crosswise(world: World) -> None:
    """A line from each to each."""
    needs("script")
    speakers = [speaker for speaker in SPEAKERS if is_here(speaker)]
    for program in {one.program for one in (*LISTENERS, *SPEAKERS) if not is_here(one)}:
        world.report.skip("sctp", f"crosswise, {program}", "it is not installed")

    def one(carrier: str) -> None:
        for listener in filter(is_here, LISTENERS):
            wrong = [meet(world, carrier, listener, speaker) for speaker in speakers]
            detail = "; ".join(filter(None, wrong)) or ", ".join(speaker.program for speaker in speakers)
            name = f"crosswise, {listener.program} hears all, {carrier}"
            world.report.check(listener.program.split()[0], name, not any(wrong), detail)

    # Before both carriers ask for it.
    shared(world)
    at_once(one)


CASES = [case_socket_crosswise]
