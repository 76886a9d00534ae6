"""SCTP with blocking calls: the API of `eyas.sctp`, for threads.

    import eyas.sctp

    with eyas.sctp.sync.connect("example.org", 5000) as association:
        association.send(b"hello", stream=1, ppid=51)
        print(association.receive())
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .. import _native
from .._context import ContextManager
from .._endpoint import Endpoint, Verify
from .._identity import ServerIdentity
from .._sctp_config import Config
from .._timeout import CallLimit
from . import _base
from ._base import BaseAssociation, BaseListener, SendParameters, SendOptions
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

    `timeout` limits the race, and then each call.
    """
    endpoint = _base.endpoint_for(endpoint, verify, config, addresses)
    target = _base.create_target(host, port, transports, udp_port, dtls, server_hostname, timeout)
    association = Association(_native.associate(endpoint._native, target))
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
    """Listens for associations on a local address and an SCTP port; see `eyas.sctp.listen`."""
    return Listener(_base.create_listener(host, port, transports, udp_port, addresses, identity, config))


class Association(BaseAssociation, CallLimit, ContextManager):
    """An association: messages on many streams, over one or several paths (RFC 9260).

    One thread may send while another receives and a third waits for notifications; `abort` and `close` end the waiting
    calls. Used as a context manager, the association is closed at the end, or aborted if there is an exception.
    """

    def send(self, data: Buffer, **options: Unpack[SendOptions]) -> None:
        """Sends a message once there is room for it."""
        message, parameters = bytes(data), SendParameters(**options)
        if not self._raw.try_send(message, parameters):
            self._raw.send(message, parameters, self._timeout)

    def receive(self) -> Message | None:
        """Returns the next message of any stream, or part of a large one; `None` once the peer has finished."""
        while (parts := self._raw.received()) is None:
            if not self._raw.receive(self._timeout):
                return None
        return Message(*parts)

    def event(self) -> Event | None:
        """Returns the next notification; `None` once the association has ended.

        Only the latest 64 notifications are kept.
        """
        while (notification := self._raw.notified()) is None:
            if not self._raw.watch(self._timeout):
                return None
        return Event._from_native(notification)

    def events(self) -> Iterator[Event]:
        """Yields all notifications until the association ends."""
        while (event := self.event()) is not None:
            yield event

    def __iter__(self) -> Iterator[Message]:
        while (message := self.receive()) is not None:
            yield message

    def end_stream(self, stream: int) -> None:
        """Resets this outgoing stream once all of its data has been sent (RFC 6525)."""
        self._raw.end_stream(stream)

    def shutdown(self) -> None:
        """Ends the association once all messages have arrived, and waits for that."""
        self._raw.shutdown(self._timeout)

    def close(self) -> None:
        """Like `shutdown`, but waits for two seconds at most; the rest completes in the background."""
        self._raw.close()

    def _exit(self, error: BaseException | None) -> None:
        if error is None:
            self.close()
        else:
            self.abort()


class Listener(BaseListener, ContextManager):
    """Accepts associations on an SCTP port. `close` ends the waiting calls in other threads."""

    def accept(self, timeout: float | None = None) -> Association:
        """Returns the next association that a peer has opened; raises `TimeoutError` after `timeout` seconds."""
        while (raw := self._raw.accepted()) is None:
            self._raw.accept(timeout)
        return Association(raw)

    def __iter__(self) -> Iterator[Association]:
        while True:
            yield self.accept()

    def _exit(self, error: BaseException | None) -> None:
        self.close()
