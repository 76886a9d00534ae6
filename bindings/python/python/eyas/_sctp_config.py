"""How SCTP associations behave."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Config:
    """How SCTP associations behave; what is `None` stays as eyas has it."""

    #: Whether new data takes all paths at once (CMT-SCTP); otherwise the primary one alone. Each side
    #: chooses for what it sends, before the association begins.
    multipath: bool = False
    #: Whether addresses can be added and removed while it runs, if the peer can do it, too (RFC 5061).
    dynamic_addresses: bool = False
    #: Streams to send on that are asked for (`sinit_num_ostreams`).
    outbound_streams: int | None = None
    #: The most streams that the peer may send on (`sinit_max_instreams`).
    max_inbound_streams: int | None = None
    #: The most bytes that wait to be sent or acknowledged (`SO_SNDBUF`).
    send_buffer: int | None = None
    #: The most bytes that wait to be received (`SO_RCVBUF`).
    receive_buffer: int | None = None
    #: Seconds between two heartbeats on an idle path (RFC 9260 §16); 0: none are sent.
    hb_interval: float | None = None
    #: Retransmissions in a row after which the peer counts as lost (`Association.Max.Retrans`).
    association_max_retrans: int | None = None
    #: Retransmissions in a row after which a path counts as broken (`Path.Max.Retrans`).
    path_max_retrans: int | None = None
    #: `cubic`, `new-reno`, `bbr`, or one that couples paths: `cmt-rp-v1`, `cmt-rp-v2`, `lia`, `olia`.
    congestion_control: str | None = None


@dataclasses.dataclass(frozen=True)
class Opening:
    """What an endpoint does where it opens associations, as the native part reads it."""

    config: Config
    addresses: list[str]

    @classmethod
    def of(cls, config: Config | None, addresses: Sequence[str]) -> Opening:
        """The defaults where nothing is said."""
        return cls(config or Config(), checked(addresses))


def checked(addresses: Sequence[str]) -> list[str]:
    """Addresses of this host, which are addresses."""
    if isinstance(addresses, str):
        raise TypeError(f"addresses is a sequence of addresses, such as ({addresses!r},)")
    return [str(ipaddress.ip_address(one)) for one in addresses]
