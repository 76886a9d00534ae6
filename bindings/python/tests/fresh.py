"""The first steps of a new user: the command, then the examples of the documents.

`cargo xtask python` runs this with each version of Python that it finds, in an environment with only the wheel.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from helpers import DOCUMENTS, examples, serving, with_port

#: The packages of a new environment.
PREINSTALLED = {"pip", "setuptools"}
#: Matches programs that import packages other than eyas.
OTHER_PACKAGES = re.compile(r"^import (httpx|requests)", re.MULTILINE)


def main() -> None:
    installed = {distribution.name for distribution in importlib.metadata.distributions()}
    assert installed - PREINSTALLED == {"eyas"}, installed
    found = shutil.which("eyas")
    assert found == sysconfig.get_path("scripts") + "/eyas", found
    for arguments in ([found], [sys.executable, "-m", "eyas"]):
        run = subprocess.run([*arguments, "--version"], check=True, capture_output=True, text=True)
        assert run.stdout.startswith("eyas "), run
    programs = [
        example
        for document in DOCUMENTS
        for example in examples(document)
        if not OTHER_PACKAGES.search(example)
    ]
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory)) as server:
        for program in programs:
            # -W error: deprecated features of Python must not be used.
            arguments = [sys.executable, "-W", "error", "-c", with_port(server, program)]
            run = subprocess.run(arguments, capture_output=True, text=True, cwd=directory, check=False)
            assert (run.returncode, run.stderr) == (0, ""), f"{program}\n{run}"
    version = sys.version.split()[0]
    print(f"Python {version} with only the wheel: the command, and {len(programs)} examples")


if __name__ == "__main__":
    main()
