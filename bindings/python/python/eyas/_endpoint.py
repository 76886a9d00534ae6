"""The shared part of connections: trust, DNS configuration, memory."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from ._native import Endpoint as NativeEndpoint
from ._sctp_config import Config, SctpOptions

#: `True`: the platform's roots; `False`: no verification; a path: only the roots in that PEM file.
Verify = Union[bool, str, "os.PathLike[str]"]


#: A client's certificate chain and its key: two PEM files, or one with both; and the passphrase of an encrypted key.
Cert = Union[
    str,
    "os.PathLike[str]",
    "tuple[str | os.PathLike[str], str | os.PathLike[str]]",
    "tuple[str | os.PathLike[str], str | os.PathLike[str], str | bytes]",
    None,
]


@dataclasses.dataclass(frozen=True)
class _Trust:
    verify: bool
    roots: bytes | None
    identity: tuple[bytes, bytes, bytes | None] | None
    ech: str


@dataclasses.dataclass(frozen=True)
class _DnsOptions:
    server: str | None
    encrypted: str
    optimistic: bool
    overrides: list[tuple[str, int, list[str]]]


@dataclasses.dataclass(frozen=True)
class _Options:
    trust: _Trust
    dns: _DnsOptions
    file: str | None
    remember: bool
    mptcp: bool
    sctp: SctpOptions


def _read(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _roots(path: str | os.PathLike[str]) -> bytes:
    """Returns the roots in a file, or in all files of a directory."""
    if not os.path.isdir(path):
        return _read(path)
    with os.scandir(path) as entries:
        files = sorted(entry.path for entry in entries if entry.is_file())
    return b"\n".join(map(_read, files))


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
    PEM files, or one with both), and as a third item the passphrase of an encrypted key. `resolve` maps hosts and ports to
    addresses, as in `{"example.org:443": "192.0.2.1"}`. `dns_server` is the address and port of a DNS server to use
    instead of the system's. `encrypted_dns` says whether queries to name servers are encrypted: `"system"` as the system
    does, `"auto"` where they offer it, `"require"` or `"off"`. `optimistic_dns` says whether a connection to a server that
    has to show a certificate begins with addresses whose time to live is over, while DNS is asked again. `mptcp` enables
    Multipath TCP where TCP is tried. `ech` says how the names of servers are encrypted (Encrypted ClientHello): `"auto"`
    where their records have the keys, `"off"`, `"require"`, or with the keys of `"ecl:BASE64"`. `sctp` is the
    configuration of the associations that the endpoint opens, and `sctp_addresses` are the local addresses that they
    use; by default, all suitable ones.

    An endpoint is thread-safe. Clients and connections without one share an endpoint per process, or create their own
    if `verify` is given.
    """

    def __init__(
        self,
        *,
        memory: str | os.PathLike[str] | bool = True,
        verify: Verify = True,
        cert: Cert = None,
        resolve: Mapping[str, str | Iterable[str]] | None = None,
        dns_server: str | None = None,
        encrypted_dns: str = "system",
        optimistic_dns: bool = True,
        mptcp: bool = False,
        ech: str = "auto",
        sctp: Config | None = None,
        sctp_addresses: Sequence[str] = (),
    ) -> None:
        self._arguments = {
            "memory": memory,
            "verify": verify,
            "cert": cert,
            "resolve": dict(resolve or {}),
            "dns_server": dns_server,
            "encrypted_dns": encrypted_dns,
            "optimistic_dns": optimistic_dns,
            "mptcp": mptcp,
            "ech": ech,
            "sctp": sctp,
            "sctp_addresses": sctp_addresses,
        }
        pair = (cert, cert) if isinstance(cert, (str, os.PathLike)) else cert
        if pair is not None and len(pair) not in (2, 3):
            raise ValueError(
                "cert must be the paths of a certificate chain and its key, or one path for both; "
                "a third item is the passphrase of the key"
            )
        passphrase = pair[2] if pair is not None and len(pair) == 3 else None
        if isinstance(passphrase, str):
            passphrase = passphrase.encode()
        trust = _Trust(
            verify=verify is not False,
            roots=None if isinstance(verify, bool) else _roots(verify),
            identity=None if pair is None else (_read(pair[0]), _read(pair[1]), passphrase),
            ech=ech,
        )
        #: Everything that is needed to create the endpoint anew, in a child of this process.
        self._options = _Options(
            trust=trust,
            dns=_DnsOptions(
                server=dns_server,
                encrypted=encrypted_dns,
                optimistic=optimistic_dns,
                overrides=_overrides(resolve or {}),
            ),
            file=None if isinstance(memory, bool) else os.fspath(memory),
            remember=memory is not False,
            mptcp=mptcp,
            sctp=SctpOptions.create(sctp, sctp_addresses),
        )
        self._created: tuple[int, NativeEndpoint] | None = None
        # Errors in the options are reported here.
        _ = self._native

    @property
    def _native(self) -> NativeEndpoint:
        """The endpoint of this process: a child that was forked has one of its own."""
        process = os.getpid()
        if self._created is None or self._created[0] != process:
            one = self._options
            native = NativeEndpoint(
                one.trust, one.dns, one.file, one.remember, one.mptcp, one.sctp
            )
            self._created = (process, native)
        return self._created[1]

    def __getstate__(self) -> dict[str, Any]:
        """Returns the arguments, for a copy: it has a memory of its own, or shares the file. Keys are not copied."""
        return self._arguments

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        self.__init__(**arguments)  # type: ignore[misc]

    def forget(self, host: str) -> int:
        """Forgets everything about a host; returns the number of rows removed from the memory."""
        return self._native.forget(host)

    def warnings(self) -> list[str]:
        """Returns the problems with the memory since the last call. They never stop a race."""
        return self._native.warnings()


_default: Endpoint | None = None
_lock = threading.Lock()


def _renew_lock() -> None:
    """Replaces the lock in a child: another thread of the parent may have held it."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


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
