"""Reports on connections, races and plans: the objects of `eyas --json` as dataclasses.

All times are in milliseconds since the connection was requested.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from . import _explain, _timeline


@dataclasses.dataclass(frozen=True)
class Timings:
    """The milestones of a connection."""

    #: DNS returned the first address.
    dns_ms: float | None
    #: The winning attempt started.
    started_ms: float
    #: The peer answered.
    answered_ms: float | None
    #: The transport was established.
    transport_ms: float | None
    #: The security layer was established.
    security_ms: float | None


@dataclasses.dataclass(frozen=True)
class ConnectionInfo:
    """Describes a connection, and why it was chosen."""

    #: `tcp`, `mptcp`, `quic`, `sctp` or `sctp-udp`.
    transport: str
    #: Whether MPTCP was requested and the connection fell back to TCP.
    fell_back: bool
    #: `none`, `tls` or `dtls`.
    security: str
    #: The version of the security protocol, such as `TLSv1.3`.
    protocol: str | None
    #: The negotiated cipher suite.
    cipher_suite: str | None
    #: The group of TLS's key exchange, such as `X25519MLKEM768`, if it is known.
    key_exchange: str | None
    #: What became of Encrypted ClientHello: `accepted`, `turned-off` or `grease`.
    ech: str | None
    #: The local address and port.
    local: str | None
    #: The peer's address and port.
    remote: str
    #: The negotiated application protocol.
    alpn: str | None
    #: The round-trip time of the handshake.
    rtt_ms: float | None
    #: Whether the memory led to this candidate.
    from_memory: bool
    #: Why this candidate had its place in the plan.
    reasons: tuple[str, ...]
    timings: Timings

    @classmethod
    def _from_json(cls, text: str) -> ConnectionInfo:
        members: dict[str, Any] = json.loads(text)
        timings = Timings(**members.pop("timings"))
        return cls(**_with_tuples(members), timings=timings)


@dataclasses.dataclass(frozen=True)
class Winner:
    """The attempt that won."""

    transport: str
    security: str
    address: str
    ready_ms: float


@dataclasses.dataclass(frozen=True)
class Attempt:
    """An attempted candidate."""

    #: The transport in use: `tcp` if MPTCP fell back to it.
    transport: str
    #: Whether MPTCP was requested, but the peer or the path supports only TCP.
    fell_back: bool
    #: Whether its ClientHello took one packet, because one of two does not get through.
    short_hello: bool
    security: str
    address: str
    started_ms: float
    #: `None` while it is in progress.
    ended_ms: float | None
    #: The last milestone: `started`, `answered`, `transport`, `security` or `first-byte`.
    level: str
    #: `won`, `upgraded`, `lost`, `failed`, `closed` or `under-way`.
    outcome: str
    #: Why it failed or was closed, or why it had its place in the plan.
    reason: str | None


@dataclasses.dataclass(frozen=True)
class DnsQuery:
    """A DNS query."""

    name: str
    #: `HTTPS`, `AAAA` or `A`.
    type: str
    asked_ms: float
    answered_ms: float | None
    #: The number of records in the answer.
    records: int
    #: Why the query failed.
    failure: str | None
    #: Whether an answer whose time to live was over came first, or is the only one.
    expired: bool = False


@dataclasses.dataclass(frozen=True)
class Entry:
    """A candidate that would be tried."""

    transport: str
    security: str
    address: str
    alpn: tuple[str, ...]
    #: When it starts, relative to the first entry, if no earlier one has succeeded or failed by then.
    starts_ms: float
    initial_rtt_ms: float | None
    from_memory: bool
    #: Whether it is only tried next to a working connection, to find out whether it works again.
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
    """A report on what would be tried, in which order, and why."""

    entries: tuple[Entry, ...]
    dropped: tuple[Dropped, ...]
    #: What did not become a candidate at all, and why.
    notes: tuple[str, ...]

    def explain(self) -> str:
        """Returns the plan as readable lines."""
        return "\n".join(_explain.plan_lines(self))

    def _repr_html_(self) -> str:
        """Returns the timeline of the plan, for notebooks."""
        return _timeline.draw_plan(self)

    @classmethod
    def _from_dict(cls, members: dict[str, Any]) -> Plan:
        return cls(
            entries=tuple(Entry(**_with_tuples(entry)) for entry in members["entries"]),
            dropped=tuple(Dropped(**_with_tuples(dropped)) for dropped in members["dropped"]),
            notes=tuple(members["notes"]),
        )


@dataclasses.dataclass(frozen=True)
class Race:
    """A report on a race."""

    #: `None` if no attempt won.
    winner: Winner | None
    #: All attempts, in the order in which they started.
    attempts: tuple[Attempt, ...]
    #: Whether the memory led to the winner.
    from_memory: bool
    #: The transport that was ready later and is used for new requests.
    upgraded_to: str | None
    dns: tuple[DnsQuery, ...]
    #: The plan that it followed.
    plan: Plan
    #: Why no attempt won.
    failure: str | None = None

    def explain(self) -> str:
        """Returns what was tried, with which outcome, and why, as readable lines."""
        return "\n".join(_explain.race_lines(self))

    def _repr_html_(self) -> str:
        """Returns the timeline of the race, for notebooks."""
        return _timeline.draw_race(self)

    @classmethod
    def _from_json(cls, text: str) -> Race:
        members: dict[str, Any] = json.loads(text)
        winner = members["winner"]
        return cls(
            winner=None if winner is None else Winner(**winner),
            attempts=tuple(Attempt(**attempt) for attempt in members["attempts"]),
            from_memory=members["from_memory"],
            upgraded_to=members["upgraded_to"],
            dns=tuple(DnsQuery(**query) for query in members["dns"]),
            plan=Plan._from_dict(members["plan"]),
            failure=members.get("failure"),
        )


def _with_tuples(members: dict[str, Any]) -> dict[str, Any]:
    """Converts the lists among the members to tuples, because frozen dataclasses should be immutable."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in members.items()
    }
