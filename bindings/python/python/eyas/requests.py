"""An adapter for requests: an existing program changes one line, and its requests race.

    import requests
    import eyas.requests

    session = requests.Session()
    session.mount("https://", eyas.requests.Adapter())

The arguments are those of `eyas.Client`; redirects, cookies, authentication, decompression, proxies and
`verify` are requests' part, unless the adapter has a `verify` or `endpoint` of its own. What a response
came over says `eyas.requests.info(response)`. Errors are those of requests, and their `__cause__` is the
`eyas.Error` with the candidates.
"""

from __future__ import annotations

import requests
import urllib3
from requests.adapters import HTTPAdapter

from . import _adapter
from ._reports import ConnectionInfo

__all__ = ["Adapter", "info"]


class Adapter(_adapter.Races, HTTPAdapter):
    """To be mounted in a `requests.Session`. Safe for threads."""

    _library, _urllib3 = requests, urllib3


def info(response: requests.Response) -> ConnectionInfo:
    """What a response came over: transport, addresses, times and reasons."""
    return _adapter.info_of(response)
