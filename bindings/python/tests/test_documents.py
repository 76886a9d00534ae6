"""The examples of the documents run, against a server at another port than they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Server

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
