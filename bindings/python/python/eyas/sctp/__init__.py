"""SCTP (RFC 9260) without kernel support: messages on streams, over one or several paths.

    import eyas.sctp

    async with await eyas.sctp.connect("example.org", 5000) as association:
        await association.send(b"hello", stream=1, ppid=51)
        print(await association.receive())

This module is for asyncio; `eyas.sctp.sync` is the same API with blocking calls. The names are those of RFC 9260 and
RFC 6458.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from .. import _native
from .._context import AsyncContextManager
from .._endpoint import Endpoint, Verify
from .._identity import ServerIdentity
from .._sctp_config import Config
from . import _base, sync
from ._base import BaseAssociation, BaseListener, SendParameters, SendOptions
from ._reports import Event, Message, Path, Status

if TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

__all__ = [
    "Association",
    "Config",
    "Event",
    "Listener",
    "Message",
    "Path",
    "SendOptions",
    "Status",
    "connect",
    "listen",
    "sync",
]


async def connect(
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
    """Opens an association with a host and an SCTP port.

    It races SCTP directly over IP, where possible, against SCTP inside UDP (RFC 6951) to the peer's `udp_port`, 9899 by
    default. `transports` are `sctp` and `sctp-udp`, most preferred first. `dtls` uses DTLS below SCTP (RFC 8261), which
    is only available inside UDP; otherwise there is no security. `config` configures the association, and `addresses`
    are the local addresses that it uses, by default all suitable ones; either creates an endpoint for this association
    only. `timeout` limits the race, in seconds.
    """
    endpoint = _base.endpoint_for(endpoint, verify, config, addresses)
    target = _base.create_target(host, port, transports, udp_port, dtls, server_hostname, timeout)
    return Association(await _native.aassociate(endpoint._native, target))


async def listen(
    host: str | None = None,
    port: int = 0,
    *,
    transports: Sequence[str] = ("sctp-udp",),
    udp_port: int | None = None,
    identity: ServerIdentity | None = None,
    config: Config | None = None,
    addresses: Sequence[str] = (),
) -> Listener:
    """Listens for associations on a local address and an SCTP port; 0 picks a free one.

    SCTP inside UDP uses `udp_port`, 9899 by default; 0 picks a free one. With `sctp` among the `transports`, the
    listener also accepts SCTP directly over IP, which requires privileges unless the kernel supports SCTP. With an
    `identity`, it accepts only associations inside DTLS (RFC 8261), on the same UDP port. `addresses` are further local
    addresses that are announced to peers, and `config` configures the associations.
    """
    return Listener(_base.create_listener(host, port, transports, udp_port, addresses, identity, config))


class Association(BaseAssociation, AsyncContextManager):
    """An association: messages on many streams, over one or several paths (RFC 9260).

    One task may send while another receives and a third waits for notifications. Cancelling a call never loses a
    message: it is sent as a whole or not at all, and a received one goes to the next caller. Used as a context manager,
    the association is closed at the end, or aborted if there is an exception.
    """

    async def send(self, data: Buffer, **options: Unpack[SendOptions]) -> None:
        """Sends a message once there is room for it."""
        message, parameters = bytes(data), SendParameters(**options)
        if not self._raw.try_send(message, parameters):
            await self._raw.asend(message, parameters)

    async def receive(self) -> Message | None:
        """Returns the next message of any stream, or part of a large one; `None` once the peer has finished."""
        while (parts := self._raw.received()) is None:
            if not await self._raw.areceive():
                return None
        return Message(*parts)

    async def event(self) -> Event | None:
        """Returns the next notification; `None` once the association has ended.

        Only the latest 64 notifications are kept.
        """
        while (notification := self._raw.notified()) is None:
            if not await self._raw.awatch():
                return None
        return Event._from_native(notification)

    async def events(self) -> AsyncIterator[Event]:
        """Yields all notifications until the association ends."""
        while (event := await self.event()) is not None:
            yield event

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        message = await self.receive()
        if message is None:
            raise StopAsyncIteration
        return message

    async def end_stream(self, stream: int) -> None:
        """Resets this outgoing stream once all of its data has been sent (RFC 6525)."""
        await self._raw.aend_stream(stream)

    async def shutdown(self) -> None:
        """Ends the association once all messages have arrived, and waits for that."""
        await self._raw.ashutdown()

    async def close(self) -> None:
        """Like `shutdown`, but waits for two seconds at most; the rest completes in the background."""
        await self._raw.aclose()

    async def _exit(self, error: BaseException | None) -> None:
        if error is None:
            await self.close()
        else:
            self.abort()


class Listener(BaseListener, AsyncContextManager):
    """Accepts associations on an SCTP port."""

    async def accept(self) -> Association:
        """Returns the next association that a peer has opened."""
        while (raw := self._raw.accepted()) is None:
            await self._raw.aaccept()
        return Association(raw)

    async def __aiter__(self) -> AsyncIterator[Association]:
        while True:
            yield await self.accept()

    async def _exit(self, error: BaseException | None) -> None:
        self.close()
