"""How a function becomes a case."""

from collections.abc import Callable


def about(peer: str) -> Callable:
    """Says which peer a case is about: the word at the front of its lines."""

    def mark(function: Callable) -> Callable:
        function.peer = peer
        return function

    return mark
