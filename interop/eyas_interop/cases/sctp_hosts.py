"""Programs for the kernel's SCTP, each with itself under `eyas sctp run`, on two hosts; and through a network that loses."""

import dataclasses
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable

from ..network import NoNamespaces, sysctl
from ..process import READY_WITHIN, Peer
from ..report import Skip
from ..sctp.network import CABLES, SctpNetwork, ours, theirs
from ..world import World
from .case import about
from .sctp_programs import PING, at_once
from .sctp_sockets import on_terminal, under

# The one that connects may run this long, in seconds.
WITHIN = 60
# One in twenty packets is lost on the way there, and on the way back.
LOSSY = ["--loss", "5%", "--delay", "40ms", "--quiet"]


@dataclasses.dataclass(frozen=True)
class Pair:
    """Who listens, who connects, and what they then say. Addresses stand in braces."""

    name: str
    peer: str
    listens: str
    ready: str
    connects: str
    # What the listener says in the end, and what the one that connects.
    heard: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    # None: whatever it is.
    status: int | None = 0
    # lksctp's programs keep what they print to themselves for long, unless on a terminal.
    terminal: bool = False
    # TCP controls it, whose port both carriers would take.
    alone: bool = False

    def missing(self) -> list[str]:
        words = f"{self.listens} {self.connects}".replace("(", " ").split()
        return [word for word in words if word in PROGRAMS and shutil.which(word) is None]


PROGRAMS = (
    "socat", "ncat", "sctp_test", "sctp_darn", "sctp_status", "iperf3", "sipp", "netperfmeter", "gensiot", "mtr", "ITGRecv",
)
SOCAT = "socat -d -d -u SCTP-LISTEN:5000 STDOUT"
IPERF = "iperf3 -s -1 -p 5201 --forceflush"
EVENTS = ("COMMUNICATION_UP", "SHUTDOWN_COMPLETE")

MESSAGES = Pair(
    "sctp_test -T", "lksctp", "sctp_test -H {server} -P 5003 -l -T", "Receiving packets",
    "sctp_test -H {client} -P 5004 -h {server} -p 5003 -s -x 2 -c 0 -T", terminal=True,
    heard=("20 x Data 1 bytes", *EVENTS, "No association is present now"),
)
BULK = Pair(
    "iperf3 -R -P 2", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 -t 2 -R -P 2",
    said=("iperf Done.",), alone=True,
)
CALLS = Pair(
    "SIPp", "sipp", "sipp -sn uas -t s1 -i {server} -p 5060 -nostdin -m 3", "Scenario Screen",
    "sipp -sn uac -t s1 -i {client} -p 5061 {server}:5060 -nostdin -m 3 -r 10", terminal=True,
)
ON_TWO_HOSTS = [
    Pair("socat", "socat", SOCAT, "listening on", "echo hello | socat -u STDIN SCTP:{server}:5000", heard=("hello",)),
    Pair(
        "socat, fork, nofork", "socat", "socat -d -d SCTP-LISTEN:5001,fork EXEC:/bin/cat,nofork", "listening on",
        f"{PING} | socat -t 1 - SCTP:{{server}}:5001", said=("ping",),
    ),
    Pair(
        "ncat", "ncat", "sleep 2 | ncat --sctp -v -l {server} 5002", "Listening on",
        "echo hello | ncat --sctp --send-only {server} 5002", heard=("hello",),
    ),
    Pair(
        "ncat -6", "ncat", "sleep 2 | ncat --sctp -6 -v -l {server6} 5003", "Listening on",
        "echo hello | ncat --sctp -6 --send-only {server6} 5003", heard=("hello",),
    ),
    Pair(
        "ncat -k -e", "ncat", "ncat --sctp -v -k -l {server} 5004 -e /bin/cat", "Listening on",
        f"{PING} | ncat --sctp {{server}} 5004 && {PING} | ncat --sctp {{server}} 5004", said=("2 x ping",),
    ),
    Pair(
        "ncat, refused", "ncat", SOCAT, "listening on", "ncat --sctp {server} 5999", said=("Connection refused",), status=1,
    ),
    MESSAGES,
    Pair(
        "sctp_test", "lksctp", "sctp_test -H {server} -P 5005 -l", "Receiving packets",
        "sctp_test -H {client} -P 5006 -h {server} -p 5005 -s -x 2 -c 0", terminal=True,
        heard=("20 x Data 1 bytes", *EVENTS),
    ),
    Pair(
        "sctp_test -B, -C twice", "lksctp", "sctp_test -H {server} -B {server2} -P 5007 -l", "Receiving packets",
        "sctp_test -H {client} -B {client2} -P 5008 -C {server} -C {server2} -p 5007 -s -x 2 -c 0", terminal=True,
        heard=("20 x Data 1 bytes", *EVENTS),
    ),
    *(
        Pair(
            f"sctp_darn {style}".strip(), "lksctp", f"sctp_darn {style} -H {{server}} -P 5009 -l", "listening",
            f"(printf 'hello\\nsecond\\n'; sleep 0.5) | sctp_darn {style} -H {{client}} -P 5010 -h {{server}} -p 5009 -s",
            heard=("DATA(7):  hello.", "DATA(8):  second."), status=8, terminal=True,
        )
        for style in ("", "-t")
    ),
    Pair(
        "sctp_status", "lksctp", "sctp_status -H {server} -P 5011 -l", "Starting tests",
        "timeout 2 script -qfec 'sctp_status -H {client} -P 5012 -h {server} -p 5011 -s -x 3' /dev/null",
        said=("ESTABLISHED", "ACTIVE"), status=None, terminal=True,
    ),
    Pair("iperf3", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 -t 2", said=("iperf Done.",), alone=True),
    BULK,
    Pair(
        "iperf3 -l 1400 -N", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 -l 1400 -N -n 1M",
        said=("iperf Done.",), alone=True,
    ),
    Pair(
        "iperf3 --nstreams 4", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 --nstreams 4 -n 64K",
        said=("iperf Done.",), alone=True,
    ),
    CALLS,
    Pair("mtr", "mtr", SOCAT, "listening on", "mtr --sctp -r -c 1 -G 1 {server}", said=("0.0%",)),
    Pair(
        "gensiot", "gensio", "sleep 20 | gensiot -a -i 'stdio(self)' sctp,{server},5260 2>&1", "",
        "sleep 2; (echo hello gensio; sleep 1) | gensiot -i 'stdio(self)' sctp,{server},5260", heard=("hello gensio",),
    ),
    Pair(
        "netperfmeter", "netperfm", "stdbuf -oL netperfmeter 5250", "Passive Mode",
        "netperfmeter {server}:5250 -runtime=1 -sctp const10:const1200:const5:const300", said=("* Bytes:",), alone=True,
    ),
    Pair(
        "D-ITG", "d-itg", "stdbuf -oL ITGRecv", "Press Ctrl-C", "ITGSend -a {server} -T SCTP 0 1 -t 1000 -C 50 -c 500 -rp 5252",
        heard=("Finish on SCTP port : 5252",), said=("Finished sending",), alone=True,
    ),
]


class TwoHosts:
    """Two cables between them."""

    def __init__(self) -> None:
        try:
            self.network = SctpNetwork()
        except NoNamespaces as missing:
            raise Skip(str(missing)) from missing
        # A port of TCP that a program had is free at once for the next one.
        sysctl(self.network.theirs, "net.ipv4.tcp_max_tw_buckets=0")
        self.addresses = {
            "server": theirs(CABLES[0]), "server2": theirs(CABLES[1]), "server6": theirs(CABLES[0], six=True),
            "client": ours(CABLES[0]), "client2": ours(CABLES[1]),
        }

    def meet(self, world: World, pair: Pair, carrier: str) -> tuple[bool, str]:
        """Whether both say what they should."""
        listening, connecting = (shell(words, self.addresses) for words in (pair.listens, pair.connects))
        listening = on_terminal(shlex.join(listening)) if pair.terminal else listening
        listening = self.network.inside(self.network.theirs, under(world, carrier, listening))
        connecting = self.network.inside(self.network.ours, under(world, carrier, connecting))
        server = Peer(pair.name, listening, world.file("log"))
        try:
            heard = lambda: server.log.read_text(errors="replace")  # noqa: E731
            until(lambda: pair.ready in heard())
            status, said = ended(connecting)
            until(lambda: all_in(pair.heard, heard()))
        finally:
            server.stop()
        return judge(pair, status, said, heard())

    def remove(self) -> None:
        self.network.remove()


def lossy(world: World, pair: Pair, carrier: str) -> tuple[bool, str]:
    """The same through `eyas netem run`, whose addresses it finds in its environment."""
    addresses = {"server": "198.18.1.2", "client": "198.18.1.1"}
    listening, connecting = (shell(words, addresses) for words in (pair.listens, pair.connects))
    listening = on_terminal(shlex.join(listening)) if pair.terminal else listening
    log = world.file("log")
    log.touch()
    server = f"exec {shlex.join(under(world, carrier, listening))} > {log} 2>&1"
    ready = f"until grep -q {shlex.quote(pair.ready)} {log}; do sleep 0.1; done; exec "
    client = ready + shlex.join(under(world, carrier, connecting))
    # What it says last is to be heard before both are ended.
    client = f"({client}); status=$?; sleep 2; exit $status"
    command = [str(world.eyas_binary), "netem", "run", *LOSSY, "--server", server, "--", "sh", "-c", client]
    status, said = ended(command)
    return judge(pair, status, said, log.read_text(errors="replace"))


def shell(words: str, addresses: dict[str, str]) -> list[str]:
    """A command of the shell; one alone takes its place, so that who ends it ends the program."""
    alone = not any(sign in words for sign in "|;&")
    return ["sh", "-c", ("exec " if alone else "") + words.format(**addresses)]


def until(true: Callable[[], bool], within: float = READY_WITHIN) -> None:
    """Waits, but not for ever."""
    deadline = time.monotonic() + within
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)


def ended(command: list[str]) -> tuple[int, str]:
    """The status and all output of one that ends by itself."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=WITHIN, check=False,
        )
    except subprocess.TimeoutExpired as late:
        return -1, f"no end within {WITHIN} s: {late.stdout}"
    return done.returncode, done.stdout


def all_in(wanted: tuple[str, ...], text: str) -> bool:
    """Whether all of that is there; `2 x word` as often as it says, and not more often."""
    counted = [word.split(" x ", 1) if " x " in word else (None, word) for word in wanted]
    return all(text.count(word) == int(count) if count else word in text for count, word in counted)


def judge(pair: Pair, status: int, said: str, heard: str) -> tuple[bool, str]:
    good = pair.status in (None, status) and all_in(pair.said, said) and all_in(pair.heard, heard)
    return good, "" if good else f"status {status}: {said[-250:]}; the listener: {heard[-250:]}"


def tell(world: World, where: str, pair: Pair, meet: Callable[[Pair, str], tuple[bool, str]]) -> None:
    """A line for each carrier."""
    if missing := pair.missing():
        world.report.skip(pair.peer, f"{where}, {pair.name}", f"{missing[0]} is not installed")
        return

    def one(carrier: str) -> None:
        good, detail = meet(pair, carrier)
        world.report.check(pair.peer, f"{where}, {pair.name}, {carrier}", good, detail)

    if pair.alone:
        one("--udp")
        one("--ip")
    else:
        at_once(one)


@about("sctp")
def case_socket_hosts(world: World) -> None:
    """All of them, from one host to the other."""
    hosts = TwoHosts()
    try:
        for pair in ON_TWO_HOSTS:
            tell(world, "two hosts", pair, lambda pair, carrier: hosts.meet(world, pair, carrier))
    finally:
        hosts.remove()


@about("sctp")
def case_socket_hosts_lossy(world: World) -> None:
    """One in twenty packets is lost, each way."""
    for pair in (MESSAGES, BULK, CALLS):
        tell(world, "5% lost", pair, lambda pair, carrier: lossy(world, pair, carrier))


CASES = [case_socket_hosts, case_socket_hosts_lossy]
