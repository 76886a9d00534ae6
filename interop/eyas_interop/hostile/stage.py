"""What attacks share: a monitored victim, honest clients, and the bounds.

An attack is a program with a docstring that describes it, and the service that other clients must get meanwhile:

    from eyas_interop.hostile.stage import Stage, main

    def attack(stage: Stage) -> None:
        server = stage.serve("--plain")                       # eyas serve, on free ports
        with stage.attacked(server, ("/bytes/1000",), memory=50):  # honest clients, MiB above the start
            ...                                               # the attack, some seconds

    if __name__ == "__main__":
        main(attack)

After the block, `attacked` checks that the server runs, the bounds, and that honest clients got all they requested;
`check` and `within` report further checks. `watched` takes the id of any process.
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from ..process import Peer
from ..report import Report, Skip
from .clients import HonestClient, Repeater
from .usage import MIB, Usage, Watch

# The peer in the report lines.
PEER = "hostile"
# Honest clients that fetch a small file, over HTTP/2 and HTTP/3.
SMALL = (("/small", "--http2"), ("/small", "--http3-only"))
SMALL_SIZE = 200_000


class Server:
    """A running `eyas serve` on loopback."""

    def __init__(self, peer: Peer, description: dict, trust: list[str]) -> None:
        self.peer = peer
        self.process = peer.process.pid
        self.port = int(description["address"].rpartition(":")[2])
        self.scheme = description["url"].partition(":")[0]
        self.sctp_udp_port = description.get("sctp_udp_port")
        self.metrics = description.get("metrics")
        # The flags with which `eyas get` trusts it.
        self.trust = trust

    def url(self, path: str) -> str:
        """Returns the URL of a path, for honest clients."""
        return f"{self.scheme}://localhost:{self.port}{path}"


class Stage:
    """What an attack works with."""

    def __init__(self, eyas: pathlib.Path, directory: pathlib.Path, report: Report, name: str) -> None:
        self.eyas = eyas
        self.directory = directory
        self.report = report
        self.name = name
        self._peers: list[Peer] = []

    def serve(self, *flags: str, files: pathlib.Path | None = None) -> Server:
        """Starts `eyas serve` on free ports as the victim: with its own certificate unless `--plain` is
        given, and with SCTP unless the flags say otherwise."""
        number = len(self._peers)
        certificate = self.directory / f"ca-{number}.pem"
        command = [str(self.eyas), "serve", "--json", "--listen", "0"]
        if "--plain" not in flags:
            command += ["--save-cert", str(certificate)]
        if "--no-sctp" not in flags and "--sctp-udp-port" not in flags:
            command += ["--sctp-udp-port", "0"]
        command += [*flags, str(files) if files else "--no-files"]
        peer = self.start(command)
        peer.wait_until(lambda: peer.log.read_text().rstrip().endswith("}"))
        trust = [] if "--plain" in flags else ["--cacert", str(certificate)]
        return self.listening_server(peer, tuple(trust))

    def start(self, command: list[str]) -> Peer:
        """Starts a program that is ended with the attack; its output goes to its log."""
        name = f"{pathlib.Path(command[0]).stem}-{len(self._peers)}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("EYAS_")}
        peer = Peer(name, command, self.directory / f"{name}.log", env=environment | {
            "XDG_RUNTIME_DIR": str(self.directory)}, cwd=self.directory)
        self._peers.append(peer)
        return peer

    @staticmethod
    def listening_server(peer: Peer, trust: tuple[str, ...] = ()) -> Server:
        """Returns a server from the JSON object that it prints once it listens, perhaps after notices."""
        text = peer.log.read_text()
        return Server(peer, json.loads(text[text.index("{"):]), list(trust))

    def files(self, **sizes: int) -> pathlib.Path:
        """Returns a directory with a file of zeros for each name, of that many bytes."""
        home = self.directory / "files"
        home.mkdir(exist_ok=True)
        for name, size in sizes.items():
            with (home / name).open("wb") as file:
                file.truncate(size)
        return home

    @contextlib.contextmanager
    def watched(self, process: int) -> Iterator[Watch]:
        """Watches a process while the block runs; then prints its figures on one line."""
        watch = Watch(process)
        try:
            yield watch
        finally:
            watch.end()
            print(f"      {self.name}: {watch.before}; at most {watch.peak}; {watch.last}", flush=True)

    @contextlib.contextmanager
    def honest(self, server: Server, path: str, *flags: str) -> Iterator[HonestClient]:
        """Fetches from a server while the block runs."""
        client = HonestClient(self.eyas, server.url(path), [*server.trust, *flags])
        try:
            yield client
        finally:
            client.end()

    @contextlib.contextmanager
    def repeat(self, request: Callable[[], None]) -> Iterator[Repeater]:
        """Repeats another kind of request while the block runs."""
        repeater = Repeater(request)
        try:
            yield repeater
        finally:
            repeater.end()

    @contextlib.contextmanager
    def attacked(
        self, server: Server, *honest: tuple[str, ...], memory: float,
        descriptors: float | None = None, cpu: float | None = None,
    ) -> Iterator[Watch]:
        """Watches a server while the block attacks it, with honest clients: a path and flags for each.
        Afterwards it checks that the server runs and that it kept the bounds: MiB, descriptors, seconds of CPU time."""
        with contextlib.ExitStack() as stack:
            watch = stack.enter_context(self.watched(server.process))
            clients = [stack.enter_context(self.honest(server, *arguments)) for arguments in honest]
            yield watch
        self.alive(server)
        self.memory_within(watch, memory)
        if descriptors is not None:
            self.descriptors_within(watch, descriptors)
        if cpu is not None:
            self.cpu_within(watch, cpu)
        if clients:
            self.honest_fetched(*clients)

    def check(self, name: str, good: bool, detail: str = "") -> bool:
        """Reports any other check."""
        return self.report.check(PEER, f"{self.name}: {name}", good, detail)

    def within(self, name: str, value: float, most: float, unit: str = "") -> bool:
        """Reports the check of a bound."""
        detail = f"{value:.6g} {unit}, at most {most:.6g}"
        return self.check(name, value <= most, detail)

    def memory_within(self, watch: Watch, mib: float) -> bool:
        """Checks the maximum growth of the victim's memory."""
        return self.within("memory grew", watch.grown_memory / MIB, mib, "MiB")

    def descriptors_within(self, watch: Watch, most: int) -> bool:
        """Checks the maximum growth of the victim's descriptors."""
        return self.within("descriptors grew", watch.grown_descriptors, most)

    def cpu_within(self, watch: Watch, seconds: float) -> bool:
        """Checks the victim's CPU time during the attack."""
        return self.within("CPU time", watch.cpu, seconds, "s")

    def honest_fetched(self, *clients: Repeater) -> bool:
        """Checks that every request of the honest clients succeeded, and that each made at least one."""
        good = all(client.times and not client.failures for client in clients)
        detail = "; ".join(client.detail for client in clients)
        return self.check("honest clients", good, detail)

    def alive(self, server: Server) -> bool:
        """Checks that the victim still runs."""
        status = server.peer.process.poll()
        detail = "" if status is None else f"ended with {status}: {server.peer.tail()}"
        return self.check("the server runs", status is None, detail)

    def wait_for_usage(self, process: int, within: float, holds: Callable[[Usage], bool]) -> bool:
        """Waits until the usage of a process meets a condition, for a limited time in seconds; returns whether it does."""
        deadline = time.monotonic() + within
        while not holds(Usage.of(process)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def end(self) -> None:
        """Ends all started programs."""
        for peer in self._peers:
            # Not gracefully: it would wait for responses that attackers do not read.
            peer.process.kill()
            peer.stop()


def main(attack: Callable[[Stage], None]) -> None:
    """The main function of the programs in `interop/hostile`: runs the attack and prints a line for each check."""
    name = pathlib.Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=attack.__doc__)
    parser.add_argument("--eyas", type=pathlib.Path, required=True, help="the binary to attack")
    eyas = parser.parse_args().eyas.resolve()
    # As many connections as the system allows.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    report = Report()
    with tempfile.TemporaryDirectory(prefix=f"eyas-{name}-") as directory:
        stage = Stage(eyas, pathlib.Path(directory), report, name)
        try:
            attack(stage)
        except Skip as reason:
            report.skip(PEER, name, str(reason))
        except Exception as error:  # shown as one line, like any other failure
            report.failed(PEER, name, f"{type(error).__name__}: {error}")
        finally:
            stage.end()
    sys.exit(report.finish())
