"""gRPC through `eyas serve --upstream h2c://…`, with grpcio at both ends."""

import queue

import grpc

from ..world import World
from .case import about
from .gateway import gateway

# Long enough for anything here, in seconds.
TIMEOUT = 20


def unary(channel: grpc.Channel) -> str | None:
    """A large message, its echo, and trailing metadata."""
    message = bytes(range(256)) * 4000
    echo, call = channel.unary_unary("/eyas.Test/One").with_call(message, timeout=TIMEOUT)
    trailers = dict(call.trailing_metadata())
    good = echo == message and trailers.get("x-length") == str(len(message))
    return None if good else f"{len(echo)} bytes, {trailers}"


def stream(channel: grpc.Channel) -> str | None:
    """A stream of answers."""
    answers = list(channel.unary_stream("/eyas.Test/Several")(b"500", timeout=TIMEOUT))
    good = answers == [str(number).encode() for number in range(500)]
    return None if good else f"{len(answers)} answers"


def conversation(channel: grpc.Channel) -> str | None:
    """Each message is answered before the next one is sent."""
    messages: queue.Queue = queue.Queue()
    call = channel.stream_stream("/eyas.Test/Conversation")(iter(messages.get, None), timeout=TIMEOUT)
    for number in range(20):
        messages.put(f"{number}".encode())
        answer = next(call)
        if answer != f"echo {number}".encode():
            return f"{answer!r} to {number}"
    messages.put(None)
    return None if list(call) == [] else "something after the end"


def failing(channel: grpc.Channel) -> str | None:
    """A status without a message."""
    try:
        channel.unary_unary("/eyas.Test/Failing")(b"", timeout=TIMEOUT)
    except grpc.RpcError as error:
        good = (error.code(), error.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "none left, für heute")
        return None if good else f"{error.code()}: {error.details()}"
    return "no error"


@about("grpcio")
def case_gateway_grpc(world: World) -> None:
    """All four kinds of calls."""
    with gateway(world, "grpc") as running:
        roots = running.certificate.read_bytes()
        credentials = grpc.ssl_channel_credentials(roots)
        with grpc.secure_channel(f"localhost:{running.port}", credentials) as channel:
            for call in (unary, stream, conversation, failing):
                fault = call(channel)
                name = f"{call.__name__}: {call.__doc__}"
                world.report.check("grpcio", name, fault is None, fault or "as without a gateway")


CASES = [case_gateway_grpc]
