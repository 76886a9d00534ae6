"""Races and plans as SVG timelines: a lane for each query and each attempt, time from left to right."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._explain import candidate_name, format_outcome, format_time

if TYPE_CHECKING:
    from ._reports import Attempt, DnsQuery, Entry, Plan, Race

#: In pixels: the widths for names, for the time axis and for notes, and the height of a lane.
_NAME_WIDTH, _TIME_WIDTH, _NOTE_WIDTH, _LANE_HEIGHT = 290, 400, 320, 22
#: The width of a character, in pixels.
_CHARACTER_WIDTH = 7.3
#: Colours that work on light and on dark pages; text has the page's own colour.
_WON, _READY, _FAILED, _NEUTRAL = "#1f8f3f", "#3d83b8", "#c8372d", "#8a8a8a"
_COLOURS = {"won": _WON, "upgraded": _WON, "lost": _READY, "failed": _FAILED}
#: Outcomes of attempts that connected, so that the time scale has to cover their end.
_READY_OUTCOMES = {"won", "upgraded", "lost"}


@dataclasses.dataclass(frozen=True)
class _Lane:
    name: str
    start: float
    #: `None` for an entry of a plan, which is only a point in time.
    end: float | None
    colour: str
    note: str
    #: Shown in the tooltip.
    details: str = ""


def draw_race(race: Race) -> str:
    """Draws a race as SVG, up to the last attempt that connected."""
    lanes = [_query_lane(query) for query in race.dns]
    lanes += [_attempt_lane(attempt) for attempt in race.attempts]
    connected = [
        attempt.ended_ms or attempt.started_ms
        for attempt in race.attempts
        if attempt.outcome in _READY_OUTCOMES
    ]
    starts = [attempt.started_ms for attempt in race.attempts]
    ends = connected or [lane.end or 0 for lane in lanes if lane.end != math.inf]
    title = f"{race.winner.transport} won" if race.winner else race.failure or "no winner"
    return _draw(lanes, max([*starts, *ends, 1.0]), title)


def draw_plan(plan: Plan) -> str:
    """Draws a plan as SVG."""
    lanes = [_entry_lane(entry) for entry in plan.entries]
    return _draw(lanes, max([*(lane.start for lane in lanes), 1.0]), "Plan")


def _query_lane(query: DnsQuery) -> _Lane:
    answer = query.failure or f"{query.records} records"
    if query.answered_ms is None:
        answer = "no answer yet"
    name = f"dns {query.type} {query.name}"
    return _Lane(name, query.asked_ms, query.answered_ms or math.inf, _NEUTRAL, answer)


def _attempt_lane(attempt: Attempt) -> _Lane:
    return _Lane(
        candidate_name(attempt),
        attempt.started_ms,
        math.inf if attempt.ended_ms is None else attempt.ended_ms,
        _COLOURS.get(attempt.outcome, _NEUTRAL),
        format_outcome(attempt),
        attempt.reason or "",
    )


def _entry_lane(entry: Entry) -> _Lane:
    note = f"from {format_time(entry.starts_ms)} on"
    if entry.from_memory:
        note += ", as remembered"
    return _Lane(candidate_name(entry), entry.starts_ms, None, _READY, note, "; ".join(entry.reasons))


def _draw(lanes: Sequence[_Lane], last: float, title: str) -> str:
    width, height = _NAME_WIDTH + _TIME_WIDTH + _NOTE_WIDTH, _LANE_HEIGHT * (len(lanes) + 1)
    step = _step(last)
    span = math.ceil(last / step) * step
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" style="max-width: 100%; height: auto" font-family="monospace" '
        f'font-size="12" fill="currentColor" role="img"><title>{html.escape(title)}</title>'
    ]
    for tick in range(round(span / step) + 1):
        x = _NAME_WIDTH + tick * step / span * _TIME_WIDTH
        anchor = "start" if tick == 0 else "middle"
        parts.append(
            f'<text x="{x:.1f}" y="13" text-anchor="{anchor}" opacity="0.7">'
            f"{format_time(tick * step) if tick else '0'}</text>"
            f'<path d="M{x:.1f} {_LANE_HEIGHT}V{height}" stroke="currentColor" opacity="0.15"/>'
        )
    for row, lane in enumerate(lanes, start=1):
        parts.extend(_draw_lane(lane, row * _LANE_HEIGHT, span))
    return "".join([*parts, "</svg>"])


def _step(last: float) -> float:
    """Returns the distance of the grid lines: 1, 2 or 5 times a power of ten, for about five lines."""
    least = last / 5
    power: float = 10 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * 0.999)


def _draw_lane(lane: _Lane, top: int, span: float) -> list[str]:
    start = _NAME_WIDTH + lane.start / span * _TIME_WIDTH
    middle = top + _LANE_HEIGHT / 2
    if lane.end is None:
        after = start + 6
        mark = f'<circle cx="{start:.1f}" cy="{middle}" r="5" fill="{lane.colour}">'
        shape = f"{mark}{_tooltip(lane)}</circle>"
    else:
        end = max(_NAME_WIDTH + min(lane.end / span, 1) * _TIME_WIDTH, start + 2)
        after = end
        bar = f'<rect x="{start:.1f}" y="{top + 5}" width="{end - start:.1f}" height="12"'
        shape = f'{bar} fill="{lane.colour}">{_tooltip(lane)}</rect>'
        if lane.end > span:
            # An arrow: it continues beyond the edge.
            after = end + 8
            shape += f'<path d="M{end:.1f} {top + 5}l8 6l-8 6z" fill="{lane.colour}"/>'
    return [
        f'<text x="0" y="{top + 15}">{html.escape(_shorten(lane.name))}</text>{shape}'
        f'<text x="{after + 6:.1f}" y="{top + 15}">{html.escape(lane.note)}</text>'
    ]


def _tooltip(lane: _Lane) -> str:
    text = f"{lane.name}: {lane.details}" if lane.details else lane.name
    return f"<title>{html.escape(text)}</title>"


def _shorten(name: str) -> str:
    maximum = int(_NAME_WIDTH / _CHARACTER_WIDTH) - 1
    return name if len(name) <= maximum else f"{name[: maximum - 1]}…"
