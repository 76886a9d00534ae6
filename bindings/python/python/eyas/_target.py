"""The targets of connections."""

from __future__ import annotations

import dataclasses
import operator
import socket
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Target:
    """The target of a connection, as the native part reads it."""

    host: str
    port: int
    transports: list[str]
    tls: bool
    alpn: list[str]
    server_hostname: str | None
    timeout: float | None
    #: Whether SCTP runs over DTLS, instead of TLS over its streams.
    dtls: bool = False
    #: The peer's UDP port for SCTP inside UDP.
    sctp_udp_port: int | None = None

    @classmethod
    def create(
        cls,
        address: tuple[str, int],
        transports: Sequence[str] | None,
        tls: bool,
        alpn: Sequence[str],
        server_hostname: str | None,
        timeout: float | None,
        sctp_udp_port: int | None = None,
    ) -> Target:
        """Fills in the default transports: QUIC and TCP, or only TCP without TLS."""
        if transports is None:
            transports = ("quic", "tcp") if tls else ("tcp",)
        if isinstance(transports, str):
            raise TypeError(f"transports must be a sequence of names, such as ({transports!r},)")
        host, port = address
        return cls(
            host=host,
            port=_port(port),
            transports=list(transports),
            tls=tls,
            alpn=list(alpn),
            server_hostname=server_hostname,
            timeout=timeout,
            sctp_udp_port=sctp_udp_port,
        )


def _port(port: object) -> int:
    """Returns a port, which may also be text or the name of a service, as in the socket module."""
    if not isinstance(port, str):
        return operator.index(port)  # type: ignore[arg-type]
    return int(port) if port.isdecimal() else socket.getservbyname(port)


def address(text: str | None) -> tuple[str, int] | None:
    """Parses `host:port` into an address as used by the socket module."""
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
