"""A server that answers with bytes that the attack chooses, in clear."""

import contextlib
import pathlib
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator

# How long a command may take that is to end by itself, in seconds: more than any bound that is checked.
LIMIT = 30


@contextlib.contextmanager
def answering(once: bytes, again: bytes = b"") -> Iterator[str]:
    """The URL of one that sends the first bytes, and then the others for as long as they are taken."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, once, again), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def _accept(listener: socket.socket, once: bytes, again: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            stream, _ = listener.accept()
            threading.Thread(target=_serve, args=(stream, once, again), daemon=True).start()


def _serve(stream: socket.socket, once: bytes, again: bytes) -> None:
    with stream, contextlib.suppress(OSError):
        stream.recv(4096)
        stream.sendall(once)
        while again:
            stream.sendall(again * 100)
        stream.recv(4096)


def start(eyas: pathlib.Path, *arguments: str) -> subprocess.Popen:
    """A command that remembers nothing."""
    environment = {"PATH": "/usr/bin:/bin", "EYAS_MEMORY": "none"}
    return subprocess.Popen(
        [str(eyas), *arguments], env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=_heed_signals,
    )


def _heed_signals() -> None:
    """What nohup and a shell's background ignore would be ignored by the command, too, as it should."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def ended(process: subprocess.Popen) -> tuple[int | None, str]:
    """The exit code, `None` if it had to be killed; and what it said."""
    try:
        _, said = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[1]
    return process.returncode, said
