"""The shared part of connections: trust, DNS configuration, memory."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Union

from . import _native
from ._sctp_config import Config, SctpOptions

#: `True`: the platform's roots; `False`: no verification; a path: only the roots in that PEM file.
Verify = Union[bool, str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class _Trust:
    verify: bool
    roots: bytes | None
    identity: tuple[bytes, bytes] | None


@dataclasses.dataclass(frozen=True)
class _DnsOptions:
    server: str | None
    overrides: list[tuple[str, int, list[str]]]


def _read(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _overrides(resolve: Mapping[str, str | Iterable[str]]) -> list[tuple[str, int, list[str]]]:
    overrides = []
    for text, addresses in resolve.items():
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal():
            raise ValueError(f"{text!r} is not a host and port such as 'example.org:443'")
        address_list = [addresses] if isinstance(addresses, str) else list(addresses)
        overrides.append((host, int(port), address_list))
    return overrides


class Endpoint:
    """The shared part of connections: trusted roots, DNS configuration, memory.

    `memory` is the path of a file that several processes may share, `True` for a memory that lasts as long as the
    endpoint, or `False` for none. `verify` are the trusted roots. `cert` is a client certificate chain and its key (two
    PEM files). `resolve` maps hosts and ports to addresses, as in `{"example.org:443": "192.0.2.1"}`. `dns_server` is
    the address and port of a DNS server to use instead of the system's. `mptcp` enables Multipath TCP where TCP is
    tried. `sctp` is the configuration of the associations that the endpoint opens, and `sctp_addresses` are the local
    addresses that they use; by default, all suitable ones.

    An endpoint is thread-safe. Clients and connections without one share an endpoint per process, or create their own
    if `verify` is given.
    """

    def __init__(
        self,
        *,
        memory: str | os.PathLike[str] | bool = True,
        verify: Verify = True,
        cert: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
        resolve: Mapping[str, str | Iterable[str]] | None = None,
        dns_server: str | None = None,
        mptcp: bool = False,
        sctp: Config | None = None,
        sctp_addresses: Sequence[str] = (),
    ) -> None:
        trust = _Trust(
            verify=verify is not False,
            roots=None if isinstance(verify, bool) else _read(verify),
            identity=None if cert is None else (_read(cert[0]), _read(cert[1])),
        )
        dns = _DnsOptions(server=dns_server, overrides=_overrides(resolve or {}))
        file = None if isinstance(memory, bool) else os.fspath(memory)
        sctp_options = SctpOptions.create(sctp, sctp_addresses)
        self._native = _native.Endpoint(
            trust, dns, file, memory is not False, mptcp, sctp_options
        )

    def forget(self, host: str) -> int:
        """Forgets everything about a host; returns the number of rows removed from the memory."""
        return self._native.forget(host)

    def warnings(self) -> list[str]:
        """Returns the problems with the memory since the last call. They never stop a race."""
        return self._native.warnings()


_default: Endpoint | None = None
_lock = threading.Lock()


def endpoint_for(endpoint: Endpoint | None, verify: Verify) -> Endpoint:
    """Returns the given endpoint, a new one with these roots, or the shared one of the process."""
    if endpoint is not None:
        if verify is not True:
            raise ValueError("an endpoint has its own trusted roots: pass verify= to eyas.Endpoint")
        return endpoint
    if verify is not True:
        return Endpoint(verify=verify)
    global _default
    with _lock:
        if _default is None:
            _default = Endpoint()
        return _default
