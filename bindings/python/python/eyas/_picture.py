"""Races and plans as lines of text and as a drawing."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._reports import Attempt, Plan, Race

_OUTCOMES = {
    "won": "won",
    "upgraded": "ready later, and took over",
    "lost": "works, but another had won",
    "failed": "failed",
    "closed": "closed, not needed any more",
    "under-way": "under way",
}

#: Of the drawing, in pixels.
_LABEL, _WIDTH, _LANE = 260, 480, 22


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


def _became(attempt: Attempt) -> str:
    when = "" if attempt.ended_ms is None else f" after {_time(attempt.ended_ms)}"
    return f"{_OUTCOMES.get(attempt.outcome, attempt.outcome)}{when}"


def race_lines(race: Race) -> Iterator[str]:
    """A line for each question and each attempt, and the reasons of the plan."""
    for question in race.dns:
        answer = "no answer yet"
        if question.answered_ms is not None:
            answer = question.failure or f"{question.records} records"
            answer += f" after {_time(question.answered_ms - question.asked_ms)}"
        yield f"dns {question.type} {question.name}: {answer}"
    for attempt in race.attempts:
        yield (
            f"{attempt.transport} {attempt.address}: started at {_time(attempt.started_ms)}, "
            f"{_became(attempt)}"
        )
        if attempt.reason is not None:
            yield f"    {attempt.reason}"
    if race.upgraded_to is not None:
        yield f"new work goes over {race.upgraded_to}"
    if race.failure is not None:
        yield race.failure
    yield from plan_lines(race.plan)


def plan_lines(plan: Plan) -> Iterator[str]:
    """The entries with their reasons, then what was left out."""
    for place, entry in enumerate(plan.entries, start=1):
        yield f"{place}. {entry.transport} {entry.address}, from {_time(entry.starts_ms)} on"
        yield from (f"    {reason}" for reason in entry.reasons)
    for dropped in plan.dropped:
        yield f"not {dropped.transport} {dropped.address}"
        yield from (f"    {reason}" for reason in dropped.reasons)
    yield from plan.notes


def timeline(race: Race) -> str:
    """A lane for each attempt, as SVG."""
    ends = [attempt.ended_ms or attempt.started_ms for attempt in race.attempts]
    whole = max([*ends, 1.0])
    height = _LANE * len(race.attempts) + _LANE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABEL + _WIDTH + 240}" '
        f'height="{height}" font-family="monospace" font-size="12">'
    ]
    for lane, attempt in enumerate(race.attempts):
        top = lane * _LANE
        start = _LABEL + attempt.started_ms / whole * _WIDTH
        end = _LABEL + (whole if attempt.ended_ms is None else attempt.ended_ms) / whole * _WIDTH
        colour = {"won": "#2a7d2e", "upgraded": "#2a7d2e", "failed": "#b3261e"}
        fill = colour.get(attempt.outcome, "#8a8a8a")
        name = html.escape(f"{attempt.transport} {attempt.address}")
        parts.append(
            f'<text x="0" y="{top + 15}">{name}</text>'
            f'<rect x="{start:.1f}" y="{top + 5}" width="{max(end - start, 1):.1f}" height="12" '
            f'fill="{fill}"><title>{html.escape(attempt.reason or "")}</title></rect>'
            f'<text x="{end + 6:.1f}" y="{top + 15}">{html.escape(_became(attempt))}</text>'
        )
    parts.append(
        f'<text x="{_LABEL}" y="{height - 6}">0</text>'
        f'<text x="{_LABEL + _WIDTH}" y="{height - 6}">{_time(whole)}</text></svg>'
    )
    return "".join(parts)
