"""Programs for the kernel's SCTP that were not made for each other, under `eyas sctp run`: each listens to each."""

import dataclasses
import shutil
import time

from ..process import READY_WITHIN, Peer
from ..world import World
from .case import about
from .sctp_hosts import ended, until
from .sctp_programs import at_once
from .sctp_signalling import HEARING, erlang
from .sctp_sockets import needs, on_terminal, under

# What is sent. Who ends at once may be gone before it is accepted, and some listeners then ask in vain who it was.
LINE = "crosswise"
SAYS = f"(echo {LINE}; sleep 0.4)"


@dataclasses.dataclass(frozen=True)
class Listener:
    """Prints what comes."""

    program: str
    command: list[str]
    # What it says once it listens; or so long it takes, in seconds.
    ready: str | float
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
LISTENERS = [
    Listener("socat", ["socat", "-d", "-d", "-u", f"SCTP-LISTEN:{PORT},bind=127.0.0.1", "STDOUT"], "listening on"),
    Listener("ncat", ["ncat", "--sctp", "-v", "-l", "127.0.0.1", str(PORT), "--sh-exec", "cat >&2"], "Listening on"),
    Listener("sctp_darn", on_terminal(f"sctp_darn -H 127.0.0.1 -P {PORT} -l"), "listening", f":  {LINE}"),
    Listener("sctp_darn -t", on_terminal(f"sctp_darn -t -H 127.0.0.1 -P {PORT} -l"), "listening", f":  {LINE}"),
    Listener("sctp_test", on_terminal(f"sctp_test -H 127.0.0.1 -P {PORT} -l"), "Receiving packets", f"bytes: {LINE}"),
    Listener("gensiot", ["sh", "-c", f"sleep 30 | gensiot -a -i 'stdio(self)' sctp,127.0.0.1,{PORT}"], 2.0),
    Listener("erl", erlang(HEARING), "listening"),
]
TALKS = (
    f"{{ok, S}} = gen_sctp:open([{{active, false}}, binary]), {{ok, A}} = gen_sctp:connect(S, {{127,0,0,1}}, {PORT}, []),"
    f" ok = gen_sctp:send(S, A, 0, <<\"{LINE}\\n\">>), timer:sleep(500), halt(0)."
)
# sctp_darn ends with what it has read last.
SPEAKERS = [
    Speaker("socat", f"{SAYS} | socat -u STDIN SCTP:127.0.0.1:{PORT}"),
    Speaker("ncat", f"{SAYS} | ncat --sctp --send-only 127.0.0.1 {PORT}"),
    Speaker("sctp_darn", f"{SAYS} | sctp_darn -H 127.0.0.1 -P 5201 -h 127.0.0.1 -p {PORT} -s", len(LINE) + 2),
    Speaker("sctp_darn -t", f"{SAYS} | sctp_darn -t -H 127.0.0.1 -P 5202 -h 127.0.0.1 -p {PORT} -s", len(LINE) + 2),
    Speaker("gensiot", f"{SAYS} | gensiot -i 'stdio(self)' sctp,127.0.0.1,{PORT}"),
    Speaker("erl", f"erl -noshell -eval '{TALKS}'"),
]


def meet(world: World, carrier: str, listener: Listener, speaker: Speaker) -> str:
    """What was not as it should be; empty if all was."""
    server = Peer(listener.program, under(world, carrier, listener.command), world.file("log"))
    try:
        heard = lambda: server.log.read_text(errors="replace")  # noqa: E731
        if isinstance(listener.ready, float):
            time.sleep(listener.ready)
        else:
            until(lambda: listener.ready in heard())
        status, said = ended(under(world, carrier, ["sh", "-c", speaker.command]))
        until(lambda: listener.hears in heard(), READY_WITHIN / 6)
        if listener.hears not in heard() or status != speaker.status:
            return f"{speaker.program}: status {status}, {said[-150:]}; heard: {heard()[-150:]}"
        return ""
    finally:
        server.stop()


@about("sctp")
def case_socket_crosswise(world: World) -> None:
    """A line from each to each."""
    needs("script")
    here = lambda one: shutil.which(one.program.split()[0]) is not None  # noqa: E731
    speakers = [speaker for speaker in SPEAKERS if here(speaker)]
    for program in {one.program for one in (*LISTENERS, *SPEAKERS) if not here(one)}:
        world.report.skip("sctp", f"crosswise, {program}", "it is not installed")

    def one(carrier: str) -> None:
        for listener in filter(here, LISTENERS):
            wrong = [meet(world, carrier, listener, speaker) for speaker in speakers]
            detail = "; ".join(filter(None, wrong)) or ", ".join(speaker.program for speaker in speakers)
            name = f"crosswise, {listener.program} hears all, {carrier}"
            world.report.check(listener.program.split()[0], name, not any(wrong), detail)

    at_once(one)


CASES = [case_socket_crosswise]
