"""Races and plans as drawings: a lane for each question and each attempt, time from left to right."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._lines import became, milliseconds, name

if TYPE_CHECKING:
    from ._reports import Attempt, DnsQuery, Entry, Plan, Race

#: Of the drawing, in pixels: what there is for names, for time and for notes, and the height of a lane.
_NAMES, _TIME, _NOTES, _LANE = 290, 400, 320, 22
#: The width of a letter.
_LETTER = 7.3
#: Colours that can be told apart on light and on dark pages; texts have the colour of the page's.
_WON, _READY, _FAILED, _ASKED = "#1f8f3f", "#3d83b8", "#c8372d", "#8a8a8a"
_COLOURS = {"won": _WON, "upgraded": _WON, "lost": _READY, "failed": _FAILED}
#: Outcomes with which a lane ends when something happened, and not because nothing did.
_GOOD = {"won", "upgraded", "lost"}


@dataclasses.dataclass(frozen=True)
class _Lane:
    name: str
    start: float
    #: `None` if it has none, as what is only planned.
    end: float | None
    colour: str
    note: str
    #: What is shown of it under the pointer.
    more: str = ""


def of_race(race: Race) -> str:
    """How it ran, as SVG. What goes on after the last attempt that worked is cut off."""
    lanes = [_asked(question) for question in race.dns]
    lanes += [_tried(attempt) for attempt in race.attempts]
    worked = [
        attempt.ended_ms or attempt.started_ms
        for attempt in race.attempts
        if attempt.outcome in _GOOD
    ]
    starts = [attempt.started_ms for attempt in race.attempts]
    ends = worked or [lane.end or 0 for lane in lanes if lane.end != math.inf]
    title = f"{race.winner.transport} won" if race.winner else race.failure or "nothing won"
    return _drawing(lanes, max([*starts, *ends, 1.0]), title)


def of_plan(plan: Plan) -> str:
    """When what would be tried, as SVG."""
    lanes = [_planned(entry) for entry in plan.entries]
    return _drawing(lanes, max([*(lane.start for lane in lanes), 1.0]), "What would be tried")


def _asked(question: DnsQuery) -> _Lane:
    answer = question.failure or f"{question.records} records"
    if question.answered_ms is None:
        answer = "no answer yet"
    asked = f"dns {question.type} {question.name}"
    return _Lane(asked, question.asked_ms, question.answered_ms or math.inf, _ASKED, answer)


def _tried(attempt: Attempt) -> _Lane:
    return _Lane(
        name(attempt),
        attempt.started_ms,
        math.inf if attempt.ended_ms is None else attempt.ended_ms,
        _COLOURS.get(attempt.outcome, _ASKED),
        became(attempt),
        attempt.reason or "",
    )


def _planned(entry: Entry) -> _Lane:
    note = f"from {milliseconds(entry.starts_ms)} on"
    if entry.from_memory:
        note += ", as remembered"
    return _Lane(name(entry), entry.starts_ms, None, _READY, note, "; ".join(entry.reasons))


def _drawing(lanes: Sequence[_Lane], last: float, title: str) -> str:
    width, height = _NAMES + _TIME + _NOTES, _LANE * (len(lanes) + 1)
    step = _step(last)
    whole = math.ceil(last / step) * step
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" style="max-width: 100%; height: auto" font-family="monospace" '
        f'font-size="12" fill="currentColor" role="img"><title>{html.escape(title)}</title>'
    ]
    for place in range(round(whole / step) + 1):
        x = _NAMES + place * step / whole * _TIME
        anchor = "start" if place == 0 else "middle"
        parts.append(
            f'<text x="{x:.1f}" y="13" text-anchor="{anchor}" opacity="0.7">'
            f"{milliseconds(place * step) if place else '0'}</text>"
            f'<path d="M{x:.1f} {_LANE}V{height}" stroke="currentColor" opacity="0.15"/>'
        )
    for row, lane in enumerate(lanes, start=1):
        parts.extend(_drawn(lane, row * _LANE, whole))
    return "".join([*parts, "</svg>"])


def _step(last: float) -> float:
    """Between two lines of the grid: 1, 2 or 5 of something, four steps or a few more."""
    least = last / 5
    power: float = 10 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * 0.999)


def _drawn(lane: _Lane, top: int, whole: float) -> list[str]:
    start = _NAMES + lane.start / whole * _TIME
    middle = top + _LANE / 2
    if lane.end is None:
        after = start + 6
        mark = f'<circle cx="{start:.1f}" cy="{middle}" r="5" fill="{lane.colour}">'
        shape = f"{mark}{_more(lane)}</circle>"
    else:
        end = max(_NAMES + min(lane.end / whole, 1) * _TIME, start + 2)
        after = end
        bar = f'<rect x="{start:.1f}" y="{top + 5}" width="{end - start:.1f}" height="12"'
        shape = f'{bar} fill="{lane.colour}">{_more(lane)}</rect>'
        if lane.end > whole:
            # It goes on, beyond the edge.
            after = end + 8
            shape += f'<path d="M{end:.1f} {top + 5}l8 6l-8 6z" fill="{lane.colour}"/>'
    return [
        f'<text x="0" y="{top + 15}">{html.escape(_short(lane.name))}</text>{shape}'
        f'<text x="{after + 6:.1f}" y="{top + 15}">{html.escape(lane.note)}</text>'
    ]


def _more(lane: _Lane) -> str:
    whole = f"{lane.name}: {lane.more}" if lane.more else lane.name
    return f"<title>{html.escape(whole)}</title>"


def _short(name: str) -> str:
    room = int(_NAMES / _LETTER) - 1
    return name if len(name) <= room else f"{name[: room - 1]}…"
