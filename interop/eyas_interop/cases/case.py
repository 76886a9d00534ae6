"""How a function becomes a case."""

import functools
from collections.abc import Callable, Iterable

# The servers that others wrote, each with all versions of HTTP.
SERVERS = ("caddy", "hypercorn")


def about(peer: str) -> Callable:
    """Says which peer a case is about: the word at the front of its lines."""

    def mark(function: Callable) -> Callable:
        function.peer = peer
        return function

    return mark


def for_each_server(*functions: Callable) -> Iterable[Callable]:
    """Cases of two arguments, once for each server."""
    for peer in SERVERS:
        for function in functions:
            case = functools.partial(function, peer=peer)
            case.__name__ = function.__name__
            case.peer = peer
            yield case
