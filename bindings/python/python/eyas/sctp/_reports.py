"""Messages, and what associations say of themselves."""

from __future__ import annotations

import dataclasses
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Message:
    """A message that came in, or a part of one (`SCTP_RCVINFO`)."""

    data: bytes
    #: The stream on which it came.
    stream: int
    #: The payload protocol identifier, as a number of this host.
    ppid: int
    #: Whether it could overtake the others of its stream.
    unordered: bool
    #: Whether this is the first part of it.
    begins: bool
    #: Whether this is the last part of it. A message larger than a quarter of the receive buffer
    #: comes in parts, all of them on its stream.
    ends: bool


@dataclasses.dataclass(frozen=True)
class Path:
    """A path at one moment: one to each address of the peer (`SCTP_GET_PEER_ADDR_INFO`)."""

    #: Its number, which `set_primary` and `send` take.
    path: int
    #: The peer's address.
    remote: str
    #: Our address, if it is not left to the routing.
    local: str | None
    #: The peer's UDP port, if it runs inside UDP.
    udp_port: int | None
    #: `unconfirmed`, `active`, `potentially-failed` or `inactive`.
    state: str
    #: The smoothed round trip, once measured.
    rtt_ms: float | None
    #: The retransmission timeout.
    rto_ms: float
    #: The congestion window, in bytes of user data.
    window: int
    #: Bytes of user data under way.
    outstanding: int
    #: Bytes of the largest SCTP packet that goes on it.
    mtu: int


@dataclasses.dataclass(frozen=True)
class Status:
    """An association at one moment (`SCTP_STATUS`)."""

    #: `cookie-wait`, `cookie-echoed`, `established`, `shutdown-pending`, `shutdown-sent`,
    #: `shutdown-received`, `shutdown-ack-sent` or `closed`.
    state: str
    #: Our SCTP port.
    local_port: int
    #: The peer's SCTP port.
    remote_port: int
    #: Streams that this side may send on.
    outbound_streams: int
    #: Streams that the peer may send on.
    inbound_streams: int
    #: Our window, in bytes of user data.
    window: int
    #: The peer's window, in bytes of user data.
    peer_window: int
    #: Bytes of user data handed in and not yet acknowledged.
    queued: int
    #: The number of the path that new data takes.
    primary: int
    paths: tuple[Path, ...]

    @classmethod
    def _of(cls, text: str) -> Status:
        members: dict[str, Any] = json.loads(text)
        paths = tuple(Path(**path) for path in members.pop("paths"))
        return cls(**members, paths=paths)


@dataclasses.dataclass(frozen=True)
class Event:
    """A notification (RFC 6458 §6.1): `event` names it, and what is beside it depends on that.

    | `event` | beside it | RFC 6458 |
    | --- | --- | --- |
    | `up` | `outbound`, `inbound` (streams), `by_peer` | `SCTP_COMM_UP` |
    | `answered` | | |
    | `restarted` | | `SCTP_RESTART` |
    | `lost` | `reason` | `SCTP_COMM_LOST`, `SCTP_CANT_STR_ASSOC` |
    | `peer-shutdown` | | `SCTP_SHUTDOWN_EVENT` |
    | `closed` | | `SCTP_SHUTDOWN_COMP` |
    | `path` | `path`, `remote`, `change` | `SCTP_PEER_ADDR_CHANGE` |
    | `own-address` | `address`, `change`, `cause` | |
    | `send-failed` | `stream`, `ppid`, `context`, `unordered`, `sent`, `size` | `SCTP_SEND_FAILED_EVENT` |
    | `sender-dry` | | `SCTP_SENDER_DRY_EVENT` |
    | `partial-delivery-aborted` | `stream` | `SCTP_PARTIAL_DELIVERY_EVENT` |
    | `streams-reset` | `outgoing`, `streams`, `outcome` | `SCTP_STREAM_RESET_EVENT` |
    | `streams-added` | `outbound`, `inbound`, `outcome` | `SCTP_STREAM_CHANGE_EVENT` |
    | `association-reset` | `outcome` | `SCTP_ASSOC_RESET_EVENT` |
    | `remote-error` | `cause` | `SCTP_REMOTE_ERROR` |
    """

    event: str
    #: What is beside the name, as in `facts["change"]`.
    facts: dict[str, Any]
    #: The message that could not be sent, with `send-failed`.
    data: bytes | None = None

    @classmethod
    def _of(cls, told: tuple[str, bytes | None]) -> Event:
        facts: dict[str, Any] = json.loads(told[0])
        return cls(facts.pop("event"), facts, told[1])
