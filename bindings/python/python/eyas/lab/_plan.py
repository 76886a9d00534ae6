"""Plans of experiments."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from .. import _native
from ._errors import PlanError


@dataclasses.dataclass(frozen=True)
class Plan:
    """The plan of an experiment: what is simulated, what is compared, what is claimed."""

    name: str
    #: A title of one line.
    title: str
    #: What the experiment shows.
    about: str
    #: Whether it uses real sockets in real time, which only the command supports.
    live: bool
    #: The number of situations.
    points: int
    #: The number of runs per situation.
    runs: int
    #: The number of claims.
    claims: int
    #: The source text, in TOML.
    text: str = dataclasses.field(repr=False)


#: A plan, the name of a built-in one, the path of a file, or a mapping with the contents of a file.
PlanSource: TypeAlias = "Plan | str | os.PathLike[str] | Mapping[str, Any]"


def plans() -> tuple[Plan, ...]:
    """Returns the built-in plans."""
    return tuple(_read(text) for _, text in _native.lab_plans())


def load(source: PlanSource) -> Plan:
    """Loads a plan by its name, from a file, or from a mapping with the keys of a file.

    A string without a slash or a dot is a name. A mapping is converted to TOML, so it must not contain `None`.
    """
    if isinstance(source, Plan):
        return source
    if isinstance(source, Mapping):
        return _read(_native.lab_text(json.dumps(source)))
    text = dict(_native.lab_plans()).get(os.fspath(source)) if isinstance(source, str) else None
    if text is None:
        if isinstance(source, str) and not {"/", "."} & set(source):
            names = ", ".join(name for name, _ in _native.lab_plans())
            raise PlanError(f"there is no plan {source!r}; the built-in plans are {names}")
        text = Path(source).read_text(encoding="utf-8")
    return _read(text)


def _read(text: str) -> Plan:
    facts: dict[str, Any] = json.loads(_native.LabPlan(text, "full", None, []).facts())
    return Plan(**facts, text=text)
