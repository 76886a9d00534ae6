"""The examples of the documents run, against a server at another port than they say."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import SOON, Server

PACKAGE = Path(__file__).resolve().parent.parent
DOCUMENTS = [PACKAGE / "README.md", PACKAGE.parent.parent / "docs" / "python.md"]
EXAMPLES = [
    pytest.param(example, id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, example in enumerate(
        re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL), 1
    )
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(server.directory)
    there = example.replace("localhost:8443", f"localhost:{server.port}")
    there = there.replace('"localhost", 8443', f'"localhost", {server.port}')
    exec(compile(there, "example", "exec"), {"__name__": "__main__"})


def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    formats: Any = importlib.import_module("nbformat")
    clients: Any = importlib.import_module("nbclient")
    # A kernel of this very interpreter, whatever others are installed for the user.
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    specification = {"argv": start, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(specification))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = formats.read(PACKAGE.parent.parent / "docs" / "lab.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept"
    resources = {"metadata": {"path": str(tmp_path)}}
    client = clients.NotebookClient(notebook, timeout=4 * SOON, resources=resources)
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert sum("&lt;svg" in page for page in pages) == 2
