"""Functions that send a single request, each with a client of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import _timeout
from ._client import Client
from ._endpoint import Endpoint, Verify
from ._request import BODY_OPTIONS, OPTIONS, BodyOptions, Options, check_options
from ._response import Response

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _client(verify: Verify, endpoint: Endpoint | None, options: BodyOptions) -> Client:
    # The timeout becomes the client's, so that the race ends by itself and reports the candidates.
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
    """Sends a request and reads the response. For several requests, use an `eyas.Client`."""
    check_options("request", options, BODY_OPTIONS)
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
    """Sends a request; the context manager returns the response before its body is read."""
    check_options("stream", options, BODY_OPTIONS)
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
    """Sends a GET request."""
    check_options("get", options, OPTIONS)
    return request("GET", url, verify=verify, endpoint=endpoint, **options)


def head(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[Options],
) -> Response:
    """Sends a HEAD request."""
    check_options("head", options, OPTIONS)
    return request("HEAD", url, verify=verify, endpoint=endpoint, **options)


def options(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[Options],
) -> Response:
    """Sends an OPTIONS request."""
    check_options("options", options, OPTIONS)
    return request("OPTIONS", url, verify=verify, endpoint=endpoint, **options)


def delete(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[Options],
) -> Response:
    """Sends a DELETE request."""
    check_options("delete", options, OPTIONS)
    return request("DELETE", url, verify=verify, endpoint=endpoint, **options)


def post(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[BodyOptions],
) -> Response:
    """Sends a POST request."""
    check_options("post", options, BODY_OPTIONS)
    return request("POST", url, verify=verify, endpoint=endpoint, **options)


def put(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[BodyOptions],
) -> Response:
    """Sends a PUT request."""
    check_options("put", options, BODY_OPTIONS)
    return request("PUT", url, verify=verify, endpoint=endpoint, **options)


def patch(
    url: str,
    *,
    verify: Verify = True,
    endpoint: Endpoint | None = None,
    **options: Unpack[BodyOptions],
) -> Response:
    """Sends a PATCH request."""
    check_options("patch", options, BODY_OPTIONS)
    return request("PATCH", url, verify=verify, endpoint=endpoint, **options)
