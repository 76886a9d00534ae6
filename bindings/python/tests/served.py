"""A server of the wheel's own command, and the examples of the documents. Needs nothing but the wheel."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from eyas.__main__ import command

PACKAGE = Path(__file__).resolve().parent.parent
README = PACKAGE / "README.md"
DOCUMENTS = [README, PACKAGE.parent.parent / "docs" / "python.md"]


@dataclasses.dataclass(frozen=True)
class Server:
    """An `eyas serve`."""

    url: str
    port: int
    #: The certificate to trust, PEM.
    roots: Path
    #: What the server was started in.
    directory: Path


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[Server]:
    """A server with a small site."""
    site = directory / "site"
    site.mkdir()
    (site / "greeting.txt").write_text("grüß dich\nzweite Zeile\n", encoding="utf-8")
    roots = directory / "ca.pem"
    words = ["serve", "--listen", "127.0.0.1:0", "--no-sctp", "--json", "--save-cert", str(roots)]
    with subprocess.Popen(
        [command(), *words, str(site)], stdout=subprocess.PIPE, text=True, cwd=directory
    ) as child:
        try:
            assert child.stdout is not None
            said = ""
            while not said.rstrip().endswith("}"):
                line = child.stdout.readline()
                assert line, f"the server ended; it had said {said!r}"
                said += line
            port = int(json.loads(said)["address"].rpartition(":")[2])
            yield Server(f"https://localhost:{port}", port, roots, directory)
        finally:
            child.terminate()


def examples(document: Path) -> list[str]:
    """The programs in a document."""
    return re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)


def at(server: Server, example: str) -> str:
    """An example, with another port than it says."""
    there = example.replace("localhost:8443", f"localhost:{server.port}")
    return there.replace('"localhost", 8443', f'"localhost", {server.port}')
