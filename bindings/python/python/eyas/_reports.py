"""What connections, races and plans say about themselves: the objects of `eyas --json` as dataclasses.

All times are in milliseconds and count from the moment the connection was asked for.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from . import _lines, _timeline


@dataclasses.dataclass(frozen=True)
class Timings:
    """When what was reached."""

    #: DNS had given the first address.
    dns_ms: float | None
    #: The winning attempt was started.
    started_ms: float
    #: The peer answered.
    answered_ms: float | None
    #: The transport was up.
    transport_ms: float | None
    #: The security layer was up.
    security_ms: float | None


@dataclasses.dataclass(frozen=True)
class ConnectionInfo:
    """What a connection is, where it runs, and why it was chosen."""

    #: `tcp`, `mptcp`, `quic`, `sctp` or `sctp-udp`.
    transport: str
    #: Whether MPTCP was asked for and TCP is what came of it.
    fell_back: bool
    #: `none`, `tls` or `dtls`.
    security: str
    #: The version of the security protocol, such as `TLSv1.3`.
    protocol: str | None
    #: The cipher suite agreed on.
    cipher_suite: str | None
    #: Our address and port.
    local: str | None
    #: The peer's address and port.
    remote: str
    #: The application protocol agreed on.
    alpn: str | None
    #: The round trip of the handshake.
    rtt_ms: float | None
    #: Whether the memory led here.
    from_memory: bool
    #: Why this candidate stood where it stood, for people.
    reasons: tuple[str, ...]
    timings: Timings

    @classmethod
    def _of(cls, text: str) -> ConnectionInfo:
        members: dict[str, Any] = json.loads(text)
        timings = Timings(**members.pop("timings"))
        return cls(**_tuples(members), timings=timings)


@dataclasses.dataclass(frozen=True)
class Winner:
    """The attempt that won."""

    transport: str
    security: str
    address: str
    ready_ms: float


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One candidate that was tried."""

    transport: str
    security: str
    address: str
    started_ms: float
    #: `None` while it is under way.
    ended_ms: float | None
    #: How far it came: `started`, `answered`, `transport`, `security` or `first-byte`.
    level: str
    #: `won`, `upgraded`, `lost`, `failed`, `closed` or `under-way`.
    outcome: str
    #: Why it failed or was closed, or why it had its place.
    reason: str | None


@dataclasses.dataclass(frozen=True)
class DnsQuery:
    """One question to DNS."""

    name: str
    #: `HTTPS`, `AAAA` or `A`.
    type: str
    asked_ms: float
    answered_ms: float | None
    #: How many records came.
    records: int
    #: Why none came.
    failure: str | None


@dataclasses.dataclass(frozen=True)
class Entry:
    """A candidate that would be tried."""

    transport: str
    security: str
    address: str
    alpn: tuple[str, ...]
    #: How long after the first it starts, if none before it is ready or fails.
    starts_ms: float
    initial_rtt_ms: float | None
    from_memory: bool
    #: Whether it is tried only beside a working connection, to see whether it works again.
    retest: bool
    reasons: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Dropped:
    """A candidate that would not be tried."""

    transport: str
    security: str
    address: str
    reasons: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What would be tried, in which order, and why."""

    entries: tuple[Entry, ...]
    dropped: tuple[Dropped, ...]
    #: What did not come to be a candidate at all, and why.
    notes: tuple[str, ...]

    def explain(self) -> str:
        """The plan in lines for people."""
        return "\n".join(_lines.of_plan(self))

    def _repr_html_(self) -> str:
        """When what would be tried, for notebooks."""
        return _timeline.of_plan(self)

    @classmethod
    def _of(cls, members: dict[str, Any]) -> Plan:
        return cls(
            entries=tuple(Entry(**_tuples(entry)) for entry in members["entries"]),
            dropped=tuple(Dropped(**_tuples(dropped)) for dropped in members["dropped"]),
            notes=tuple(members["notes"]),
        )


@dataclasses.dataclass(frozen=True)
class Race:
    """How a race ran."""

    #: What won, if anything did.
    winner: Winner | None
    #: Every attempt, in the order of starting.
    attempts: tuple[Attempt, ...]
    #: Whether the memory led to the winner.
    from_memory: bool
    #: The transport that was ready later and took over.
    upgraded_to: str | None
    dns: tuple[DnsQuery, ...]
    #: The plan that it ran by.
    plan: Plan
    #: Why nothing won, in words.
    failure: str | None = None

    def explain(self) -> str:
        """What was tried, what became of it, and why, in lines for people."""
        return "\n".join(_lines.of_race(self))

    def _repr_html_(self) -> str:
        """The timeline, for notebooks."""
        return _timeline.of_race(self)

    @classmethod
    def _of(cls, text: str) -> Race:
        members: dict[str, Any] = json.loads(text)
        winner = members["winner"]
        return cls(
            winner=None if winner is None else Winner(**winner),
            attempts=tuple(Attempt(**attempt) for attempt in members["attempts"]),
            from_memory=members["from_memory"],
            upgraded_to=members["upgraded_to"],
            dns=tuple(DnsQuery(**question) for question in members["dns"]),
            plan=Plan._of(members["plan"]),
            failure=members.get("failure"),
        )


def _tuples(members: dict[str, Any]) -> dict[str, Any]:
    """The members, with tuples for lists: dataclasses that are frozen hold nothing that changes."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in members.items()
    }
