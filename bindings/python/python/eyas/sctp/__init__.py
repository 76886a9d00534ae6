"""SCTP (RFC 9260) where the kernel has none: messages on streams, over one path or several.

    import eyas.sctp

    async with await eyas.sctp.connect("example.org", 5000) as association:
        await association.send(b"hello", stream=1, ppid=51)
        print(await association.receive())

This module is for asyncio; `eyas.sctp.sync` has the same with calls that block. The names are those of
RFC 9260 and RFC 6458.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from .. import _native
from .._closing import AsyncClosing
from .._endpoint import Endpoint, Verify
from .._identity import ServerIdentity
from .._sctp_config import Config
from . import _base, sync
from ._base import BaseAssociation, BaseListener, Sending, SendOptions
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

    It races SCTP directly over IP, where that is possible, against SCTP inside UDP (RFC 6951) at the
    peer's `udp_port`, 9899 unless said; `transports` are `sctp` and `sctp-udp`, most wanted first.
    `dtls` protects it by DTLS below SCTP (RFC 8261), inside UDP alone; otherwise it has no security.
    `config` is how it behaves, and `addresses` are those of this host that it uses, all that fit unless
    said: either makes an endpoint for this association alone. `timeout` bounds the race, in seconds.
    """
    own = _base.endpoint_of(endpoint, verify, config, addresses)
    wanted = _base.target(host, port, transports, udp_port, dtls, server_hostname, timeout)
    return Association(await _native.aassociate(own._native, wanted))


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
    """Listens for associations at an address of this host and an SCTP port; 0 takes a free one.

    SCTP inside UDP is awaited at `udp_port`, 9899 unless said, and 0 takes a free one; `sctp` among the
    `transports` serves it directly over IP, too, which takes privileges unless the kernel speaks SCTP.
    With an `identity` it takes in only what comes inside DTLS (RFC 8261), at the same UDP port.
    `addresses` are further ones of this host that peers are told of, and `config` is how associations
    behave.
    """
    return Listener(_base.bound(host, port, transports, udp_port, addresses, identity, config))


class Association(BaseAssociation, AsyncClosing):
    """An association: messages on many streams, over one path or several (RFC 9260).

    One task may send while another one receives and a third one waits for notifications. Cancelling a
    call loses nothing: a message is sent whole or not at all, and one that came goes to who asks next.
    As a context manager it is closed in order, and aborted if an exception leaves it.
    """

    async def send(self, data: Buffer, **options: Unpack[SendOptions]) -> None:
        """Hands in a message, once there is room for it."""
        whole, how = bytes(data), Sending(**options)
        if not self._raw.try_send(whole, how):
            await self._raw.asend(whole, how)

    async def receive(self) -> Message | None:
        """The next message of any stream, or a part of a large one; `None` once the peer is done."""
        while (parts := self._raw.received()) is None:
            if not await self._raw.areceive():
                return None
        return Message(*parts)

    async def event(self) -> Event | None:
        """The next notification; `None` once the association is over.

        Only the latest 64 are kept for who does not ask.
        """
        while (told := self._raw.notified()) is None:
            if not await self._raw.awatch():
                return None
        return Event._of(told)

    async def events(self) -> AsyncIterator[Event]:
        """Every notification to the end."""
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
        """Says that nothing more is sent on this stream, once all of it is on its way (RFC 6525)."""
        await self._raw.aend_stream(stream)

    async def shutdown(self) -> None:
        """Ends it once all messages have arrived, and waits for that."""
        await self._raw.ashutdown()

    async def close(self) -> None:
        """Ends it once all messages have arrived; what takes longer than two seconds goes on by itself."""
        await self._raw.aclose()

    async def _leave(self, error: BaseException | None) -> None:
        if error is None:
            await self.close()
        else:
            self.abort()


class Listener(BaseListener, AsyncClosing):
    """Takes in associations at one SCTP port."""

    async def accept(self) -> Association:
        """The next association that a peer has opened."""
        while (raw := self._raw.accepted()) is None:
            await self._raw.aaccept()
        return Association(raw)

    async def __aiter__(self) -> AsyncIterator[Association]:
        while True:
            yield await self.accept()

    async def _leave(self, error: BaseException | None) -> None:
        self.close()
