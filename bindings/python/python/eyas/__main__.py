"""`python -m eyas`: the `eyas` command, which the package brings along."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig


def command() -> str:
    """Where the command is."""
    name = "eyas" + sysconfig.get_config_var("EXE")
    user = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    for place in (sysconfig.get_path("scripts"), user):
        if os.path.isfile(path := os.path.join(place, name)):
            return path
    raise FileNotFoundError(
        f"the command {name} did not come with this package: it was built without it, as by "
        "`maturin develop`; `cargo xtask python` builds both"
    )


if __name__ == "__main__":
    sys.exit(subprocess.run([command(), *sys.argv[1:]], check=False).returncode)
