"""What all connections of a program share: trust, names, memory."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Union

from . import _native
from ._sctp_config import Config, Opening

#: `True`: what the platform trusts; `False`: anybody; a path: the roots in that PEM file and no others.
Verify = Union[bool, str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class _Trust:
    verify: bool
    roots: bytes | None
    identity: tuple[bytes, bytes] | None


@dataclasses.dataclass(frozen=True)
class _Names:
    server: str | None
    known: list[tuple[str, int, list[str]]]


def _read(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _known(resolve: Mapping[str, str | Iterable[str]]) -> list[tuple[str, int, list[str]]]:
    known = []
    for place, addresses in resolve.items():
        host, colon, port = place.rpartition(":")
        if not colon or not port.isdecimal():
            raise ValueError(f"{place!r} is no host with a port, such as 'example.org:443'")
        all_of_them = [addresses] if isinstance(addresses, str) else list(addresses)
        known.append((host, int(port), all_of_them))
    return known


class Endpoint:
    """What connections share: whom they trust, whom they ask for names, what they remember.

    `memory` is the path of a file that several processes may share, `True` for a memory that lasts as
    long as the endpoint, `False` for none. `verify` is whom to trust, `cert` a certificate chain and
    its key to show (two PEM files). `resolve` gives addresses for hosts with a port, as in
    `{"example.org:443": "192.0.2.1"}`, and `dns_server` an address with a port to ask instead of the
    system's. `mptcp` speaks Multipath TCP where TCP is tried. `sctp` is how the associations behave
    that it opens, and `sctp_addresses` are those of this host that they use, all that fit unless said.

    Cheap to pass around, safe for threads. Clients that are given none make their own.
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
        names = _Names(server=dns_server, known=_known(resolve or {}))
        file = None if isinstance(memory, bool) else os.fspath(memory)
        opening = Opening.of(sctp, sctp_addresses)
        self._native = _native.Endpoint(
            trust, names, file, memory is not False, mptcp, opening
        )

    def forget(self, host: str) -> int:
        """Forgets what was learnt of a host, and says how many rows of the memory that were."""
        return self._native.forget(host)

    def warnings(self) -> list[str]:
        """What was wrong with the memory since this was last asked; that never stops a race."""
        return self._native.warnings()


_default: Endpoint | None = None
_lock = threading.Lock()


def of(endpoint: Endpoint | None, verify: Verify) -> Endpoint:
    """The endpoint that is meant: the one given, one with this trust, or that of the process."""
    if endpoint is not None:
        if verify is not True:
            raise ValueError("an endpoint has its own trust: give verify= to eyas.Endpoint")
        return endpoint
    if verify is not True:
        return Endpoint(verify=verify)
    global _default
    with _lock:
        if _default is None:
            _default = Endpoint()
        return _default
