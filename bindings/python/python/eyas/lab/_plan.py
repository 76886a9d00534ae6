"""Experiments, before they are run."""

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
    """An experiment: what is simulated, what is compared, what is claimed."""

    name: str
    #: One line.
    title: str
    #: What it shows.
    about: str
    #: Whether it runs on real sockets, in real time: such a plan is for the command.
    live: bool
    #: How many situations it has.
    points: int
    #: Runs of each of them.
    runs: int
    #: How many claims it judges.
    claims: int
    #: The TOML that it was read from.
    text: str = dataclasses.field(repr=False)


#: A plan, the name of one that comes with eyas, a file, or what would stand in one.
PlanSource: TypeAlias = "Plan | str | os.PathLike[str] | Mapping[str, Any]"


def plans() -> tuple[Plan, ...]:
    """The experiments that come with eyas."""
    return tuple(_read(text) for _, text in _native.lab_plans())


def load(source: PlanSource) -> Plan:
    """A plan by its name, from a file, or from a mapping with the keys of a file.

    A text without a slash or a dot is a name. A mapping is written as TOML, so `None` has no place in it.
    """
    if isinstance(source, Plan):
        return source
    if isinstance(source, Mapping):
        return _read(_native.lab_text(json.dumps(source)))
    text = dict(_native.lab_plans()).get(os.fspath(source)) if isinstance(source, str) else None
    if text is None:
        if isinstance(source, str) and not {"/", "."} & set(source):
            names = ", ".join(name for name, _ in _native.lab_plans())
            raise PlanError(f"there is no plan {source!r}; those that come with eyas are {names}")
        text = Path(source).read_text(encoding="utf-8")
    return _read(text)


def _read(text: str) -> Plan:
    facts: dict[str, Any] = json.loads(_native.LabPlan(text, "full", None, []).facts())
    return Plan(**facts, text=text)
