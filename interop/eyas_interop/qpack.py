"""QPACK (RFC 9204) beside ls-qpack, nghttp3 and quic-go, in memory: each decodes what the other encodes.

The streams of instructions are independent of those of the field sections, as in QUIC: what is delivered next is drawn
from a fixed seed.
"""

#= rfc9204 §4
## other implementations (ls-qpack, nghttp3, quic-go), both ways

import os
import pathlib
import random
import subprocess
from collections.abc import Iterator

from .report import Report

Field = tuple[bytes, bytes]

PEER = "ls-qpack"
# Programs with the commands of ours, by the name of what they use: the file in the directory of the peers, and its
# first arguments. quic-go has no dynamic table.
PROGRAMS = {"nghttp3": ("nghttp3-qpack",), "quic-go": ("quic-go", "qpack")}
PEERS = (PEER, *PROGRAMS)
# The capacity of the dynamic table in bytes, and the number of streams that may be blocked.
LIMITS = ((0, 0), (4096, 0), (256, 16), (4096, 16))
WITHOUT_TABLE = LIMITS[:1]
SECTIONS = 400

REPEATED = [
    (b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"www.example.com"),
    (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    (b"accept", b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    (b"accept-encoding", b"gzip, deflate, br, zstd"), (b"cookie", b"session=0123456789abcdef0123456789"),
    (b"sec-fetch-mode", b"navigate"), (b"x-empty", b""), (b"x-bytes", bytes(range(128, 256))),
]
# What must stay a literal on every hop (RFC 9204 §7.1.3).
SENSITIVE = (b"authorization", b"Basic YWRhOmxvdmU=")


class Ends:
    """An encoder and a decoder: ours, in the example `qpack` of `crates/h3`, or those of a program like it."""

    def __init__(self, program: pathlib.Path, *arguments: object) -> None:
        command = [str(program), *map(str, arguments)]
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command: str, *arguments: object) -> list[str]:
        """Returns the words of the answer."""
        line = " ".join([command, *map(str, arguments)])
        self.program.stdin.write(f"{line}\n")
        self.program.stdin.flush()
        answer = self.program.stdout.readline().split()
        if not answer or answer[0] == "fault":
            raise RuntimeError(f"{line[:200]}: {' '.join(answer) or 'no answer'}")
        return answer

    def __enter__(self) -> "Ends":
        return self

    def __exit__(self, *_: object) -> None:
        self.program.stdin.close()
        self.program.wait()


def run(example: pathlib.Path, report: Report) -> None:
    """Each direction with each of the limits."""
    with_lsqpack(example, report)
    for peer, (file, *first) in PROGRAMS.items():
        program = pathlib.Path(os.environ["EYAS_PEERS"]) / "bin" / file
        if not program.exists():
            report.skip(peer, "qpack", f"{file} is not built: interop/install http3")
            continue
        for capacity, blocked in WITHOUT_TABLE if peer == "quic-go" else LIMITS:
            for name, seed in (("we encode", 1), ("they encode", 2)):
                case = f"{name}, {capacity} bytes, {blocked} blocked streams"
                with Ends(example, capacity, blocked) as ours, Ends(program, *first, capacity, blocked) as theirs:
                    ends = (ours, theirs) if name == "we encode" else (theirs, ours)
                    try:
                        report.check(peer, case, True, exchange(*ends, capacity, blocked, random.Random(seed)))
                    except Exception as error:
                        report.failed(peer, case, f"{type(error).__name__}: {error}")


def exchange(encoding: Ends, decoding: Ends, capacity: int, blocked: int, draw: random.Random) -> str:
    """Sections from one program to the other; both streams of instructions are delivered in parts."""
    encoding.ask("limits", capacity, blocked)
    instructions = acknowledgments = b""
    waiting: dict[int, list[str]] = {}
    plain = encoded = was_blocked = 0

    def deliver(count: int) -> None:
        nonlocal instructions
        piece, instructions = instructions[:count], instructions[count:]
        for unblocked in decoding.ask("encoder-stream", piece.hex())[1:]:
            stream, fields = unblocked.split("=")
            expect(fields.split(","), waiting.pop(int(stream)))

    def acknowledge(share: float) -> None:
        nonlocal acknowledgments
        acknowledgments += bytes.fromhex("".join(decoding.ask("acknowledge")[1:]))
        count = round(share * len(acknowledgments))
        piece, acknowledgments = acknowledgments[:count], acknowledgments[count:]
        encoding.ask("decoder-stream", piece.hex())

    for number, fields in enumerate(sections(draw)):
        stream = 4 * number
        words = [*map(text, fields)]
        if draw.random() < 0.2 and capacity:
            words.append(f"{text(SENSITIVE)}!")
        _, section, *more = encoding.ask("encode", stream, *words)
        instructions += bytes.fromhex("".join(more))
        plain += sum(len(name) + len(value) for name, value in fields)
        encoded += (len(section) + len("".join(more))) // 2
        if draw.random() < 0.6:
            deliver(draw.randrange(len(instructions) + 1))
        answer = decoding.ask("decode", stream, section)
        if answer[0] == "fields":
            expect(answer[1:], words)
        else:
            waiting[stream] = words
            was_blocked += 1
            if draw.random() < 0.1:
                decoding.ask("cancel", stream)
                del waiting[stream]
        if draw.random() < 0.7:
            acknowledge(draw.random())
    deliver(len(instructions))
    acknowledge(1)
    if waiting:
        raise RuntimeError(f"{len(waiting)} sections are still blocked")
    if was_blocked and not blocked:
        raise RuntimeError(f"{was_blocked} streams were blocked, and none may be")
    return f"{plain} bytes in {encoded}, {was_blocked} of {SECTIONS} sections were blocked"


def with_lsqpack(example: pathlib.Path, report: Report) -> None:
    """ls-qpack is a package for Python, which calls it."""
    try:
        import pylsqpack
    except ImportError:
        report.skip(PEER, "all", "pylsqpack is not installed (PyPI)")
        return
    for capacity, blocked in LIMITS:
        for name, exchange in (("we encode", we_encode), ("they encode", they_encode)):
            case = f"{name}, {capacity} bytes, {blocked} blocked streams"
            with Ends(example, capacity, blocked) as ends, Ends(example, capacity, blocked) as counter:
                try:
                    report.check(PEER, case, True, exchange(pylsqpack, ends, counter, capacity, blocked))
                except Exception as error:
                    report.failed(PEER, case, f"{type(error).__name__}: {error}")


def sections(draw: random.Random) -> Iterator[list[Field]]:
    """Yields field sections in which some fields repeat, some change, and some appear once."""
    for number in range(SECTIONS):
        fields = [field for field in REPEATED if draw.random() < 0.8]
        fields.append((b":path", b"/%d" % number))
        fields.append((b"x-turn", b"%d" % (number // 8)))
        if draw.random() < 0.3:
            fields.append((b"x-%d" % draw.randrange(20), draw.randbytes(draw.randrange(100))))
        yield fields


def we_encode(pylsqpack, ends: Ends, counter: Ends, capacity: int, blocked: int) -> str:
    """Our encoder, their decoder. It acknowledges sections, but its binding for Python no insertions: where no stream
    may be blocked, which takes those, a decoder of ours gets the same instructions and acknowledges them."""
    draw = random.Random(1)
    decoder = pylsqpack.Decoder(capacity, blocked)
    ends.ask("limits", capacity, blocked)
    stream_of_instructions = b""
    waiting: dict[int, list[Field]] = {}
    plain = encoded = was_blocked = 0

    def deliver(count: int) -> None:
        nonlocal stream_of_instructions
        piece, stream_of_instructions = stream_of_instructions[:count], stream_of_instructions[count:]
        for stream in decoder.feed_encoder(piece):
            acknowledgment, fields = decoder.resume_header(stream)
            expect(fields, waiting.pop(stream))
            ends.ask("decoder-stream", acknowledgment.hex())
        if not blocked:
            counter.ask("encoder-stream", piece.hex())
            ends.ask("decoder-stream", *counter.ask("acknowledge")[1:])

    for number, fields in enumerate(sections(draw)):
        stream = 4 * number
        _, section, *instructions = ends.ask("encode", stream, *map(text, fields))
        stream_of_instructions += bytes.fromhex("".join(instructions))
        plain += sum(len(name) + len(value) for name, value in fields)
        encoded += (len(section) + len("".join(instructions))) // 2
        if draw.random() < 0.6:
            deliver(draw.randrange(len(stream_of_instructions) + 1))
        try:
            acknowledgment, decoded = decoder.feed_header(stream, bytes.fromhex(section))
            expect(decoded, fields)
            ends.ask("decoder-stream", acknowledgment.hex())
        except pylsqpack.StreamBlocked:
            waiting[stream] = fields
            was_blocked += 1
            if draw.random() < 0.1:
                ends.ask("decoder-stream", decoder.cancel_stream(stream).hex())
                del waiting[stream]
    deliver(len(stream_of_instructions))
    if waiting:
        raise RuntimeError(f"{len(waiting)} sections are still blocked")
    if was_blocked and not blocked:
        raise RuntimeError(f"{was_blocked} streams were blocked, and none may be")
    return f"{plain} bytes in {encoded}, {was_blocked} of {SECTIONS} sections were blocked"


def they_encode(pylsqpack, ends: Ends, _counter: Ends, capacity: int, blocked: int) -> str:
    """Their encoder, our decoder."""
    draw = random.Random(2)
    encoder = pylsqpack.Encoder()
    stream_of_instructions = encoder.apply_settings(capacity, blocked)
    waiting: dict[int, list[Field]] = {}
    plain = encoded = was_blocked = 0

    def deliver(count: int) -> None:
        nonlocal stream_of_instructions
        piece, stream_of_instructions = stream_of_instructions[:count], stream_of_instructions[count:]
        for unblocked in ends.ask("encoder-stream", piece.hex())[1:]:
            stream, fields = unblocked.split("=")
            expect(list(map(field, fields.split(","))), waiting.pop(int(stream)))

    def acknowledge() -> None:
        encoder.feed_decoder(bytes.fromhex("".join(ends.ask("acknowledge")[1:])))

    for number, fields in enumerate(sections(draw)):
        stream = 4 * number
        instructions, section = encoder.encode(stream, fields)
        stream_of_instructions += instructions
        plain += sum(len(name) + len(value) for name, value in fields)
        encoded += len(section) + len(instructions)
        if draw.random() < 0.6:
            deliver(draw.randrange(len(stream_of_instructions) + 1))
        answer = ends.ask("decode", stream, section.hex())
        if answer[0] == "fields":
            expect(list(map(field, answer[1:])), fields)
        else:
            waiting[stream] = fields
            was_blocked += 1
            if draw.random() < 0.1:
                ends.ask("cancel", stream)
                del waiting[stream]
        if draw.random() < 0.7:
            acknowledge()
    deliver(len(stream_of_instructions))
    acknowledge()
    if waiting:
        raise RuntimeError(f"{len(waiting)} sections are still blocked")
    return f"{plain} bytes in {encoded}, {was_blocked} of {SECTIONS} sections were blocked"


def expect(decoded: list, fields: list) -> None:
    if decoded != fields:
        raise RuntimeError(f"{fields} became {decoded}")


def text(field: Field) -> str:
    name, value = field
    return f"{name.hex()}:{value.hex()}"


def field(word: str) -> Field:
    name, value = word.rstrip("!").split(":")
    return bytes.fromhex(name), bytes.fromhex(value)
