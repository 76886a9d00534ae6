"""The command `eyas` over the kernel's SCTP: within the guest, and between the guest and our own stack.

The guest's kernel supports SCTP, so `eyas` uses SCTP sockets there and opens no raw ones. On our host
`eyas` uses its own stack.
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
from .peers import READY_TIMEOUT
from .retry import Result

PORT = 5443
# The guest's kernel uses the default port.
UDP_PORT = 9900
# Bytes of one direction of a pipe.
AMOUNT = 3_000_000
# The time limit of a command, in seconds.
LIMIT = 90


class Host:
    """A host on which `eyas` runs: ours or the guest."""

    def __init__(self, name: str, network: SctpNetwork, guest: Guest, eyas: pathlib.Path) -> None:
        self.name = name
        self.network = network
        self.guest = guest
        self.eyas = eyas

    def address(self, ipv6: bool = False) -> str:
        """Returns its address for the other host."""
        return (theirs if self.name == "guest" else ours)(TAPS[0], ipv6)

    def command(self, words: list[str]) -> list[str]:
        """Returns the command line on our host."""
        return [str(self.eyas), *words]

    def guest_command(self, words: list[str]) -> str:
        """Returns the command line in the guest."""
        return " ".join(["eyas", *words])

    def start(self, words: list[str], log: str, stdin: str = "/dev/null") -> "Running":
        """Starts the command with the file `stdin` as its input. Relative file names are in the directory
        shared with the guest."""
        return Running(self, words, log, stdin)


class Running:
    """A running command, with standard output in `LOG.out` and standard error in `LOG.err`."""

    def __init__(self, host: Host, words: list[str], log: str, stdin: str) -> None:
        self.share, self.log, self.guest = host.guest.share, log, host.guest
        self.process = self.number = None
        if host.name == "guest":
            source = pathlib.PurePosixPath("/host") / stdin
            # Its process id is stored, to end it by that.
            self.number = host.guest.begin(
                f"HOME=/tmp; export HOME; {host.guest_command(words)} <{source} >/host/{log}.out 2>/host/{log}.err & "
                f"echo $! >/host/{log}.pid; wait $!"
            )
            return
        files = (self.share / stdin, "rb"), (self.share / f"{log}.out", "wb"), (self.share / f"{log}.err", "wb")
        with contextlib.ExitStack() as opened:
            source, out, err = (opened.enter_context(file.open(mode)) for file, mode in files)
            command = host.network.inside(host.network.ours, host.command(words))
            self.process = subprocess.Popen(command, stdin=source, stdout=out, stderr=err)

    def stdout(self) -> bytes:
        """Returns its standard output so far."""
        file = self.share / f"{self.log}.out"
        return file.read_bytes() if file.exists() else b""

    def stderr(self) -> str:
        """Returns its standard error so far."""
        file = self.share / f"{self.log}.err"
        return file.read_text(errors="replace") if file.exists() else ""

    def status(self) -> int | None:
        """Returns its exit status once it has ended."""
        if self.process is not None:
            return self.process.poll()
        if not self.guest.has_ended(self.number):
            return None
        return int((self.share / f"{self.number}.status").read_text())

    def end(self, within: float = LIMIT) -> int | None:
        """Waits for its end and returns its status; `None` if it does not end in time."""
        deadline = time.monotonic() + within
        while self.status() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.status()

    def wait_for_output(self, word: str) -> None:
        """Waits until it has printed this, on standard output or error."""
        deadline = time.monotonic() + READY_TIMEOUT
        while word not in self.stderr() and word.encode() not in self.stdout():
            if self.status() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no {word!r} from eyas: {self.stderr()[-300:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it if it still runs."""
        if self.status() is not None:
            return
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
        else:
            self.guest.run(f"kill $(cat /host/{self.log}.pid)")
            self.end(5)


class Command:
    """The listener's host, the connector's host, and the files of their runs."""

    def __init__(self, network: SctpNetwork, guest: Guest, eyas: pathlib.Path, listener: str, connector: str) -> None:
        self.network, self.guest = network, guest
        self.listener = Host(listener, network, guest, eyas)
        self.connector = Host(connector, network, guest, eyas)
        self.captures: list[pathlib.Path] = []
        self._numbers = 0

    @property
    def name(self) -> str:
        """Returns the name for reports."""
        if self.listener.name == self.connector.name:
            return "its kernel alone"
        return f"{'its kernel' if self.connector.name == 'guest' else 'our stack'} connects"

    def target(self, transports: str = "sctp", port: int = PORT, ipv6: bool = False) -> str:
        """Returns the connector's target."""
        same_host = self.listener.name == self.connector.name
        host = ("::1" if ipv6 else "127.0.0.1") if same_host else self.listener.address(ipv6)
        return f"{transports}://[{host}]:{port}" if ipv6 else f"{transports}://{host}:{port}"

    def log(self, kind: str) -> str:
        """Returns a name for files that do not exist yet."""
        self._numbers += 1
        label = f"{self.listener.name}-{self.connector.name}-{self._numbers}"
        return f"command-{label}-{kind}"

    def input(self, seed: str, amount: int = AMOUNT) -> str:
        """Returns a file with that many bytes to send, which depend only on the seed."""
        name = f"input-{seed}-{amount}"
        file = self.guest.share / name
        if not file.exists():
            file.write_bytes(hashlib.shake_256(seed.encode()).digest(amount))
        return name

    def pipe(
        self, forward: str, backward: str, flags: tuple[str, ...] = (), *, listener: tuple[str, ...] = (),
        connector: tuple[str, ...] = (), ipv6: bool = False,
    ) -> tuple[Running, Running]:
        """Runs a listening and a connecting pipe with these inputs; returns both once they have ended."""
        words = ["--json", "--sctp-udp-port", str(UDP_PORT), "--memory", "none", *flags]
        # The guest may be slow, and no other transport may win.
        patient = ["--attempt-delay", "5s", "--head-start", "5s"]
        address = f"[::]:{PORT}" if ipv6 else f"0.0.0.0:{PORT}"
        a = self.listener.start(["pipe", "--listen", address, *words, *listener], self.log("listens"), backward)
        b = None
        try:
            self.wait_until_listening(a)
            b = self.connector.start(["pipe", self.target(ipv6=ipv6), *words, *patient, *connector], self.log("connects"), forward)
            b.end()
            a.end()
            return a, b
        finally:
            a.stop()
            if b is not None:
                b.stop()

    def wait_until_listening(self, running: Running) -> None:
        """Waits for the listener's SCTP socket: with --json a pipe prints nothing before it ends."""
        deadline = time.monotonic() + READY_TIMEOUT
        while not self.is_listening():
            if running.status() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the listener does not listen: {summary_of_pipe(running)}")
            time.sleep(0.05)

    def is_listening(self) -> bool:
        """Returns whether the listener has its SCTP socket: the kernel's in the guest, a raw one on our host."""
        if self.listener.name == "guest":
            return f" {PORT} " in self.guest.run("cat /proc/net/sctp/eps")
        command = self.network.inside(self.network.ours, ["cat", "/proc/net/raw", "/proc/net/raw6"])
        return ":0084 " in subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def race(self, target: str, *flags: str) -> dict:
        """Runs a race and returns its result."""
        running = self.connector.start(
            ["race", "--json", "--memory", "none", "--sctp-udp-port", str(UDP_PORT), *flags, target], self.log("race")
        )
        try:
            running.end()
        finally:
            running.stop()
        try:
            return json.loads(running.stdout())
        except ValueError:
            return {"error": {"message": running.stderr()[-300:]}, "attempts": []}

    def serve(self, *flags: str) -> Running:
        """Starts `eyas serve` and waits until it serves."""
        words = ["serve", "--json", "--no-files", "--listen", f"[::]:{PORT}",
                 "--sctp-udp-port", str(UDP_PORT), *flags]
        running = self.listener.start(words, self.log("serve"))
        running.wait_for_output("\n}")
        return running

    def capture(self) -> tuple[pathlib.Path, subprocess.Popen]:
        """Starts a capture of the packets between our host and the guest."""
        file = self.guest.share.parent / f"{self.log('packets')}.pcap"
        command = ["tcpdump", "-i", TAPS[0], "-w", str(file), "-U", "--immediate-mode", "-Z", "root", "ip proto 132"]
        tcpdump = subprocess.Popen(
            self.network.inside(self.network.ours, command), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        # It prints a line once it captures.
        tcpdump.stderr.readline()
        self.captures.append(file)
        return file, tcpdump


def summary_of_pipe(running: Running) -> dict:
    """Returns the summary that a pipe prints at its end."""
    lines = [line for line in running.stderr().splitlines() if line.startswith("{")]
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        output = running.stderr() + running.stdout()[-2000:].decode(errors="replace")
        return {"error": " ".join(output.split())[-300:]}


def exchange(command: Command, flags: tuple[str, ...], security: str, **more) -> Result:
    """Checks that bytes arrive unchanged in both directions, and that both sides succeed."""
    forward, backward = command.input("there"), command.input("back")
    a, b = command.pipe(forward, backward, flags, **more)
    same = a.stdout() == (command.guest.share / forward).read_bytes() and b.stdout() == (command.guest.share / backward).read_bytes()
    transports = [(it.get("transport"), it.get("security")) for it in (summary_of_pipe(a), summary_of_pipe(b))]
    passed = same and (a.status(), b.status()) == (0, 0) and transports == [("sctp", security)] * 2
    return passed, f"listener: {summary_of_pipe(a)}, status {a.status()}; connector: {summary_of_pipe(b)}, status {b.status()}; same: {same}"


def pipe_bytes(command: Command) -> Result:
    """Bytes both ways, plain."""
    return exchange(command, ("--plain",), "none")


def pipe_bytes_over_ipv6(command: Command) -> Result:
    """The same over IPv6."""
    return exchange(command, ("--plain",), "none", ipv6=True)


def pipe_tls(command: Command) -> Result:
    """Bytes both ways under TLS."""
    return exchange(command, (), "tls", connector=("--insecure",))


def pipe_other_stream(command: Command) -> Result:
    """Bytes both ways on another pair of streams."""
    return exchange(command, ("--plain", "--stream", "7"), "none")


def pipe_messages(command: Command) -> Result:
    """Messages of several sizes, both ways, with the stream and PPID of the flags on the wire."""
    lines = [f"{number}:{'x' * (number * 37 % 3000)}" for number in range(300)]
    for name in ("lines-there", "lines-back"):
        (command.guest.share / name).write_text("".join(f"{name} {line}\n" for line in lines))
    same_host = command.listener.name == command.connector.name
    file, tcpdump = (None, None) if same_host else command.capture()
    try:
        flags = ("--plain", "--messages", "--stream", "7", "--ppid", "51")
        a, b = command.pipe("lines-there", "lines-back", flags)
    finally:
        if tcpdump is not None:
            tcpdump.terminate()
            tcpdump.wait()
    share = command.guest.share
    same = a.stdout() == (share / "lines-there").read_bytes() and b.stdout() == (share / "lines-back").read_bytes()
    detail = f"listener: {summary_of_pipe(a)}, connector: {summary_of_pipe(b)}, same: {same}"
    passed = same and (a.status(), b.status()) == (0, 0)
    if file is not None:
        found = set(fields(file, "sctp.data_sid", "sctp.data_payload_proto_id", where="sctp.data_sid"))
        passed, detail = passed and found == {("0x0007", "51")}, f"{detail}; on the wire: {sorted(found)}"
    return passed, detail


def race(command: Command) -> Result:
    """A race reports SCTP as working, plain and under TLS, and the listener has no raw socket."""
    found = []
    for flag in ("--plain", "--insecure"):
        server = command.serve(*((flag,) if flag == "--plain" else ()))
        try:
            status = json.loads(server.stdout())
            answers = [command.race(command.target("sctp+tcp", ipv6=ipv6), "--all", flag) for ipv6 in (False, True)]
            raw = command.guest.run("cat /proc/net/raw /proc/net/raw6")
        finally:
            server.stop()
        for answer in answers:
            works = {it["transport"] for it in answer["attempts"] if it["outcome"] in ("won", "lost")}
            found.append(f"{flag}: {', '.join(sorted(works))}")
            if not works >= {"sctp", "sctp-udp", "tcp"}:
                return False, f"{found}: {summary(answer)}"
        if not status["sctp_directly"] or ":0084 " in raw:
            return False, f"served directly: {status['sctp_directly']}; raw sockets in the guest: {raw}"
    return True, "; ".join(found)


def fetch(command: Command) -> Result:
    """HTTP/1.1 over SCTP, with a large body."""
    server = command.serve("--plain")
    words = ["--prefer", "sctp", "--memory", "none", "--sctp-udp-port", str(UDP_PORT), "-v"]
    try:
        running = command.connector.start(["get", *words, f"{command.target('http')}/bytes/1000000"], command.log("get"))
        running.end()
        running.stop()
    finally:
        server.stop()
    passed = running.status() == 0 and len(running.stdout()) == 1_000_000
    return passed, f"status {running.status()}, {len(running.stdout())} bytes: {running.stderr()[-400:]}"


def refused_port(command: Command) -> Result:
    """A connection to a closed port is refused at once."""
    start = time.monotonic()
    answer = command.race(command.target(port=PORT + 1), "--plain", "--connect-timeout", "8s")
    elapsed = time.monotonic() - start
    attempts = [it for it in answer.get("attempts", []) if it["transport"] == "sctp"]
    refused = bool(attempts) and all(it["outcome"] == "failed" and "refused" in it["reason"].lower() for it in attempts)
    return refused and elapsed < 8, f"{elapsed:.1f} s; {summary(answer)}"


def silence(command: Command) -> Result:
    """Without an answer over SCTP, TCP is used; without any answer, the race ends in time."""
    server = command.serve("--plain")
    try:
        command.network.lose(TAPS[0], 1)
        answer = command.race(command.target("sctp+tcp"), "--plain")
        command.network.heal()
        command.network.cut(TAPS[0])
        unanswered = command.race(command.target("sctp+tcp"), "--plain", "--connect-timeout", "3s")
    finally:
        command.network.heal()
        server.stop()
    winner = (answer.get("winner") or {}).get("transport")
    code = (unanswered.get("error") or {}).get("exit_code")
    return (winner, code) == ("tcp", 28), f"{summary(answer)}; then {unanswered.get('error')}"


def summary(answer: dict) -> str:
    """Returns a short description of a race."""
    attempts = [f"{it['transport']} {it['address']} {it['outcome']} ({it['reason']})" for it in answer.get("attempts", [])]
    return "; ".join([*attempts, (answer.get("error") or {}).get("message", "")])


ALL_PEERS: list[Callable[[Command], Result]] = [
    race, fetch, pipe_bytes, pipe_bytes_over_ipv6, pipe_tls, pipe_other_stream, pipe_messages, refused_port,
]
# Only between two hosts, whose network can fail.
BETWEEN_HOSTS = [silence]
# Listener and connector.
PAIRS = (("guest", "guest"), ("guest", "ours"), ("ours", "guest"))
# For the table: within the guest, our stack connects to the kernel's, the kernel's connects to ours.
ARROWS = {PAIRS[0]: "alone", PAIRS[1]: "→", PAIRS[2]: "←"}
