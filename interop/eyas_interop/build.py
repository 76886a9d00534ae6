"""Building parts of this clone."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build(*what: str) -> pathlib.Path:
    """Builds a part of this clone with optimisation; gives the directory of what was built."""
    return _cargo("release", "--release", *what)


def example(name: str) -> pathlib.Path:
    """An example whose speed is not looked at: as `cargo test --workspace` has built it, if that ran."""
    return _cargo("debug", "--workspace", "--example", name) / "examples" / name


def example_beside(given: pathlib.Path | None, name: str) -> pathlib.Path | None:
    """An example that was built with the binary that was given, if it is there."""
    beside = given and given.parent / "examples" / name
    return beside if beside and beside.exists() else None


def _cargo(profile: str, *what: str) -> pathlib.Path:
    subprocess.run(["cargo", "build", *what], cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return (ROOT / target / profile).resolve()
