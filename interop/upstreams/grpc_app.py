"""A gRPC server in the clear: one answer, a stream of them, a conversation, and an error. Prints its port."""

import sys
from concurrent import futures

import grpc


def one(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Echoes the message, with trailing metadata."""
    context.set_trailing_metadata((("x-length", str(len(request))),))
    return request


def several(request: bytes, _: grpc.ServicerContext):
    """Answers with as many messages as the request says."""
    for number in range(int(request)):
        yield str(number).encode()


def conversation(requests, _: grpc.ServicerContext):
    """Answers each message when it arrives."""
    for request in requests:
        yield b"echo " + request


def failing(_: bytes, context: grpc.ServicerContext) -> bytes:
    """Fails with a status, and no message."""
    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "none left, für heute")
    return b""


def main() -> None:
    """Serves until it is ended."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("eyas.Test", {
        "One": grpc.unary_unary_rpc_method_handler(one),
        "Several": grpc.unary_stream_rpc_method_handler(several),
        "Conversation": grpc.stream_stream_rpc_method_handler(conversation),
        "Failing": grpc.unary_unary_rpc_method_handler(failing),
    }),))
    port = server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    server.start()
    print(f"port {port}", flush=True)
    server.wait_for_termination()


main()
