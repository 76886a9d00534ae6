"""A server of the wheel's own command, and the examples of the documents. Requires only the wheel."""

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
    """A running `eyas serve`."""

    url: str
    port: int
    #: The trusted root, a PEM file.
    roots: Path
    #: The working directory of the server.
    directory: Path


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[Server]:
    """Runs a server with a small site."""
    site = directory / "site"
    site.mkdir()
    (site / "greeting.txt").write_text("grüß dich\nzweite Zeile\n", encoding="utf-8")
    roots = directory / "ca.pem"
    arguments = ["serve", "--listen", "127.0.0.1:0", "--no-sctp", "--json", "--save-cert", str(roots)]
    with subprocess.Popen(
        [command(), *arguments, str(site)], stdout=subprocess.PIPE, text=True, cwd=directory
    ) as child:
        try:
            assert child.stdout is not None
            output = ""
            while not output.rstrip().endswith("}"):
                line = child.stdout.readline()
                assert line, f"the server exited; its output was {output!r}"
                output += line
            port = int(json.loads(output)["address"].rpartition(":")[2])
            yield Server(f"https://localhost:{port}", port, roots, directory)
        finally:
            child.terminate()


def examples(document: Path) -> list[str]:
    """Returns the programs in a document."""
    return re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)


def with_port(server: Server, example: str) -> str:
    """Returns an example with the port of a server instead of its own."""
    program = example.replace("localhost:8443", f"localhost:{server.port}")
    return program.replace('"localhost", 8443', f'"localhost", {server.port}')
