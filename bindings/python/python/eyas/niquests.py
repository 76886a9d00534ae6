"""An adapter for niquests: an existing program changes one line, and its requests race.

    import niquests
    import eyas.niquests

    session = niquests.Session()
    session.mount("https://", eyas.niquests.Adapter())

The arguments are those of `eyas.Client`; redirects, cookies, authentication, decompression, proxies and
`verify` are niquests' part, unless the adapter has a `verify` or `endpoint` of its own. What a response
came over says `eyas.niquests.info(response)`. Errors are those of niquests, and their `__cause__` is the
`eyas.Error` with the candidates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _adapter
from ._reports import ConnectionInfo

if TYPE_CHECKING:
    # It has an urllib3 of its own, so that it cannot be where requests is.
    niquests: Any
    urllib3: Any

    class HTTPAdapter:
        """What it is."""

else:
    import niquests
    from niquests.adapters import HTTPAdapter
    from niquests.packages import urllib3

__all__ = ["Adapter", "info"]


class Adapter(_adapter.Races, HTTPAdapter):
    """To be mounted in a `niquests.Session`. Safe for threads."""

    _library, _urllib3 = niquests, urllib3


def info(response: Any) -> ConnectionInfo:
    """What a response of niquests came over: transport, addresses, times and reasons."""
    return _adapter.info_of(response)
