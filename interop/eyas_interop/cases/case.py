"""Decorators that make functions into cases."""

import functools
from collections.abc import Callable, Iterable

# Third-party servers, each with all versions of HTTP.
SERVERS = ("caddy", "hypercorn")


def about(peer: str) -> Callable:
    """Sets the peer that a case tests, which begins its report lines."""

    def mark(function: Callable) -> Callable:
        function.peer = peer
        return function

    return mark


def for_each_server(*functions: Callable) -> Iterable[Callable]:
    """Yields cases of two arguments, once for each server."""
    for peer in SERVERS:
        for function in functions:
            case = functools.partial(function, peer=peer)
            case.__name__ = function.__name__
            case.peer = peer
            yield case
