"""Who a server is."""

from __future__ import annotations

import os

from . import _native


class ServerIdentity:
    """A certificate chain, the server's own first, and its key: two PEM files."""

    def __init__(self, cert: str | os.PathLike[str], key: str | os.PathLike[str]) -> None:
        with open(cert, "rb") as chain, open(key, "rb") as own:
            self._native = _native.Identity(chain.read(), own.read())

    @classmethod
    def self_signed(cls, *names: str) -> ServerIdentity:
        """One that is made on the spot for these names and addresses, for tests.

        A client trusts it if `certificate_pem` is among its roots.
        """
        identity = cls.__new__(cls)
        identity._native = _native.Identity.self_signed(list(names) or ["localhost"])
        return identity

    @property
    def certificate_pem(self) -> str:
        """The server's own certificate, for the file of those who are to trust it."""
        return self._native.certificate_pem()
