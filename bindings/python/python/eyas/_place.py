"""What to listen on."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Sequence

from ._sctp_config import Config, checked


@dataclasses.dataclass(frozen=True)
class Place:
    """What to listen on, as the native part reads it."""

    host: str
    port: int
    transports: list[str]
    alpn: list[str]
    sctp_udp_port: int | None
    addresses: list[str]
    config: Config

    @classmethod
    def of(
        cls,
        host: str | None,
        port: int,
        transports: Sequence[str],
        alpn: Sequence[str],
        sctp_udp_port: int | None,
        addresses: Sequence[str],
        config: Config | None,
    ) -> Place:
        """At all addresses unless one is named."""
        if isinstance(transports, str):
            raise TypeError(f"transports is a sequence of names, such as ({transports!r},)")
        try:
            address = ipaddress.ip_address(host or "::")
        except ValueError:
            raise ValueError(
                f"{host!r} is no address to listen at: name one of this host, such as 127.0.0.1, "
                "or leave it out for all of them"
            ) from None
        return cls(
            host=str(address),
            port=port,
            transports=list(transports),
            alpn=list(alpn),
            sctp_udp_port=sctp_udp_port,
            addresses=checked(addresses),
            config=config or Config(),
        )
