"""A plain-text server that answers with bytes chosen by the attack."""

import contextlib
import pathlib
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator

# The time limit of a command that must end by itself, in seconds: more than any checked bound.
LIMIT = 30


@contextlib.contextmanager
def answering(first: bytes, repeated: bytes = b"") -> Iterator[str]:
    """Yields the URL of a server that sends `first`, and then `repeated` for as long as it is read."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, first, repeated), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def _accept(listener: socket.socket, first: bytes, repeated: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            stream, _ = listener.accept()
            threading.Thread(target=_serve, args=(stream, first, repeated), daemon=True).start()


def _serve(stream: socket.socket, first: bytes, repeated: bytes) -> None:
    with stream, contextlib.suppress(OSError):
        stream.recv(4096)
        stream.sendall(first)
        while repeated:
            stream.sendall(repeated * 100)
        stream.recv(4096)


def start(eyas: pathlib.Path, *arguments: str, stdout: int | None = None) -> subprocess.Popen:
    """Starts a command without memory, whose output is kept, or goes to this descriptor."""
    environment = {"PATH": "/usr/bin:/bin", "EYAS_MEMORY": "none"}
    return subprocess.Popen(
        [str(eyas), *arguments], env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if stdout is None else stdout, stderr=subprocess.PIPE,
        preexec_fn=_reset_signals,
    )


def _reset_signals() -> None:
    """Resets signals that nohup or a background shell ignores: the command would inherit that."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def finish(process: subprocess.Popen) -> tuple[int | None, str]:
    """Returns the exit code, `None` if it had to be killed, and its standard error."""
    try:
        _, stderr = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[1]
    return process.returncode, stderr
