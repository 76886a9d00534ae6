"""The common part of both kinds of associations and listeners: the calls that do not wait."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypedDict

from .. import _endpoint, _native
from .._endpoint import Endpoint, Verify
from .._errors import AssociationClosed
from .._identity import ServerIdentity
from .._listen_options import ListenOptions
from .._reports import ConnectionInfo, Race
from .._sctp_config import Config
from .._target import Target
from ._reports import Path, Status

#: The default transports: directly over IP, where possible, and inside UDP.
TRANSPORTS = ("sctp", "sctp-udp")


class SendOptions(TypedDict, total=False):
    """The options of a message (`SCTP_SNDINFO`, `SCTP_PRINFO`).

    By default, a message is sent on `stream` 0 with the payload protocol identifier `ppid` 0, in order and reliably.
    `unordered` allows it to overtake others. It is abandoned after `lifetime` seconds (RFC 3758), after
    `max_retransmissions`, or when the send buffer is full and a message with a lower `priority` number needs the room
    (RFC 7496). `path` is the number of a path to prefer while it works, `context` a number that is returned in the
    notification `send-failed`, and `sack_immediately` asks the peer to acknowledge without delay (RFC 7053).
    """

    stream: int
    ppid: int
    unordered: bool
    lifetime: float | None
    max_retransmissions: int | None
    priority: int | None
    path: int | None
    context: int
    sack_immediately: bool


@dataclasses.dataclass(frozen=True)
class SendParameters:
    """The options of a message, as the native part reads them."""

    stream: int = 0
    ppid: int = 0
    unordered: bool = False
    lifetime: float | None = None
    max_retransmissions: int | None = None
    priority: int | None = None
    path: int | None = None
    context: int = 0
    sack_immediately: bool = False


class BaseAssociation:
    """An association: messages on many streams, over one or several paths (RFC 9260)."""

    def __init__(self, raw: _native.RawAssociation) -> None:
        self._raw = raw

    @property
    def status(self) -> Status:
        """The current state of the association."""
        text = self._raw.status()
        if text is None:
            raise AssociationClosed("the association has ended")
        return Status._from_json(text)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The current paths, ordered by their numbers; none once the association has ended."""
        text = self._raw.status()
        return () if text is None else Status._from_json(text).paths

    @property
    def transport(self) -> str:
        """`sctp-udp` inside UDP, `sctp` directly over IP."""
        return "sctp-udp" if self._raw.is_encapsulated() else "sctp"

    @property
    def info(self) -> ConnectionInfo | None:
        """The connection that won the race; `None` if the peer opened the association."""
        text = self._raw.info()
        return None if text is None else ConnectionInfo._from_json(text)

    @property
    def race(self) -> Race | None:
        """The race for this association; `None` if the peer opened it."""
        text = self._raw.race()
        return None if text is None else Race._from_json(text)

    def queue(self, stream: int) -> tuple[int, int] | None:
        """How many bytes of this stream the send buffer holds: not yet sent, and sent but not yet acknowledged.

        Where streams use paths of their own, a program fills the stream that has the least. `None` once the association
        has ended.
        """
        return self._raw.queue(stream)

    def set_primary(self, path: int) -> None:
        """Makes this path the primary path, which new data uses."""
        self._raw.set_primary(path)

    def add_address(self, address: str) -> None:
        """Offers the peer another address of this host (RFC 5061).

        The notification `own-address` reports the result.
        """
        self._raw.add_address(address)

    def remove_address(self, address: str) -> None:
        """Withdraws an address of this host (RFC 5061).

        The notification `own-address` reports the result.
        """
        self._raw.remove_address(address)

    def set_peer_primary(self, address: str) -> None:
        """Asks the peer to use this local address as its primary destination (RFC 5061 §4.2.4)."""
        self._raw.set_peer_primary(address)

    def reset_streams(self, streams: Iterable[int] = (), *, outgoing: bool = True) -> None:
        """Resets our outgoing streams, or the peer's (RFC 6525); all of them if none are given.

        The notification `streams-reset` reports the result.
        """
        self._raw.reset_streams(outgoing, list(streams))

    def add_streams(self, outbound: int = 0, inbound: int = 0) -> None:
        """Requests additional streams (RFC 6525); the notification `streams-added` reports the result."""
        self._raw.add_streams(outbound, inbound)

    def abort(self, reason: str = "") -> None:
        """Ends the association immediately. The peer gets the reason; data that has not arrived is lost."""
        self._raw.abort(reason.encode())

    def __repr__(self) -> str:
        text = self._raw.status()
        state = "ended"
        if text is not None:
            status = Status._from_json(text)
            state = f"{status.state}, {len(status.paths)} paths"
        return f"<{type(self).__module__}.{type(self).__name__}, {state}>"


class BaseListener:
    """Accepts associations on an SCTP port."""

    def __init__(self, raw: _native.RawSctpListener) -> None:
        self._raw = raw
        #: The SCTP port.
        self.port = raw.port()
        #: The UDP port for SCTP inside UDP, if that is enabled.
        self.udp_port = raw.udp_port()

    @property
    def associations(self) -> int:
        """The number of associations, accepted or not.

        Associations in the kernel are not counted.
        """
        return self._raw.associations()

    def close(self) -> None:
        """Stops listening. Accepted associations stay open."""
        self._raw.close()


def create_target(
    host: str,
    port: int,
    transports: Sequence[str] | None,
    udp_port: int | None,
    dtls: bool,
    server_hostname: str | None,
    timeout: float | None,
) -> Target:
    """Returns the target of an association."""
    if transports is None:
        transports = ("sctp-udp",) if dtls else TRANSPORTS
    elif dtls and tuple(transports) != ("sctp-udp",):
        raise ValueError("DTLS is only available for SCTP inside UDP: transports must be ('sctp-udp',)")
    target = Target.create((host, port), transports, dtls, (), server_hostname, timeout)
    return dataclasses.replace(target, dtls=dtls, sctp_udp_port=udp_port)


def endpoint_for(
    endpoint: Endpoint | None, verify: Verify, config: Config | None, addresses: Sequence[str]
) -> Endpoint:
    """Returns the endpoint to use: a new one if there are options for this association."""
    if config is None and not addresses:
        return _endpoint.endpoint_for(endpoint, verify)
    if endpoint is not None:
        raise ValueError(
            "an endpoint has its own SCTP options: pass sctp= and sctp_addresses= to eyas.Endpoint"
        )
    return Endpoint(verify=verify, sctp=config, sctp_addresses=addresses)


def create_listener(
    host: str | None,
    port: int,
    transports: Sequence[str],
    udp_port: int | None,
    addresses: Sequence[str],
    identity: ServerIdentity | None,
    config: Config | None,
) -> _native.RawSctpListener:
    """Starts to listen."""
    options = ListenOptions.create(host, port, transports, (), udp_port, addresses, config)
    return _native.RawSctpListener(options, None if identity is None else identity._native)
