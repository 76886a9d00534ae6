"""Building parts of this clone."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build(*what: str) -> pathlib.Path:
    """Builds a part of this clone with optimisation; gives the directory of what was built."""
    command = ["cargo", "build", "--release", *what]
    subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return (ROOT / target / "release").resolve()
