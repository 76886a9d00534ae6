"""The command `eyas` over the kernel's SCTP: in the guest alone, and between it and our own stack.

The guest has a kernel that speaks SCTP, so `eyas` uses its sockets there and opens no raw one. On
our host `eyas` carries SCTP itself.
"""

import contextlib
import hashlib
import json
import pathlib
import subprocess
import time
from collections.abc import Callable

from .captures import fields
from .guest import Guest
from .network import TAPS, SctpNetwork, ours, theirs
from .peers import READY_WITHIN
from .tries import Seen

PORT = 5443
# The guest's kernel has the usual one.
UDP_PORT = 9900
# Bytes of one direction of a pipe.
AMOUNT = 3_000_000
# A command may take this long, in seconds.
LIMIT = 90


class Place:
    """Where `eyas` runs: on our host or in the guest."""

    def __init__(self, name: str, network: SctpNetwork, guest: Guest, eyas: pathlib.Path) -> None:
        self.name = name
        self.network = network
        self.guest = guest
        self.eyas = eyas

    def address(self, six: bool = False) -> str:
        """Where the other one reaches it."""
        return (theirs if self.name == "guest" else ours)(TAPS[0], six)

    def here(self, words: list[str]) -> list[str]:
        """The command on our host."""
        return [str(self.eyas), *words]

    def there(self, words: list[str]) -> str:
        """The command in the guest."""
        return " ".join(["eyas", *words])

    def start(self, words: list[str], log: str, given: str = "/dev/null") -> "Running":
        """Starts the command with the file `given` as its input. Files without a directory are in the one
        that is shared with the guest."""
        return Running(self, words, log, given)


class Running:
    """One command. What it says is in `LOG.out`, what it says aside in `LOG.err`."""

    def __init__(self, place: Place, words: list[str], log: str, given: str) -> None:
        self.share, self.log, self.guest = place.guest.share, log, place.guest
        self.process = self.number = None
        if place.name == "guest":
            source = pathlib.PurePosixPath("/host") / given
            # To be ended by its own id.
            self.number = place.guest.begin(
                f"HOME=/tmp; export HOME; {place.there(words)} <{source} >/host/{log}.out 2>/host/{log}.err & "
                f"echo $! >/host/{log}.pid; wait $!"
            )
            return
        files = (self.share / given, "rb"), (self.share / f"{log}.out", "wb"), (self.share / f"{log}.err", "wb")
        with contextlib.ExitStack() as opened:
            source, out, err = (opened.enter_context(file.open(mode)) for file, mode in files)
            command = place.network.inside(place.network.ours, place.here(words))
            self.process = subprocess.Popen(command, stdin=source, stdout=out, stderr=err)

    def out(self) -> bytes:
        """What it has said so far."""
        file = self.share / f"{self.log}.out"
        return file.read_bytes() if file.exists() else b""

    def aside(self) -> str:
        """What it has said aside."""
        file = self.share / f"{self.log}.err"
        return file.read_text(errors="replace") if file.exists() else ""

    def status(self) -> int | None:
        """Its exit status, once it has ended."""
        if self.process is not None:
            return self.process.poll()
        if not self.guest.has_ended(self.number):
            return None
        return int((self.share / f"{self.number}.status").read_text())

    def end(self, within: float = LIMIT) -> int | None:
        """Waits for its end and gives its status; `None` if there is none in time."""
        deadline = time.monotonic() + within
        while self.status() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.status()

    def until_says(self, word: str) -> None:
        """Waits until it says this, aside or not."""
        deadline = time.monotonic() + READY_WITHIN
        while word not in self.aside() and word.encode() not in self.out():
            if self.status() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no {word!r} from eyas: {self.aside()[-300:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it, if it has not ended."""
        if self.status() is not None:
            return
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
        else:
            self.guest.run(f"kill $(cat /host/{self.log}.pid)")
            self.end(5)


class Command:
    """Who listens, who connects, and the names of the files between them."""

    def __init__(self, network: SctpNetwork, guest: Guest, eyas: pathlib.Path, listener: str, connector: str) -> None:
        self.network, self.guest = network, guest
        self.listener = Place(listener, network, guest, eyas)
        self.connector = Place(connector, network, guest, eyas)
        self.captures: list[pathlib.Path] = []
        self._numbers = 0

    @property
    def name(self) -> str:
        """For people."""
        if self.listener.name == self.connector.name:
            return "its kernel alone"
        return f"{'its kernel' if self.connector.name == 'guest' else 'our stack'} connects"

    def target(self, transports: str = "sctp", port: int = PORT, six: bool = False) -> str:
        """What the connector is told to connect to."""
        alone = self.listener.name == self.connector.name
        host = ("::1" if six else "127.0.0.1") if alone else self.listener.address(six)
        return f"{transports}://[{host}]:{port}" if six else f"{transports}://{host}:{port}"

    def log(self, kind: str) -> str:
        """A name for files that are not there yet."""
        self._numbers += 1
        label = f"{self.listener.name}-{self.connector.name}-{self._numbers}"
        return f"command-{label}-{kind}"

    def given(self, seed: str, amount: int = AMOUNT) -> str:
        """A file with that many bytes to send, always the same for a seed."""
        name = f"given-{seed}-{amount}"
        file = self.guest.share / name
        if not file.exists():
            file.write_bytes(hashlib.shake_256(seed.encode()).digest(amount))
        return name

    def pipe(
        self, there: str, back: str, flags: tuple[str, ...] = (), *, listener: tuple[str, ...] = (),
        connector: tuple[str, ...] = (), six: bool = False,
    ) -> tuple[Running, Running]:
        """A pipe each, with these inputs; gives the listener and the connector at their ends."""
        words = ["--json", "--sctp-udp-port", str(UDP_PORT), "--memory", "none", *flags]
        # The guest may be slow, and nothing else is to win.
        patient = ["--attempt-delay", "5s", "--head-start", "5s"]
        address = f"[::]:{PORT}" if six else f"0.0.0.0:{PORT}"
        a = self.listener.start(["pipe", "--listen", address, *words, *listener], self.log("listens"), back)
        b = None
        try:
            self.until_listens(a)
            b = self.connector.start(["pipe", self.target(six=six), *words, *patient, *connector], self.log("connects"), there)
            b.end()
            a.end()
            return a, b
        finally:
            a.stop()
            if b is not None:
                b.stop()

    def until_listens(self, running: Running) -> None:
        """A pipe says nothing in JSON before it ends: its socket of SCTP tells that it listens."""
        deadline = time.monotonic() + READY_WITHIN
        while not self.is_listening():
            if running.status() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the listener does not listen: {over(running)}")
            time.sleep(0.05)

    def is_listening(self) -> bool:
        """Whether the listener has its socket of SCTP: the kernel's in the guest, raw on our host."""
        if self.listener.name == "guest":
            return f" {PORT} " in self.guest.run("cat /proc/net/sctp/eps")
        command = self.network.inside(self.network.ours, ["cat", "/proc/net/raw", "/proc/net/raw6"])
        return ":0084 " in subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def race(self, target: str, *flags: str) -> dict:
        """What a race comes to."""
        running = self.connector.start(
            ["race", "--json", "--memory", "none", "--sctp-udp-port", str(UDP_PORT), *flags, target], self.log("race")
        )
        try:
            running.end()
        finally:
            running.stop()
        try:
            return json.loads(running.out())
        except ValueError:
            return {"error": {"message": running.aside()[-300:]}, "attempts": []}

    def serve(self, *flags: str) -> Running:
        """`eyas serve`, once it serves."""
        words = ["serve", "--json", "--no-files", "--listen", f"[::]:{PORT}",
                 "--sctp-udp-port", str(UDP_PORT), *flags]
        running = self.listener.start(words, self.log("serve"))
        running.until_says("\n}")
        return running

    def capture(self) -> tuple[pathlib.Path, subprocess.Popen]:
        """What passes between our host and the guest from now on."""
        file = self.guest.share.parent / f"{self.log('packets')}.pcap"
        command = ["tcpdump", "-i", TAPS[0], "-w", str(file), "-U", "--immediate-mode", "-Z", "root", "ip proto 132"]
        tcpdump = subprocess.Popen(
            self.network.inside(self.network.ours, command), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        # It says so once it listens.
        tcpdump.stderr.readline()
        self.captures.append(file)
        return file, tcpdump


def over(running: Running) -> dict:
    """What a pipe says of itself in the end."""
    lines = [line for line in running.aside().splitlines() if line.startswith("{")]
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        said = running.aside() + running.out()[-2000:].decode(errors="replace")
        return {"error": " ".join(said.split())[-300:]}


def exchanged(command: Command, flags: tuple[str, ...], security: str, **more) -> Seen:
    """Bytes both ways arrive as they were sent, and both sides end well."""
    there, back = command.given("there"), command.given("back")
    a, b = command.pipe(there, back, flags, **more)
    same = a.out() == (command.guest.share / there).read_bytes() and b.out() == (command.guest.share / back).read_bytes()
    ways = [(it.get("transport"), it.get("security")) for it in (over(a), over(b))]
    fine = same and (a.status(), b.status()) == (0, 0) and ways == [("sctp", security)] * 2
    return fine, f"listener: {over(a)}, status {a.status()}; connector: {over(b)}, status {b.status()}; same: {same}"


def pipe_bytes(command: Command) -> Seen:
    """Bytes both ways, plain."""
    return exchanged(command, ("--plain",), "none")


def pipe_bytes_over_ipv6(command: Command) -> Seen:
    """The same over IPv6."""
    return exchanged(command, ("--plain",), "none", six=True)


def pipe_tls(command: Command) -> Seen:
    """Bytes both ways under TLS."""
    return exchanged(command, (), "tls", connector=("--insecure",))


def pipe_other_stream(command: Command) -> Seen:
    """Bytes both ways on another pair of streams."""
    return exchanged(command, ("--plain", "--stream", "7"), "none")


def pipe_messages(command: Command) -> Seen:
    """Messages of several sizes with stream and PPID, both ways; on the wire they are what was said."""
    lines = [f"{number}:{'x' * (number * 37 % 3000)}" for number in range(300)]
    for name in ("lines-there", "lines-back"):
        (command.guest.share / name).write_text("".join(f"{name} {line}\n" for line in lines))
    alone = command.listener.name == command.connector.name
    file, tcpdump = (None, None) if alone else command.capture()
    try:
        flags = ("--plain", "--messages", "--stream", "7", "--ppid", "51")
        a, b = command.pipe("lines-there", "lines-back", flags)
    finally:
        if tcpdump is not None:
            tcpdump.terminate()
            tcpdump.wait()
    share = command.guest.share
    same = a.out() == (share / "lines-there").read_bytes() and b.out() == (share / "lines-back").read_bytes()
    detail = f"listener: {over(a)}, connector: {over(b)}, same: {same}"
    fine = same and (a.status(), b.status()) == (0, 0)
    if file is not None:
        seen = set(fields(file, "sctp.data_sid", "sctp.data_payload_proto_id", where="sctp.data_sid"))
        fine, detail = fine and seen == {("0x0007", "51")}, f"{detail}; on the wire: {sorted(seen)}"
    return fine, detail


def race(command: Command) -> Seen:
    """A race lists SCTP as working, plain and under TLS, and the listener has no raw socket."""
    found = []
    for flag in ("--plain", "--insecure"):
        serving = command.serve(*((flag,) if flag == "--plain" else ()))
        try:
            said = json.loads(serving.out())
            answers = [command.race(command.target("sctp+tcp", six=six), "--all", flag) for six in (False, True)]
            raw = command.guest.run("cat /proc/net/raw /proc/net/raw6")
        finally:
            serving.stop()
        for answer in answers:
            works = {it["transport"] for it in answer["attempts"] if it["outcome"] in ("won", "lost")}
            found.append(f"{flag}: {', '.join(sorted(works))}")
            if not works >= {"sctp", "sctp-udp", "tcp"}:
                return False, f"{found}: {summary(answer)}"
        if not said["sctp_directly"] or ":0084 " in raw:
            return False, f"served directly: {said['sctp_directly']}; raw sockets in the guest: {raw}"
    return True, "; ".join(found)


def fetch(command: Command) -> Seen:
    """HTTP/1.1 over SCTP, much of it."""
    serving = command.serve("--plain")
    words = ["--prefer", "sctp", "--memory", "none", "--sctp-udp-port", str(UDP_PORT), "-v"]
    try:
        running = command.connector.start(["get", *words, f"{command.target('http')}/bytes/1000000"], command.log("get"))
        running.end()
        running.stop()
    finally:
        serving.stop()
    fine = running.status() == 0 and len(running.out()) == 1_000_000
    return fine, f"status {running.status()}, {len(running.out())} bytes: {running.aside()[-400:]}"


def refused_port(command: Command) -> Seen:
    """A port at which nobody listens is refused at once."""
    start = time.monotonic()
    answer = command.race(command.target(port=PORT + 1), "--plain", "--connect-timeout", "8s")
    took = time.monotonic() - start
    attempts = [it for it in answer.get("attempts", []) if it["transport"] == "sctp"]
    refused = bool(attempts) and all(it["outcome"] == "failed" and "refused" in it["reason"].lower() for it in attempts)
    return refused and took < 8, f"{took:.1f} s; {summary(answer)}"


def silence(command: Command) -> Seen:
    """Where SCTP gets no answer, TCP is used; where nothing answers, the race gives up in time."""
    serving = command.serve("--plain")
    try:
        command.network.lose(TAPS[0], 1)
        answer = command.race(command.target("sctp+tcp"), "--plain")
        command.network.heal()
        command.network.cut(TAPS[0])
        nothing = command.race(command.target("sctp+tcp"), "--plain", "--connect-timeout", "3s")
    finally:
        command.network.heal()
        serving.stop()
    winner = (answer.get("winner") or {}).get("transport")
    code = (nothing.get("error") or {}).get("exit_code")
    return (winner, code) == ("tcp", 28), f"{summary(answer)}; then {nothing.get('error')}"


def summary(answer: dict) -> str:
    """A race in a few words."""
    attempts = [f"{it['transport']} {it['address']} {it['outcome']} ({it['reason']})" for it in answer.get("attempts", [])]
    return "; ".join([*attempts, (answer.get("error") or {}).get("message", "")])


EVERYWHERE: list[Callable[[Command], Seen]] = [
    race, fetch, pipe_bytes, pipe_bytes_over_ipv6, pipe_tls, pipe_other_stream, pipe_messages, refused_port,
]
# Between two hosts there is a network that can fail.
BETWEEN_HOSTS = [silence]
# Who listens and who connects.
PAIRS = (("guest", "guest"), ("guest", "ours"), ("ours", "guest"))
# For the table: our own stack connects to the kernel's, or is connected to.
ARROWS = {PAIRS[0]: "alone", PAIRS[1]: "→", PAIRS[2]: "←"}
