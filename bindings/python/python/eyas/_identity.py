"""The certificates of servers."""

from __future__ import annotations

import os

from . import _native


class ServerIdentity:
    """A certificate chain, the server's own certificate first, and its key: two PEM files.

    A QUIC server that is restarted with the same two at the same address and port resets the connections of the former
    process (RFC 9000 §10.3); with `self_signed`, its clients notice only by their timeouts.
    """

    def __init__(self, cert: str | os.PathLike[str], key: str | os.PathLike[str]) -> None:
        with open(cert, "rb") as chain_file, open(key, "rb") as key_file:
            self._native = _native.Identity(chain_file.read(), key_file.read())

    @classmethod
    def self_signed(cls, *names: str) -> ServerIdentity:
        """Creates a self-signed certificate for these names and addresses, for tests.

        Clients accept it if `certificate_pem` is among their roots.
        """
        identity = cls.__new__(cls)
        identity._native = _native.Identity.self_signed(list(names) or ["localhost"])
        return identity

    @property
    def certificate_pem(self) -> str:
        """The server's own certificate in PEM, for the roots of its clients."""
        return self._native.certificate_pem()
