"""An adapter for requests: an existing program changes one line, and its requests race.

    import requests
    import eyas.requests

    session = requests.Session()
    session.mount("https://", eyas.requests.Adapter())

The arguments are those of `eyas.Client`; redirects, cookies, authentication, decompression, proxies and
`verify` remain those of requests, unless the adapter has its own `verify` or `endpoint`. `eyas.requests.info(response)`
returns the connection that carried a response. Errors are those of requests, and their `__cause__` is the `eyas.Error`
with the candidates.
"""

from __future__ import annotations

import requests
import urllib3
from requests.adapters import HTTPAdapter

from . import _adapter
from ._reports import ConnectionInfo

__all__ = ["Adapter", "info"]


class Adapter(_adapter.RacingAdapter, HTTPAdapter):
    """An adapter to mount in a `requests.Session`. It is thread-safe."""

    _library, _urllib3 = requests, urllib3


def info(response: requests.Response) -> ConnectionInfo:
    """Returns the connection that carried a response: transport, addresses, timings, reasons."""
    return _adapter.connection_info(response)
