"""Races and plans as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._reports import Attempt, Dropped, Entry, Plan, Race

#: What became of an attempt, at a time since the start of the race.
_OUTCOMES = {
    "won": "won{}",
    "upgraded": "ready{}, and took over",
    "lost": "ready{}, another had won",
    "failed": "failed{}",
    "closed": "closed{}, not needed any more",
    "under-way": "under way",
}


def milliseconds(time: float) -> str:
    """A time for people."""
    if time >= 1000:
        return f"{time / 1000:.2f}".rstrip("0").rstrip(".") + " s"
    return f"{time:.1f}".removesuffix(".0") + " ms"


def name(what: Attempt | Entry | Dropped) -> str:
    """A candidate."""
    security = "" if what.security == "none" else f" {what.security}"
    return f"{what.transport}{security} {what.address}"


def became(attempt: Attempt) -> str:
    """How an attempt ended, and when."""
    when = "" if attempt.ended_ms is None else f" at {milliseconds(attempt.ended_ms)}"
    return _OUTCOMES.get(attempt.outcome, attempt.outcome + "{}").format(when)


def of_race(race: Race) -> Iterator[str]:
    """A line for each question and each attempt, and the reasons of the plan."""
    for question in race.dns:
        answer = "no answer yet"
        if question.answered_ms is not None:
            answer = question.failure or f"{question.records} records"
            answer += f" after {milliseconds(question.answered_ms - question.asked_ms)}"
        yield f"dns {question.type} {question.name}: {answer}"
    for attempt in race.attempts:
        yield (
            f"{name(attempt)}: started at {milliseconds(attempt.started_ms)}, {became(attempt)}"
        )
        if attempt.reason is not None:
            yield f"    {attempt.reason}"
    if race.upgraded_to is not None:
        yield f"new work goes over {race.upgraded_to}"
    if race.failure is not None:
        yield race.failure
    yield from of_plan(race.plan)


def of_plan(plan: Plan) -> Iterator[str]:
    """The entries with their reasons, then what was left out."""
    for place, entry in enumerate(plan.entries, start=1):
        yield f"{place}. {name(entry)}, from {milliseconds(entry.starts_ms)} on"
        yield from (f"    {reason}" for reason in entry.reasons)
    for dropped in plan.dropped:
        yield f"not {name(dropped)}"
        yield from (f"    {reason}" for reason in dropped.reasons)
    yield from plan.notes
