"""A server of the wheel's own command, and the examples of the documents. Requires only the wheel."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from eyas.__main__ import command

PACKAGE = Path(__file__).resolve().parent.parent
README = PACKAGE / "README.md"
#: Documents with examples, and examples that are programs of their own.
DOCUMENTS = [
    README,
    PACKAGE.parent.parent / "docs" / "guide" / "python.md",
    *sorted((PACKAGE / "examples").glob("*.py")),
]


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
    with running(directory, "--save-cert", str(roots), str(site)) as port:
        yield Server(f"https://localhost:{port}", port, roots, directory)


@contextlib.contextmanager
def running(directory: Path, *arguments: str, kill: bool = False) -> Iterator[int]:
    """Runs `eyas serve` and yields its port. It is killed in the end, or asked to terminate."""
    serve = ["serve", "--listen", "127.0.0.1:0", "--no-sctp", "--json", *arguments]
    with subprocess.Popen(
        [command(), *serve], stdout=subprocess.PIPE, text=True, cwd=directory
    ) as child:
        try:
            assert child.stdout is not None
            output = ""
            while not output.rstrip().endswith("}"):
                line = child.stdout.readline()
                assert line, f"the server exited; its output was {output!r}"
                output += line
            yield int(json.loads(output)["address"].rpartition(":")[2])
        finally:
            if kill:
                child.kill()
            else:
                child.terminate()


class Accepting:
    """A listener on a free port that handles its connections in a thread, until it is closed."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._accepted(connection)

    def _accepted(self, connection: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Stops accepting."""
        with contextlib.suppress(OSError):
            # Closing alone would not wake the thread in accept.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def examples(document: Path) -> list[str]:
    """Returns the programs in a document, or the program that it is."""
    if document.suffix == ".py":
        return [document.read_text()]
    return re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)


def with_port(server: Server, example: str) -> str:
    """Returns an example with the port of a server instead of its own."""
    program = example.replace("localhost:8443", f"localhost:{server.port}")
    return program.replace('"localhost", 8443', f'"localhost", {server.port}')
