"""`python -m eyas`: runs the `eyas` command, which is part of the package."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig


def command() -> str:
    """Returns the path of the command."""
    name = "eyas" + sysconfig.get_config_var("EXE")
    user = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    for directory in (sysconfig.get_path("scripts"), user):
        if os.path.isfile(path := os.path.join(directory, name)):
            return path
    raise FileNotFoundError(
        f"the command {name} is not part of this package, which was built without it, for example "
        "with `maturin develop`; `cargo xtask python` builds both"
    )


if __name__ == "__main__":
    sys.exit(subprocess.run([command(), *sys.argv[1:]], check=False).returncode)
