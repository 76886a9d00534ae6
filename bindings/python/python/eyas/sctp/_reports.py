"""Messages, and reports on associations."""

from __future__ import annotations

import dataclasses
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Message:
    """A received message, or part of one (`SCTP_RCVINFO`)."""

    data: bytes
    #: The stream on which it arrived.
    stream: int
    #: The payload protocol identifier, in host byte order.
    ppid: int
    #: Whether it was allowed to overtake others on its stream.
    unordered: bool
    #: Whether this is the first part.
    begins: bool
    #: Whether this is the last part. A message larger than a quarter of the receive buffer is delivered in parts, all
    #: of them on its stream.
    ends: bool


@dataclasses.dataclass(frozen=True)
class Path:
    """The state of a path at one moment. There is a path to each address of the peer (`SCTP_GET_PEER_ADDR_INFO`)."""

    #: Its number, which `set_primary` and `send` take.
    path: int
    #: The peer's address.
    remote: str
    #: Our address, unless it is left to routing.
    local: str | None
    #: The peer's UDP port, if the path runs inside UDP.
    udp_port: int | None
    #: `unconfirmed`, `active`, `potentially-failed` or `inactive`.
    state: str
    #: The smoothed round-trip time, once measured.
    rtt_ms: float | None
    #: The retransmission timeout.
    rto_ms: float
    #: The congestion window, in bytes of user data.
    window: int
    #: Bytes of user data in flight.
    outstanding: int
    #: The maximum size of an SCTP packet on this path, in bytes.
    mtu: int


@dataclasses.dataclass(frozen=True)
class Status:
    """The state of an association at one moment (`SCTP_STATUS`)."""

    #: `cookie-wait`, `cookie-echoed`, `established`, `shutdown-pending`, `shutdown-sent`,
    #: `shutdown-received`, `shutdown-ack-sent` or `closed`.
    state: str
    #: Our SCTP port.
    local_port: int
    #: The peer's SCTP port.
    remote_port: int
    #: The number of streams on which this side may send.
    outbound_streams: int
    #: The number of streams on which the peer may send.
    inbound_streams: int
    #: Our receive window, in bytes of user data.
    window: int
    #: The peer's receive window, in bytes of user data.
    peer_window: int
    #: Bytes of user data that were sent by the program and are not yet acknowledged.
    queued: int
    #: The number of the primary path.
    primary: int
    paths: tuple[Path, ...]

    @classmethod
    def _from_json(cls, text: str) -> Status:
        members: dict[str, Any] = json.loads(text)
        paths = tuple(Path(**path) for path in members.pop("paths"))
        return cls(**members, paths=paths)


@dataclasses.dataclass(frozen=True)
class Event:
    """A notification (RFC 6458 §6.1). `event` is its name, on which the members of `facts` depend.

    | `event` | `facts` | RFC 6458 |
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
    #: The other members, as in `facts["change"]`.
    facts: dict[str, Any]
    #: The message that could not be sent, with `send-failed`.
    data: bytes | None = None

    @classmethod
    def _from_native(cls, notification: tuple[str, bytes | None]) -> Event:
        facts: dict[str, Any] = json.loads(notification[0])
        return cls(facts.pop("event"), facts, notification[1])
