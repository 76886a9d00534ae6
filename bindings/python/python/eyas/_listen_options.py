"""The options of listeners."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Sequence

from ._sctp_config import Config, normalize_addresses


@dataclasses.dataclass(frozen=True)
class ListenOptions:
    """The options of a listener, as the native part reads them."""

    host: str
    port: int
    transports: list[str]
    alpn: list[str]
    sctp_udp_port: int | None
    addresses: list[str]
    config: Config

    @classmethod
    def create(
        cls,
        host: str | None,
        port: int,
        transports: Sequence[str],
        alpn: Sequence[str],
        sctp_udp_port: int | None,
        addresses: Sequence[str],
        config: Config | None,
    ) -> ListenOptions:
        """Fills in the defaults: without a host, all addresses."""
        if isinstance(transports, str):
            raise TypeError(f"transports must be a sequence of names, such as ({transports!r},)")
        try:
            address = ipaddress.ip_address(host or "::")
        except ValueError:
            raise ValueError(
                f"{host!r} is not an address to listen on: use a local address such as 127.0.0.1, "
                "or None for all of them"
            ) from None
        return cls(
            host=str(address),
            port=port,
            transports=list(transports),
            alpn=list(alpn),
            sctp_udp_port=sctp_udp_port,
            addresses=normalize_addresses(addresses),
            config=config or Config(),
        )
