"""What somebody does first who has Python and the wheel, and nothing else: the command, then the examples.

`cargo xtask python` runs this with each version of Python that it finds, in an environment in which nothing else
is installed.
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

from served import DOCUMENTS, at, examples, serving

#: What environments have from the beginning.
FROM_THE_BEGINNING = {"pip", "setuptools"}
#: Programs in which others than eyas are imported.
OTHERS = re.compile(r"^import (httpx|requests)", re.MULTILINE)


def main() -> None:
    installed = {distribution.name for distribution in importlib.metadata.distributions()}
    assert installed - FROM_THE_BEGINNING == {"eyas"}, installed
    found = shutil.which("eyas")
    assert found == sysconfig.get_path("scripts") + "/eyas", found
    for words in ([found], [sys.executable, "-m", "eyas"]):
        said = subprocess.run([*words, "--version"], check=True, capture_output=True, text=True)
        assert said.stdout.startswith("eyas "), said
    programs = [
        example
        for document in DOCUMENTS
        for example in examples(document)
        if not OTHERS.search(example)
    ]
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory)) as server:
        for program in programs:
            # -W error: what a new version of Python is about to take away is not used.
            words = [sys.executable, "-W", "error", "-c", at(server, program)]
            ran = subprocess.run(words, capture_output=True, text=True, cwd=directory, check=False)
            assert (ran.returncode, ran.stderr) == (0, ""), f"{program}\n{ran}"
    version = sys.version.split()[0]
    print(f"Python {version} alone: the command, and {len(programs)} programs of the documents")


if __name__ == "__main__":
    main()
