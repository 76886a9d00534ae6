"""The runner: sets everything up, runs every case, and tears everything down."""

import argparse
import ast
import contextlib
import functools
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

from . import lab, nat, perf, qpack
from .build import build, prebuilt_example
from .cases import CASES
from .hostile import run as hostile
from .load import cases as load
from .multipath import cases as multipath
from .multipath import dissimilar, simulated
from .netem import run as netem
from .network import Network, NoNamespaces
from .process import READY_TIMEOUT, Peer
from .report import Report, Skip
from .sctp import memory
from .sctp import run as sctp_run
from .sctp.run import NAMES
from .timing import Timings
from .world import World

# The parts that are no lists of cases: the word for `--only`, and the module.
PARTS = {
    "memory": memory, "qpack": qpack, "sctp": sctp_run, "multipath": multipath, "dissimilar": dissimilar,
    "simulated": simulated, "load": load, "lab": lab, "nat": nat, "netem": netem, "perf": perf,
}
# Run in parallel with the other cases: some SCTP peers and then the attacks, and the cases of programs for a
# kernel's SCTP, selected by the beginning of their names.
PARALLEL_PEERS = ("usrsctp", "pion")
PARALLEL_PARTS = (*PARALLEL_PEERS, "hostile")
PARALLEL_CASES = "socket_"
# Cases that run only when named: they build str0m, which takes some minutes.
ON_REQUEST = "data_channels_of_str0m"


def main() -> int:
    # However the run is ended, the namespaces are removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = parse()
    if options.list:
        show_cases()
        return 0
    report = Report(options.strict)
    times = Timings()
    with tempfile.TemporaryDirectory(prefix="eyas-interop-") as directory, contextlib.ExitStack() as cleanup:
        parallel = []
        if not options.only:
            for number, words in enumerate([PARALLEL_PARTS, (PARALLEL_CASES,)]):
                parallel.append(ParallelRun(words, pathlib.Path(directory) / f"parallel-{number}.log", options))
                cleanup.callback(parallel[-1].stop)
        try:
            for name, is_selected, part in parts(pathlib.Path(directory), options, report, parallel, times):
                if is_selected:
                    with times.of(name):
                        part()
        finally:
            if options.keep:
                keep(pathlib.Path(directory))
    times.show(at_least=10)
    return report.finish()


def parts(
    directory: pathlib.Path, options: argparse.Namespace, report: Report, parallel: "list[ParallelRun]",
    times: Timings,
) -> Iterator[tuple[str, bool, Callable[[], None]]]:
    """Yields the parts of a run in order: the name, whether it is selected, and the function that runs it."""
    only = options.only

    def selected(name: str) -> bool:
        return not only or name in only

    def with_command(run: Callable[[pathlib.Path, pathlib.Path, Report], None]) -> Callable[[], None]:
        return lambda: run(directory, command(options), report)

    yield "memory", memory.is_selected(only), lambda: memory.run(report, only)
    yield "qpack", selected("qpack") or bool({*qpack.PEERS} & {*only}), lambda: qpack.run(h3_example(options), report)
    yield "sctp", wants_sctp(only), lambda: sctp(directory, options, report)
    yield "multipath", selected("multipath"), with_command(multipath.run)
    yield "dissimilar", selected("multipath") or "dissimilar" in only, with_command(dissimilar.run)
    yield "simulated", selected("multipath") or "simulated" in only, with_command(simulated.run)
    # Compares times of two load generators, which takes an idle machine: only on request.
    yield "load", "load" in only, with_command(load.run)
    yield "lab", selected("lab"), with_command(lab.run)
    yield "nat", selected("nat"), with_command(nat.run)
    yield "netem", selected("netem"), with_command(netem.run)
    yield "perf", selected("perf"), with_command(perf.run)
    yield "hostile", wants_hostile(only), lambda: hostile.run(command(options), report, only)
    yield "others", wants_others(only), lambda: others(directory, options, report, times)
    for run in parallel:
        yield run.name, True, functools.partial(run.end, report)


class ParallelRun:
    """A part of the cases, in a process with its own namespaces: most cases wait rather than compute, so they run in
    parallel with the others."""

    def __init__(self, words: tuple[str, ...], log: pathlib.Path, options: argparse.Namespace) -> None:
        self.name = f"the parallel run ({' and '.join(words)})"
        command = [sys.executable, "-m", "eyas_interop"]
        command += [part for word in words for part in ("--only", word)]
        command += ["--eyas", str(options.eyas)] if options.eyas else []
        command += ["--keep"] if options.keep else []
        self.peer = Peer(self.name, command, log)

    def end(self, report: Report) -> None:
        """Waits for its end, and prints its output."""
        status = self.peer.process.wait()
        print(self.peer.log.read_text(errors="replace"), flush=True)
        report.check("runner", f"{self.name}, above", status == 0, f"status {status}")

    def stop(self) -> None:
        """Ends it if it still runs, and gives it time to remove its namespaces."""
        if self.peer.process.poll() is None:
            self.peer.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.peer.process.wait(READY_TIMEOUT)
        self.peer.stop()


def wants_sctp(only: list[str]) -> bool:
    """Returns whether the SCTP cases run: `--only sctp`, or a peer of it, or `sctp:WORD`."""
    return not only or any(word.startswith("sctp") or word in NAMES for word in only)


def wants_hostile(only: list[str]) -> bool:
    """Returns whether the attacks run: `--only hostile`, or the name of one. Without `--only` they run in parallel."""
    return any(word in ("hostile", *attack_names()) for word in only)


def attack_names() -> list[str]:
    return [program.stem for program in hostile.programs([])]


def wants_others(only: list[str]) -> bool:
    """Returns whether some of the other cases run."""
    separate = (*NAMES, "dissimilar", "simulated", "lab", "load", "memory", "multipath", "nat", "netem", "perf", *memory.NAMES)
    separate = (*separate, "qpack", qpack.PEER, "nghttp3")
    separate = (*separate, "hostile", *attack_names())
    return not only or not all(word.startswith("sctp") or word in separate for word in only)


def sctp(directory: pathlib.Path, options: argparse.Namespace, report: Report) -> None:
    """Our SCTP against other stacks, and the command over the kernel's SCTP."""
    example = prebuilt_example(options.eyas, "peer")
    if not example:
        example = build("--package", "eyas-sctp", "--example", "peer") / "examples" / "peer"
    rest = [name for name in NAMES if name not in PARALLEL_PEERS]
    sctp_run.run(directory, example, command(options), report, options.only or rest)


def h3_example(options: argparse.Namespace) -> pathlib.Path:
    """Returns our QPACK as a program, built if necessary."""
    example = prebuilt_example(options.eyas, "qpack")
    return example or build("--package", "eyas-h3", "--example", "qpack") / "examples" / "qpack"


def others(
    directory: pathlib.Path, options: argparse.Namespace, report: Report, times: Timings
) -> None:
    """The command against HTTP servers and clients."""
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
    """Returns the binary to test, built if necessary."""
    return options.eyas or build("--package", "eyas-cli") / "eyas"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="interop/run", description=__doc__)
    parser.add_argument("--eyas", type=pathlib.Path, help="the binary to test")
    parser.add_argument("--only", action="append", default=[], help="cases with this word in their name")
    parser.add_argument("--strict", action="store_true", help="a missed target of a measurement is a failure")
    parser.add_argument("--keep", action="store_true", help="keep the logs in ./interop-logs")
    parser.add_argument("--list", action="store_true", help="only list the cases")
    options = parser.parse_args()
    if options.eyas:
        options.eyas = options.eyas.resolve()
    return options


def show_cases() -> None:
    """Prints the cases: the words for `--only`, and the first sentence of each one's description."""
    documents = [(name, part.__doc__) for name, part in PARTS.items()]
    documents += [(f"{case.peer} {name_of(case)}", getattr(case, "func", case).__doc__) for case in CASES]
    attacks = hostile.programs([])
    documents += [(f"hostile {attack.stem}", ast.get_docstring(ast.parse(attack.read_text()))) for attack in attacks]
    for words, document in documents:
        paragraph = " ".join(document.partition("\n\n")[0].split())
        print(f"{words:<40} {paragraph.partition('. ')[0]}")


def name_of(case: Callable) -> str:
    return case.__name__.removeprefix("case_")


def run(world: World, only: list[str], times: Timings) -> None:
    for case in CASES:
        peer, name = case.peer, name_of(case)
        if not is_selected(peer, name, only):
            continue
        with times.of(f"others: {name}"):
            try:
                case(world)
            except Skip as reason:
                world.report.skip(peer, name, str(reason))
            except Exception as error:  # one broken case must not hide the others
                world.report.failed(peer, name, f"{type(error).__name__}: {error}")
            world.network.heal()


def is_selected(peer: str, name: str, only: list[str]) -> bool:
    """Returns whether a case runs here: those named by `--only`; without it, all but the parallel ones and those that run only when named."""
    if only:
        return any(word in f"{peer} {name}" for word in only)
    return not name.startswith((PARALLEL_CASES, ON_REQUEST))


def keep(directory: pathlib.Path) -> None:
    target = pathlib.Path("interop-logs")
    target.mkdir(exist_ok=True)
    for log in [*directory.rglob("*.log"), *directory.rglob("*.pcap")]:
        (target / log.name).write_bytes(log.read_bytes())
    print(f"logs are in {target}")


sys.exit(main())
