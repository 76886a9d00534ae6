"""An adapter for niquests: an existing program changes one line, and its requests race.

    import niquests
    import eyas.niquests

    session = niquests.Session()
    session.mount("https://", eyas.niquests.Adapter())

The arguments are those of `eyas.Client`; redirects, cookies, authentication, decompression, proxies and
`verify` remain those of niquests, unless the adapter has its own `verify` or `endpoint`. `eyas.niquests.info(response)`
returns the connection that carried a response. Errors are those of niquests, and their `__cause__` is the `eyas.Error`
with the candidates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _adapter
from ._reports import ConnectionInfo

if TYPE_CHECKING:
    # niquests replaces the urllib3 of requests, so it is not installed where types are checked.
    niquests: Any
    urllib3: Any

    class HTTPAdapter:
        """The base class."""

else:
    import niquests
    from niquests.adapters import HTTPAdapter
    from niquests.packages import urllib3

__all__ = ["Adapter", "info"]


class Adapter(_adapter.RacingAdapter, HTTPAdapter):
    """An adapter to mount in a `niquests.Session`. It is thread-safe."""

    _library, _urllib3 = niquests, urllib3


def info(response: Any) -> ConnectionInfo:
    """Returns the connection that carried a response: transport, addresses, timings, reasons."""
    return _adapter.connection_info(response)
