"""One request each, without a client that is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import _timeout
from ._client import Client
from ._endpoint import Endpoint, Verify
from ._request import BodyOptions, Options
from ._response import Response

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _client(verify: Verify, endpoint: Endpoint | None, options: BodyOptions) -> Client:
    # The limit is the client's, so that its race keeps to it and names the candidates.
    timeout = options.get("timeout", _timeout.DEFAULT)
    return Client(verify=verify, endpoint=endpoint, timeout=timeout)


def request(
    method: str,
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[BodyOptions],
) -> Response:
    """Sends a request and reads its response; who sends several keeps an `eyas.Client`."""
    with _client(verify, endpoint, options) as client:
        return client.request(method, url, **options)


@contextmanager
def stream(
    method: str,
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[BodyOptions],
) -> Iterator[Response]:
    """Sends a request and gives its response before the body is read."""
    with _client(verify, endpoint, options) as client:
        with client.stream(method, url, **options) as response:
            yield response


def get(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[Options],
) -> Response:
    """A GET request."""
    return request("GET", url, verify=verify, endpoint=endpoint, **options)


def head(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[Options],
) -> Response:
    """A HEAD request."""
    return request("HEAD", url, verify=verify, endpoint=endpoint, **options)


def options(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[Options],
) -> Response:
    """An OPTIONS request."""
    return request("OPTIONS", url, verify=verify, endpoint=endpoint, **options)


def delete(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[Options],
) -> Response:
    """A DELETE request."""
    return request("DELETE", url, verify=verify, endpoint=endpoint, **options)


def post(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[BodyOptions],
) -> Response:
    """A POST request."""
    return request("POST", url, verify=verify, endpoint=endpoint, **options)


def put(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[BodyOptions],
) -> Response:
    """A PUT request."""
    return request("PUT", url, verify=verify, endpoint=endpoint, **options)


def patch(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[BodyOptions],
) -> Response:
    """A PATCH request."""
    return request("PATCH", url, verify=verify, endpoint=endpoint, **options)
