"""Building parts of this clone."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build(*what: str) -> pathlib.Path:
    """Builds a part of this clone with optimisations; returns the directory of the output."""
    return _cargo("release", "--release", *what)


def example(name: str) -> pathlib.Path:
    """Returns an example whose speed does not matter: a debug build, shared with `cargo test --workspace`."""
    return _cargo("debug", "--workspace", "--example", name) / "examples" / name


def prebuilt_example(binary: pathlib.Path | None, name: str) -> pathlib.Path | None:
    """Returns an example that was built with the given binary, if there is one."""
    found = binary and binary.parent / "examples" / name
    return found if found and found.exists() else None


def _cargo(profile: str, *what: str) -> pathlib.Path:
    subprocess.run(["cargo", "build", *what], cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return (ROOT / target / profile).resolve()
