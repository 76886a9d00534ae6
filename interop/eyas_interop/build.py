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


def _cargo(profile: str, *what: str) -> pathlib.Path:
    subprocess.run(["cargo", "build", *what], cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return (ROOT / target / profile).resolve()
