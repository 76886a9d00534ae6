"""Downloads over two lines of different kinds, DSL and LTE, which `eyas netem` emulates: by `eyas pipe` and through
`eyas tunnel`, over both lines and over the better one alone; and when the second line carries its first data."""

import itertools
import json
import os
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from ..report import Report, Skip
from ..sctp import captures
from .lines import I_DATA_HEADER, IP_HEADER, MTU, SCTP_HEADER, UDP_HEADER

ARRIVALS = pathlib.Path(__file__).with_name("arrivals.py")
# A download takes this many seconds at the ceiling of both lines, and at most this many times as long.
SECONDS, LIMIT = 8, 12
# The share of both lines' capacity that counts as using both.
TARGET = 0.9
# With losses: the least share of what the better line alone carries under the same losses.
LOSSY_TARGET = 0.98
# The number of attempts: rates are measured in real time.
TRIES = 3
# Whether everything arrived, whether the target was met, and the details.
Outcome = tuple[bool, bool, str]
# What DTLS 1.3 adds to a packet (RFC 9147 §4): header, content type, tag.
DTLS = 37
# Round trips of a line until it carries data: one for a heartbeat, one to spare.
ROUND_TRIPS = 2
# Nobody is expected to schedule processes more precisely than this, in seconds.
SCHEDULING = 0.1
# The least length of the datagrams that carry a file, and no handshake.
FULL = 1400
PIPE, TUNNEL, WEB, LOCAL = 5000, 4433, 8099, 8080


class Line(NamedTuple):
    """A line: the number of its addresses, the one-way delay in ms, and the Mbit/s of IP packets up and down."""

    number: int
    delay: float
    up: float
    down: float

    def address(self, host: int) -> str:
        """Returns the address of the client (1) or of the server (2)."""
        return f"198.18.{self.number}.{host}"

    def ceiling(self, overhead: int) -> float:
        """Returns the maximum Mbit/s of user data downwards, with only full packets."""
        room = MTU - IP_HEADER - UDP_HEADER - overhead
        return self.down * (room - room % 4 - SCTP_HEADER - I_DATA_HEADER) / MTU


DSL, LTE = Line(1, 8, 1, 16), Line(2, 35, 20, 50)


class Program(NamedTuple):
    """How a file gets from the server to the client: the shell commands at both ends, with these flags for the server
    and the client, and the bytes that a packet has besides those of SCTP inside UDP."""

    name: str
    overhead: int
    server: str
    client: str


PROGRAMS = (
    Program(
        "pipe", 0,
        "exec {eyas} pipe --plain {server_flags} --listen 0.0.0.0:{pipe} < file 2> server.log",
        "{eyas} pipe --plain {client_flags} sctp-udp://{to}:{pipe} < /dev/null 2> client.log | {python} {arrivals}",
    ),
    Program(
        "tunnel", DTLS,
        "{python} -m http.server --bind 127.0.0.1 {web} > web.log 2>&1 &"
        " exec {eyas} tunnel serve --listen 0.0.0.0:{tunnel} --key host.pem --authorized-keys authorized_keys"
        " {server_flags} > server.log 2>&1",
        "{eyas} tunnel sctp-udp://{to}:{tunnel} --key key.pem --known-hosts known_hosts -L {local}:127.0.0.1:{web}"
        " {client_flags} > client.log 2>&1 & {python} {arrivals} {local}; kill $!",
    ),
)


class Download(NamedTuple):
    """A finished download: what arrived, and a capture of the packets."""

    bytes: int
    rate: float
    capture: pathlib.Path


class Bench:
    """Lines, and a directory with a file that fills them for a while."""

    def __init__(self, directory: pathlib.Path, eyas: pathlib.Path, lines: tuple[Line, ...]) -> None:
        self.directory = directory
        self.directory.mkdir()
        self.eyas = eyas
        self.lines = lines
        self.size = int(self.ceiling(0) * 1e6 / 8 * SECONDS)
        (self.directory / "file").write_bytes(os.urandom(self.size))

    def make_keys(self) -> None:
        """Makes the keys of a tunnel."""
        keygen = [str(self.eyas), "tunnel", "keygen", "--key", str(self.directory / "key.pem")]
        key = subprocess.run(keygen, capture_output=True, text=True, check=True).stdout
        (self.directory / "authorized_keys").write_text(key)

    def ceiling(self, overhead: int) -> float:
        """Returns the maximum Mbit/s of user data downwards over all lines."""
        return sum(line.ceiling(overhead) for line in self.lines)

    def topology(self, loss: str) -> pathlib.Path:
        """Writes the lines to a file. Losses are independent, and the same in both directions."""
        path = self.directory / "lines.toml"
        path.write_text("".join(
            f'[path.line{line.number}]\ndelay = "{line.delay} ms"\nloss = "{loss}"\n'
            f'forward = {{ rate = "{line.up} Mbit/s" }}\nbackward = {{ rate = "{line.down} Mbit/s" }}\n'
            for line in self.lines
        ))
        return path

    def run(self, program: Program, alone: Line | None = None, loss: str = "0 %", captures: bool = False) -> Download:
        """Downloads the file over both lines, or over one of them alone."""
        words = {
            "eyas": shlex.quote(str(self.eyas)), "python": shlex.quote(sys.executable),
            "arrivals": shlex.quote(str(ARRIVALS)), "to": (alone or self.lines[0]).address(2),
            "pipe": PIPE, "tunnel": TUNNEL, "web": WEB, "local": LOCAL,
        }
        for end, host in (("client", 1), ("server", 2)):
            words[f"{end}_flags"] = f"--local-address {alone.address(host)}" if alone else "--multipath"
        capture = self.directory / "packets.pcapng"
        command = [str(self.eyas), "netem", "run", "--quiet", "--topology", str(self.topology(loss))]
        command += ["--pcapng", str(capture)] if captures else []
        command += ["--server", program.server.format(**words), "--", "sh", "-c", program.client.format(**words)]
        environment = {**os.environ, "EYAS_MEMORY": "none", "XDG_RUNTIME_DIR": str(self.directory)}
        done = subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True,
                              timeout=SECONDS * LIMIT, check=False)
        try:
            arrived = json.loads(done.stdout)
        except ValueError as error:
            log = (self.directory / "client.log").read_text(errors="replace")
            raise RuntimeError(f"{done.stderr.strip()[-300:]} {log[-300:]}") from error
        return Download(arrived["bytes"], arrived["rate"], capture)


def both(bench: Bench, program: Program) -> Outcome:
    """Both lines are used: more than the better one alone, and nearly their capacity."""
    one, all_lines = bench.run(program, alone=LTE), bench.run(program)
    ceiling = bench.ceiling(program.overhead)
    detail = (
        f"{all_lines.rate:.1f} Mbit/s, {all_lines.rate / ceiling:.1%} of the capacity of both, {ceiling:.1f};"
        f" LTE alone {one.rate:.1f}"
    )
    is_whole = one.bytes == all_lines.bytes == bench.size
    return is_whole, all_lines.rate >= TARGET * ceiling and all_lines.rate > one.rate, detail


def lossy(bench: Bench, program: Program) -> Outcome:
    """With losses on both lines, both together are not slower than the better one alone."""
    one, all_lines = bench.run(program, alone=LTE, loss="0.1 %"), bench.run(program, loss="0.1 %")
    detail = f"{all_lines.rate:.1f} Mbit/s, LTE alone {one.rate:.1f}"
    is_whole = one.bytes == all_lines.bytes == bench.size
    return is_whole, all_lines.rate >= LOSSY_TARGET * one.rate, detail


def joins(bench: Bench, program: Program) -> Outcome:
    """The second line carries data within two of its round trips after the first data of all. In a tunnel it is ready
    before that, as the first data waits for a program."""
    download = bench.run(program, captures=True)
    rows = captures.fields(download.capture, "frame.time_epoch", "ip.src", "udp.length",
                           where=f"udp && frame.interface_name contains \"server\" && udp.length >= {FULL}")
    first = {}
    for time, source, _ in rows:
        first.setdefault(source, float(time))
    if any(line.address(2) not in first for line in bench.lines):
        return False, False, f"data came only from {sorted(first)}"
    late = max(first.values()) - min(first[line.address(2)] for line in bench.lines)
    allowed = ROUND_TRIPS * 2 * LTE.delay / 1e3 + SCHEDULING
    return True, late <= allowed, f"{late * 1e3:.0f} ms after the first, {allowed * 1e3:.0f} ms allowed"


def report_attempts(report: Report, name: str, attempts: Iterator[Outcome]) -> None:
    """Reports a measurement, at the first of a few attempts that meets the target."""
    detail = ""
    try:
        for number, (passed, meets_target, now) in enumerate(itertools.islice(attempts, TRIES), 1):
            detail = f"attempt {number}: {now}; before: {detail}" if detail else now
            if passed and meets_target:
                break
        if passed:
            report.figure("multipath", name, meets_target, detail)
        else:
            report.failed("multipath", name, detail)
    except Skip as reason:
        report.skip("multipath", name, str(reason))
    except Exception as error:  # one broken case must not hide the others
        report.failed("multipath", name, f"{type(error).__name__}: {error}")


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """Runs every case with both programs."""
    bench = Bench(directory / "dissimilar", eyas, (DSL, LTE))
    bench.make_keys()
    for program in PROGRAMS:
        for case in (both, lossy, joins):
            name = f"DSL and LTE, {program.name}: {case.__name__}"
            report_attempts(report, name, map(case, itertools.repeat(bench), itertools.repeat(program)))
