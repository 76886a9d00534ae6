"""Races and plans as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._reports import Attempt, Dropped, Entry, Plan, Race

#: The text for each outcome, into which the time since the start of the race is inserted.
_OUTCOMES = {
    "won": "won{}",
    "upgraded": "ready{}, and took over",
    "lost": "ready{}, another had won",
    "failed": "failed{}",
    "closed": "closed{}, no longer needed",
    "under-way": "in progress",
}


def format_time(milliseconds: float) -> str:
    """Formats a time, in milliseconds or seconds."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.2f}".rstrip("0").rstrip(".") + " s"
    return f"{milliseconds:.1f}".removesuffix(".0") + " ms"


def candidate_name(candidate: Attempt | Entry | Dropped) -> str:
    """Returns the name of a candidate."""
    security = "" if candidate.security == "none" else f" {candidate.security}"
    return f"{candidate.transport}{security} {candidate.address}"


def format_outcome(attempt: Attempt) -> str:
    """Describes how and when an attempt ended."""
    when = "" if attempt.ended_ms is None else f" at {format_time(attempt.ended_ms)}"
    return _OUTCOMES.get(attempt.outcome, attempt.outcome + "{}").format(when)


def race_lines(race: Race) -> Iterator[str]:
    """Yields a line for each DNS query and each attempt, then the lines of the plan."""
    for query in race.dns:
        answer = "no answer yet"
        if query.answered_ms is not None:
            answer = query.failure or f"{query.records} records"
            answer += f" after {format_time(query.answered_ms - query.asked_ms)}"
        yield f"dns {query.type} {query.name}: {answer}"
    for attempt in race.attempts:
        started = format_time(attempt.started_ms)
        yield f"{candidate_name(attempt)}: started at {started}, {format_outcome(attempt)}"
        if attempt.reason is not None:
            yield f"    {attempt.reason}"
    if race.upgraded_to is not None:
        yield f"new requests use {race.upgraded_to}"
    if race.failure is not None:
        yield race.failure
    yield from plan_lines(race.plan)


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yields the entries with their reasons, then the dropped candidates."""
    for number, entry in enumerate(plan.entries, start=1):
        yield f"{number}. {candidate_name(entry)}, from {format_time(entry.starts_ms)} on"
        yield from (f"    {reason}" for reason in entry.reasons)
    for dropped in plan.dropped:
        yield f"not {candidate_name(dropped)}"
        yield from (f"    {reason}" for reason in dropped.reasons)
    yield from plan.notes
