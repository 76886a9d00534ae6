"""Another user of a shared SCTP service guesses at the sockets of its programs, and opens silent connections.

Their sockets answer only to those who have their descriptors; programs get sockets meanwhile.
"""

import contextlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

from eyas_interop.hostile.stage import Stage, main
from eyas_interop.report import Skip

# The user who attacks, who owns nothing.
STRANGER = 65_534
# The limit of the service's descriptors, and the connections that are tried at it.
DESCRIPTORS = 1024
CONNECTIONS = 3000
GUESSES = 500
# The protocol of `crates/preload/src/local`: its version, its operations, and the byte that marks capabilities.
VERSION, MARK = 4, 0xE5 << 56
SOCKET, SEND, RECEIVE, SHUTDOWN, SET_OPTION, LOCAL_NAME, CLOSED = 1, 6, 7, 8, 10, 11, 14
ECONNRESET = 104
# How long the service may take to close silent connections, in seconds.
SILENCE = 20

# A program with two connected sockets, one of which has a message to be read.
PROGRAM = """
import socket, sys
server, client = (socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132) for _ in range(2))
server.bind(("127.0.0.1", 5000))
server.listen()
client.connect(("127.0.0.1", 5000))
accepted, _ = server.accept()
client.sendall(b"secret")
print("connected", flush=True)
sys.stdin.readline()
client.sendall(b" and whole")
data = b""
while len(data) < 16:
    data += accepted.recv(100)
print(data.decode(), flush=True)
"""


def connected(path: pathlib.Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(SILENCE)
    stream.connect(str(path))
    return stream


def result(stream: socket.socket, operation: int, capability: int) -> int:
    """Makes a request for a socket; returns its result."""
    stream.sendall(struct.pack("=IIIIQQiiiIII", VERSION, operation, 0, 0, 0, capability, 0, 100, 0, 0, 0, 0))
    answer = stream.recv(65_536)
    version, value = struct.unpack_from("=Ii", answer)
    if version != VERSION:
        raise RuntimeError(f"version {version}")
    return value


def guess(path: pathlib.Path) -> dict:
    """Tries capabilities with every operation; returns which had an effect, and what the kernel lists."""
    listed = [line.split()[-1] for line in pathlib.Path("/proc/net/unix").read_text().splitlines() if "socket/" in line]
    found = []
    with connected(path) as stream:
        for number in range(GUESSES):
            for capability in (number, MARK | number):
                for operation in (SEND, RECEIVE, SHUTDOWN, SET_OPTION, LOCAL_NAME):
                    if result(stream, operation, capability) != -ECONNRESET:
                        found.append((operation, capability))
                result(stream, CLOSED, capability)
    return {"listed": listed, "found": found}


def hold(path: pathlib.Path) -> dict:
    """Opens silent connections; returns how many the service keeps at first, and after a while."""
    held = []
    for _ in range(CONNECTIONS):
        with contextlib.suppress(BlockingIOError):
            stream = socket.socket(socket.AF_UNIX)
            stream.setblocking(False)
            stream.connect(str(path))
            held.append(stream)
        time.sleep(0.0005)
    print(json.dumps({"kept": open_of(held)}), flush=True)
    deadline = time.monotonic() + SILENCE
    while (left := open_of(held)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return {"left": left}


def open_of(held: list[socket.socket]) -> int:
    count = 0
    for stream in held:
        with contextlib.suppress(ConnectionResetError):
            try:
                count += stream.recv(1) != b""
            except BlockingIOError:
                count += 1
    return count


def as_stranger(action, path: pathlib.Path):
    """Runs a function as the other user in another process; yields what that prints, line by line."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, sys.stdout.fileno())
        os.setgroups([])
        os.setresgid(STRANGER, STRANGER, STRANGER)
        os.setresuid(STRANGER, STRANGER, STRANGER)
        try:
            print(json.dumps(action(path)), flush=True)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        yield from map(json.loads, lines)
    os.waitpid(child, 0)


def attack(stage: Stage) -> None:
    if os.geteuid() != 0:
        raise Skip("another user needs root")
    # Unlike the directory of the attack, one that the other user may enter.
    with tempfile.TemporaryDirectory(prefix="eyas-interop-") as directory:
        os.chmod(directory, 0o755)
        path = pathlib.Path(directory) / "sctp"
        limited = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", "--", str(stage.eyas)]
        service = stage.start([*limited, "sctp", "serve", "--udp", "--socket", str(path), "--mode", "666"])
        service.wait_until(lambda: "serving" in service.tail())
        join = [str(stage.eyas), "sctp", "run", "--join", str(path), "--", sys.executable, "-c"]
        program = subprocess.Popen([*join, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            attacked(stage, path, program, join)
        finally:
            program.kill()
            program.wait()
        stage.check("the service runs", service.process.poll() is None, service.tail())


def attacked(stage: Stage, path: pathlib.Path, program: subprocess.Popen, join: list[str]) -> None:
    stage.check("a program has sockets", program.stdout.readline() == "connected\n")
    tried = next(as_stranger(guess, path))
    stage.check("no name of a socket is listed", not tried["listed"], str(tried["listed"]))
    stage.check("no guess has an effect", not tried["found"], str(tried["found"][:5]))
    silent = as_stranger(hold, path)
    kept = next(silent)["kept"]
    stage.within("silent connections that are kept", kept, DESCRIPTORS // 4)
    other = "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).close(); print('got one')"
    got = subprocess.run([*join, other], capture_output=True, text=True, timeout=SILENCE, check=False)
    stage.check("another program gets a socket", got.stdout == "got one\n", f"{got.stdout}{got.stderr}")
    left = next(silent)["left"]
    stage.check("silent connections are closed", left == 0, f"{left} are left")
    try:
        received, _ = program.communicate("\n", timeout=SILENCE)
    except subprocess.TimeoutExpired:
        received = "nothing"
    stage.check("the program's data is whole", received == "secret and whole\n", repr(received))


if __name__ == "__main__":
    main(attack)
