"""Runs the examples of the documents, with the port of a test server."""

from __future__ import annotations

from importlib.metadata import version

import eyas
import pytest
from helpers import DOCUMENTS, Server, examples, with_port

EXAMPLES = [
    pytest.param(example, id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, example in enumerate(examples(document), 1)
]


def test_the_version_is_that_of_the_package() -> None:
    assert eyas.__version__ == version("eyas")


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(server.directory)
    exec(compile(with_port(server, example), "example", "exec"), {"__name__": "__main__"})
