"""The runner: sets the world up, runs every case, takes the world down."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from .cases import CASES
from .network import Network, NoNamespaces
from .report import Report, Skip
from .world import World

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    options = parse()
    report = Report()
    eyas = options.eyas or build()
    with tempfile.TemporaryDirectory(prefix="eyas-interop-") as directory:
        try:
            network = Network()
        except NoNamespaces as missing:
            report.skip("network", "all", str(missing))
            return report.finish()
        world = World(network, pathlib.Path(directory), eyas, report)
        try:
            run(world, options.only)
        finally:
            world.stop()
            network.remove()
            if options.keep:
                keep(pathlib.Path(directory))
    return report.finish()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="interop/run", description=__doc__)
    parser.add_argument("--eyas", type=pathlib.Path, help="the binary to test")
    parser.add_argument("--only", action="append", default=[], help="cases with this in the name")
    parser.add_argument("--keep", action="store_true", help="keep the logs in ./interop-logs")
    options = parser.parse_args()
    if options.eyas:
        options.eyas = options.eyas.resolve()
    return options


def build() -> pathlib.Path:
    """The release build of this clone."""
    command = ["cargo", "build", "--release", "--package", "eyas-cli"]
    subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return (ROOT / target / "release" / "eyas").resolve()


def run(world: World, only: list[str]) -> None:
    for case in CASES:
        peer, name = case.peer, case.__name__.removeprefix("case_")
        if only and not any(word in f"{peer} {name}" for word in only):
            continue
        start = time.monotonic()
        try:
            case(world)
        except Skip as why:
            world.report.skip(peer, name, str(why))
        except Exception as error:  # one broken case must not hide the others
            world.report.failed(peer, name, f"{type(error).__name__}: {error}")
        world.network.heal()
        took = time.monotonic() - start
        if took > 20:
            print(f"      ({name} took {took:.0f} s)", flush=True)


def keep(directory: pathlib.Path) -> None:
    target = pathlib.Path("interop-logs")
    target.mkdir(exist_ok=True)
    for log in directory.rglob("*.log"):
        (target / log.name).write_bytes(log.read_bytes())
    print(f"logs are in {target}")


sys.exit(main())
