"""Configuration of SCTP associations."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Config:
    """The configuration of SCTP associations; `None` means the default."""

    #: Whether new data uses all paths at once (CMT-SCTP) instead of only the primary path. Each side chooses for the
    #: data that it sends, before the association is opened.
    multipath: bool = False
    #: Whether addresses can be added and removed later, if the peer supports it as well (RFC 5061).
    dynamic_addresses: bool = False
    #: The requested number of outbound streams (`sinit_num_ostreams`).
    outbound_streams: int | None = None
    #: The maximum number of inbound streams (`sinit_max_instreams`).
    max_inbound_streams: int | None = None
    #: The size of the send buffer, in bytes, including data not yet acknowledged (`SO_SNDBUF`).
    send_buffer: int | None = None
    #: The size of the receive buffer, in bytes (`SO_RCVBUF`).
    receive_buffer: int | None = None
    #: Seconds between two heartbeats on an idle path (RFC 9260 §16); 0 disables heartbeats.
    hb_interval: float | None = None
    #: Consecutive retransmissions after which the peer is unreachable (`Association.Max.Retrans`).
    association_max_retrans: int | None = None
    #: Consecutive retransmissions after which a path is inactive (`Path.Max.Retrans`).
    path_max_retrans: int | None = None
    #: `cubic`, `new-reno`, `bbr`, or coupled over all paths: `cmt-rp-v1`, `cmt-rp-v2`, `lia`, `olia`.
    congestion_control: str | None = None


@dataclasses.dataclass(frozen=True)
class SctpOptions:
    """The SCTP options of an endpoint, as the native part reads them."""

    config: Config
    addresses: list[str]

    @classmethod
    def create(cls, config: Config | None, addresses: Sequence[str]) -> SctpOptions:
        """Fills in the defaults."""
        return cls(config or Config(), normalize_addresses(addresses))


def normalize_addresses(addresses: Sequence[str]) -> list[str]:
    """Checks local addresses and returns them in their canonical form."""
    if isinstance(addresses, str):
        raise TypeError(f"addresses must be a sequence of addresses, such as ({addresses!r},)")
    return [str(ipaddress.ip_address(address)) for address in addresses]
