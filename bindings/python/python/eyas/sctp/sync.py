"""SCTP with calls that block: the same as `eyas.sctp`, for threads.

    import eyas.sctp

    with eyas.sctp.sync.connect("example.org", 5000) as association:
        association.send(b"hello", stream=1, ppid=51)
        print(association.receive())
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .. import _native
from .._closing import Closing
from .._endpoint import Endpoint, Verify
from .._identity import ServerIdentity
from .._sctp_config import Config
from .._timeout import CallLimit
from . import _base
from ._base import BaseAssociation, BaseListener, Sending, SendOptions
from ._reports import Event, Message

if TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

__all__ = ["Association", "Listener", "connect", "listen"]


def connect(
    host: str,
    port: int,
    *,
    transports: Sequence[str] | None = None,
    udp_port: int | None = None,
    dtls: bool = False,
    server_hostname: str | None = None,
    config: Config | None = None,
    addresses: Sequence[str] = (),
    timeout: float | None = None,
    endpoint: Endpoint | None = None,
    verify: Verify = True,
) -> Association:
    """Opens an association with a host and an SCTP port; see `eyas.sctp.connect`.

    `timeout` bounds the race, and then each call.
    """
    own = _base.endpoint_of(endpoint, verify, config, addresses)
    wanted = _base.target(host, port, transports, udp_port, dtls, server_hostname, timeout)
    association = Association(_native.associate(own._native, wanted))
    association.settimeout(timeout)
    return association


def listen(
    host: str | None = None,
    port: int = 0,
    *,
    transports: Sequence[str] = ("sctp-udp",),
    udp_port: int | None = None,
    identity: ServerIdentity | None = None,
    config: Config | None = None,
    addresses: Sequence[str] = (),
) -> Listener:
    """Listens for associations at an address of this host and an SCTP port; see `eyas.sctp.listen`."""
    return Listener(_base.bound(host, port, transports, udp_port, addresses, identity, config))


class Association(BaseAssociation, CallLimit, Closing):
    """An association: messages on many streams, over one path or several (RFC 9260).

    One thread may send while another one receives and a third one waits for notifications; `abort` and
    `close` end what waits. As a context manager it is closed in order, and aborted if an exception
    leaves it.
    """

    def send(self, data: Buffer, **options: Unpack[SendOptions]) -> None:
        """Hands in a message, once there is room for it."""
        whole, how = bytes(data), Sending(**options)
        if not self._raw.try_send(whole, how):
            self._raw.send(whole, how, self._timeout)

    def receive(self) -> Message | None:
        """The next message of any stream, or a part of a large one; `None` once the peer is done."""
        while (parts := self._raw.received()) is None:
            if not self._raw.receive(self._timeout):
                return None
        return Message(*parts)

    def event(self) -> Event | None:
        """The next notification; `None` once the association is over.

        Only the latest 64 are kept for who does not ask.
        """
        while (told := self._raw.notified()) is None:
            if not self._raw.watch(self._timeout):
                return None
        return Event._of(told)

    def events(self) -> Iterator[Event]:
        """Every notification to the end."""
        while (event := self.event()) is not None:
            yield event

    def __iter__(self) -> Iterator[Message]:
        while (message := self.receive()) is not None:
            yield message

    def end_stream(self, stream: int) -> None:
        """Says that nothing more is sent on this stream, once all of it is on its way (RFC 6525)."""
        self._raw.end_stream(stream)

    def shutdown(self) -> None:
        """Ends it once all messages have arrived, and waits for that."""
        self._raw.shutdown(self._timeout)

    def close(self) -> None:
        """Ends it once all messages have arrived; what takes longer than two seconds goes on by itself."""
        self._raw.close()

    def _leave(self, error: BaseException | None) -> None:
        if error is None:
            self.close()
        else:
            self.abort()


class Listener(BaseListener, Closing):
    """Takes in associations at one SCTP port. `close` ends what waits in other threads."""

    def accept(self, timeout: float | None = None) -> Association:
        """The next association that a peer has opened; `TimeoutError` if none has in so many seconds."""
        while (raw := self._raw.accepted()) is None:
            self._raw.accept(timeout)
        return Association(raw)

    def __iter__(self) -> Iterator[Association]:
        while True:
            yield self.accept()

    def _leave(self, error: BaseException | None) -> None:
        self.close()
