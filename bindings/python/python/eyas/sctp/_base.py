"""What both forms of associations and listeners have: the calls that do not wait."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypedDict

from .. import _endpoint, _native
from .._endpoint import Endpoint, Verify
from .._errors import AssociationClosed
from .._identity import ServerIdentity
from .._place import Place
from .._reports import ConnectionInfo, Race
from .._sctp_config import Config
from .._target import Target
from ._reports import Path, Status

#: How a peer is reached unless said otherwise: directly over IP where that is possible, and inside UDP.
TRANSPORTS = ("sctp", "sctp-udp")


class SendOptions(TypedDict, total=False):
    """How a message is sent (`SCTP_SNDINFO`, `SCTP_PRINFO`).

    It goes out on `stream` 0 with the payload protocol identifier `ppid` 0, in order and reliably, unless
    said otherwise: `unordered` lets it overtake others; it is given up after `lifetime` seconds
    (RFC 3758), after so many `max_retransmissions`, or when the send buffer is full and one of a lower
    `priority` number wants in (RFC 7496). `path` is the number of a path to prefer while it works,
    `context` a number that the notification `send-failed` brings back, and `sack_immediately` asks the
    peer to acknowledge at once (RFC 7053).
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
class Sending:
    """The same, as the native part reads it."""

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
    """An association: messages on many streams, over one path or several (RFC 9260)."""

    def __init__(self, raw: _native.RawAssociation) -> None:
        self._raw = raw

    @property
    def status(self) -> Status:
        """Where it stands at this moment."""
        text = self._raw.status()
        if text is None:
            raise AssociationClosed("the association is over")
        return Status._of(text)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its paths at this moment, in the order of their numbers; none once it is over."""
        text = self._raw.status()
        return () if text is None else Status._of(text).paths

    @property
    def transport(self) -> str:
        """`sctp-udp` inside UDP, `sctp` directly over IP."""
        return "sctp-udp" if self._raw.is_encapsulated() else "sctp"

    @property
    def info(self) -> ConnectionInfo | None:
        """What won when it was opened; `None` if the peer opened it."""
        text = self._raw.info()
        return None if text is None else ConnectionInfo._of(text)

    @property
    def race(self) -> Race | None:
        """The race that led to it; `None` if the peer opened it."""
        text = self._raw.race()
        return None if text is None else Race._of(text)

    def set_primary(self, path: int) -> None:
        """Makes this path the primary one, which new data takes."""
        self._raw.set_primary(path)

    def add_address(self, address: str) -> None:
        """Tells the peer of another address of this host (RFC 5061).

        The notification `own-address` says how that went.
        """
        self._raw.add_address(address)

    def remove_address(self, address: str) -> None:
        """Takes an address of this host back (RFC 5061).

        The notification `own-address` says how that went.
        """
        self._raw.remove_address(address)

    def set_peer_primary(self, address: str) -> None:
        """Asks the peer to send to this address of ours first (RFC 5061 §4.2.4)."""
        self._raw.set_peer_primary(address)

    def reset_streams(self, streams: Iterable[int] = (), *, outgoing: bool = True) -> None:
        """Resets our outgoing streams, or the peer's (RFC 6525): `streams-reset` says how that went.

        All of them, if none is named.
        """
        self._raw.reset_streams(outgoing, list(streams))

    def add_streams(self, outbound: int = 0, inbound: int = 0) -> None:
        """Asks for so many more streams (RFC 6525): `streams-added` says how that went."""
        self._raw.add_streams(outbound, inbound)

    def abort(self, reason: str = "") -> None:
        """Ends it at once; the peer is told the reason, and what has not arrived is lost."""
        self._raw.abort(reason.encode())

    def __repr__(self) -> str:
        text = self._raw.status()
        said = "over"
        if text is not None:
            status = Status._of(text)
            said = f"{status.state}, {len(status.paths)} paths"
        return f"<{type(self).__module__}.{type(self).__name__}, {said}>"


class BaseListener:
    """Takes in associations at one SCTP port."""

    def __init__(self, raw: _native.RawSctpListener) -> None:
        self._raw = raw
        #: The SCTP port.
        self.port = raw.port()
        #: The UDP port at which SCTP inside UDP is awaited, if it is.
        self.udp_port = raw.udp_port()

    @property
    def associations(self) -> int:
        """How many associations there are, accepted or not.

        Those of a kernel that speaks SCTP do not count.
        """
        return self._raw.associations()

    def close(self) -> None:
        """Takes in no more; associations that were accepted live on."""
        self._raw.close()


def target(
    host: str,
    port: int,
    transports: Sequence[str] | None,
    udp_port: int | None,
    dtls: bool,
    server_hostname: str | None,
    timeout: float | None,
) -> Target:
    """Whom to open an association with."""
    if transports is None:
        transports = ("sctp-udp",) if dtls else TRANSPORTS
    elif dtls and tuple(transports) != ("sctp-udp",):
        raise ValueError("DTLS protects SCTP inside UDP alone: transports are ('sctp-udp',) then")
    plain = Target.of((host, port), transports, dtls, (), server_hostname, timeout)
    return dataclasses.replace(plain, dtls=dtls, sctp_udp_port=udp_port)


def endpoint_of(
    endpoint: Endpoint | None, verify: Verify, config: Config | None, addresses: Sequence[str]
) -> Endpoint:
    """The endpoint that is meant."""
    if config is None and not addresses:
        return _endpoint.of(endpoint, verify)
    if endpoint is not None:
        raise ValueError(
            "an endpoint has its own SCTP: give sctp= and sctp_addresses= to eyas.Endpoint"
        )
    return Endpoint(verify=verify, sctp=config, sctp_addresses=addresses)


def bound(
    host: str | None,
    port: int,
    transports: Sequence[str],
    udp_port: int | None,
    addresses: Sequence[str],
    identity: ServerIdentity | None,
    config: Config | None,
) -> _native.RawSctpListener:
    """A listener."""
    place = Place.of(host, port, transports, (), udp_port, addresses, config)
    return _native.RawSctpListener(place, None if identity is None else identity._native)
