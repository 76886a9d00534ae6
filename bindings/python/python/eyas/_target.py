"""Whom to connect to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Target:
    """A connection that is wanted, as the native part reads it."""

    host: str
    port: int
    transports: list[str]
    tls: bool
    alpn: list[str]
    server_hostname: str | None
    timeout: float | None
    #: Whether SCTP has DTLS below it in place of TLS on its streams.
    dtls: bool = False
    #: Where the peer awaits SCTP inside UDP.
    sctp_udp_port: int | None = None

    @classmethod
    def of(
        cls,
        place: tuple[str, int],
        transports: Sequence[str] | None,
        tls: bool,
        alpn: Sequence[str],
        server_hostname: str | None,
        timeout: float | None,
        sctp_udp_port: int | None = None,
    ) -> Target:
        """Over QUIC and TCP unless other transports are named; QUIC always has TLS."""
        if transports is None:
            transports = ("quic", "tcp") if tls else ("tcp",)
        if isinstance(transports, str):
            raise TypeError(f"transports is a sequence of names, such as ({transports!r},)")
        host, port = place
        return cls(
            host=host,
            port=port,
            transports=list(transports),
            tls=tls,
            alpn=list(alpn),
            server_hostname=server_hostname,
            timeout=timeout,
            sctp_udp_port=sctp_udp_port,
        )


def address(text: str | None) -> tuple[str, int] | None:
    """`host:port` as the socket module has addresses."""
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
