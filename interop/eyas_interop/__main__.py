"""The runner: sets the world up, runs every case, takes the world down."""

import argparse
import contextlib
import functools
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

from . import lab, nat
from .build import build, example_beside
from .cases import CASES
from .hostile import run as hostile
from .load import cases as load
from .multipath import cases as multipath
from .netem import run as netem
from .network import Network, NoNamespaces
from .process import READY_WITHIN, Peer
from .report import Report, Skip
from .sctp import memory
from .sctp.run import NAMES
from .sctp.run import run as run_sctp
from .times import Times
from .world import World

# Run beside the others: some peers of SCTP and then the attacks, and the cases of programs for a kernel's
# SCTP, by the beginning of their names.
BESIDE_PEERS = ("usrsctp", "pion")
BESIDE_PARTS = (*BESIDE_PEERS, "hostile")
BESIDE_CASES = "socket_"
# Cases that run only by name: another build of str0m, of some minutes.
ON_REQUEST = "data_channels_of_str0m"


def main() -> int:
    # However it is ended, the namespaces are taken down.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = parse()
    report = Report(options.strict)
    times = Times()
    with tempfile.TemporaryDirectory(prefix="eyas-interop-") as directory, contextlib.ExitStack() as ends:
        beside = []
        if not options.only:
            for number, words in enumerate([BESIDE_PARTS, (BESIDE_CASES,)]):
                beside.append(Beside(words, pathlib.Path(directory) / f"beside-{number}.log", options))
                ends.callback(beside[-1].stop)
        try:
            for name, is_wanted, part in parts(pathlib.Path(directory), options, report, beside, times):
                if is_wanted:
                    with times.of(name):
                        part()
        finally:
            if options.keep:
                keep(pathlib.Path(directory))
    times.show(at_least=10)
    return report.finish()


def parts(
    directory: pathlib.Path, options: argparse.Namespace, report: Report, beside: "list[Beside]",
    times: Times,
) -> Iterator[tuple[str, bool, Callable[[], None]]]:
    """The parts of a run in their order: the name, whether it is wanted, and what runs it."""
    only = options.only

    def asked(name: str) -> bool:
        return not only or name in only

    def of_command(run: Callable[[pathlib.Path, pathlib.Path, Report], None]) -> Callable[[], None]:
        return lambda: run(directory, command(options), report)

    yield "memory", memory.is_wanted(only), lambda: memory.run(report, only)
    yield "sctp", wants_sctp(only), lambda: sctp(directory, options, report)
    yield "multipath", asked("multipath"), of_command(multipath.run)
    # Times of two generators: for a machine that does nothing else, so only if asked for.
    yield "load", "load" in only, of_command(load.run)
    yield "lab", asked("lab"), of_command(lab.run)
    yield "nat", asked("nat"), of_command(nat.run)
    yield "netem", asked("netem"), of_command(netem.run)
    yield "hostile", wants_hostile(only), lambda: hostile.run(command(options), report, only)
    yield "others", wants_others(only), lambda: others(directory, options, report, times)
    for run in beside:
        yield run.name, True, functools.partial(run.end, report)


class Beside:
    """Some cases in namespaces and a process of their own: they wait more than they work, as do the
    others meanwhile."""

    def __init__(self, words: tuple[str, ...], log: pathlib.Path, options: argparse.Namespace) -> None:
        self.name = f"the run beside ({' and '.join(words)})"
        command = [sys.executable, "-m", "eyas_interop"]
        command += [part for word in words for part in ("--only", word)]
        command += ["--eyas", str(options.eyas)] if options.eyas else []
        command += ["--keep"] if options.keep else []
        self.peer = Peer(self.name, command, log)

    def end(self, report: Report) -> None:
        """Waits for its end, and shows what it said."""
        status = self.peer.process.wait()
        print(self.peer.log.read_text(errors="replace"), flush=True)
        report.check("runner", f"{self.name}, above", status == 0, f"status {status}")

    def stop(self) -> None:
        """Ends it, if it has not ended, with time to take its namespaces down."""
        if self.peer.process.poll() is None:
            self.peer.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.peer.process.wait(READY_WITHIN)
        self.peer.stop()


def wants_sctp(only: list[str]) -> bool:
    """Whether the cases of SCTP shall run: `--only sctp`, or a peer of it, or `sctp:WORD`."""
    return not only or any(word.startswith("sctp") or word in NAMES for word in only)


def wants_hostile(only: list[str]) -> bool:
    """Whether attacks shall run: `--only hostile`, or the name of one. Without `--only` they run beside."""
    return any(word in ("hostile", *names_of_attacks()) for word in only)


def names_of_attacks() -> list[str]:
    return [program.stem for program in hostile.programs([])]


def wants_others(only: list[str]) -> bool:
    """Whether some of the other cases shall run."""
    apart = (*NAMES, "lab", "load", "memory", "multipath", "nat", "netem", *memory.NAMES)
    apart = (*apart, "hostile", *names_of_attacks())
    return not only or not all(word.startswith("sctp") or word in apart for word in only)


def sctp(directory: pathlib.Path, options: argparse.Namespace, report: Report) -> None:
    """Our SCTP against that of others, and the command over the kernel's."""
    example = example_beside(options.eyas, "peer")
    if not example:
        example = build("--package", "eyas-sctp", "--example", "peer") / "examples" / "peer"
    rest = [name for name in NAMES if name not in BESIDE_PEERS]
    run_sctp(directory, example, command(options), report, options.only or rest)


def others(
    directory: pathlib.Path, options: argparse.Namespace, report: Report, times: Times
) -> None:
    """The command against servers and clients of HTTP."""
    eyas = command(options)
    try:
        network = Network()
    except NoNamespaces as missing:
        report.skip("network", "all", str(missing))
        return
    world = World(network, directory, eyas, report, options.eyas is not None)
    try:
        run(world, options.only, times)
    finally:
        world.stop()
        network.remove()


def command(options: argparse.Namespace) -> pathlib.Path:
    """The binary to test, built if need be."""
    return options.eyas or build("--package", "eyas-cli") / "eyas"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="interop/run", description=__doc__)
    parser.add_argument("--eyas", type=pathlib.Path, help="the binary to test")
    parser.add_argument("--only", action="append", default=[], help="cases with this in the name")
    parser.add_argument("--strict", action="store_true", help="a figure that is missed is a failure")
    parser.add_argument("--keep", action="store_true", help="keep the logs in ./interop-logs")
    options = parser.parse_args()
    if options.eyas:
        options.eyas = options.eyas.resolve()
    return options


def run(world: World, only: list[str], times: Times) -> None:
    for case in CASES:
        peer, name = case.peer, case.__name__.removeprefix("case_")
        if not is_asked(peer, name, only):
            continue
        with times.of(f"others: {name}"):
            try:
                case(world)
            except Skip as why:
                world.report.skip(peer, name, str(why))
            except Exception as error:  # one broken case must not hide the others
                world.report.failed(peer, name, f"{type(error).__name__}: {error}")
            world.network.heal()


def is_asked(peer: str, name: str, only: list[str]) -> bool:
    """Whether a case runs here: one whose words are given; else all but those that run beside, or only by name."""
    if only:
        return any(word in f"{peer} {name}" for word in only)
    return not name.startswith((BESIDE_CASES, ON_REQUEST))


def keep(directory: pathlib.Path) -> None:
    target = pathlib.Path("interop-logs")
    target.mkdir(exist_ok=True)
    for log in [*directory.rglob("*.log"), *directory.rglob("*.pcap")]:
        (target / log.name).write_bytes(log.read_bytes())
    print(f"logs are in {target}")


sys.exit(main())
