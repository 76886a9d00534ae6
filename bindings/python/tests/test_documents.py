"""The examples of the documents run, against a server at another port than they say."""

from __future__ import annotations

import pytest
from served import DOCUMENTS, Server, at, examples

EXAMPLES = [
    pytest.param(example, id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, example in enumerate(examples(document), 1)
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(server.directory)
    exec(compile(at(server, example), "example", "exec"), {"__name__": "__main__"})
