"""One `eyas sctp serve` for programs in other network and mount namespaces, as in a pod, and its status."""

import json
import pathlib
import shutil
import signal
import subprocess

from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

# The time limit of one program, in seconds.
TIMEOUT = 20
SOCAT_LISTENER = ["socat", "-d", "-d", "-u", "SCTP-LISTEN:5000,bind=127.0.0.1", "STDOUT"]
SOCAT_SENDER = ["socat", "-d", "-d", "-u", "STDIN", "SCTP:127.0.0.1:5000"]
# A container: its own namespaces, except for processes and the shared folder.
CONTAINER = ["unshare", "--net", "--mount", "--uts", "--ipc"]


class Service:
    """`eyas sctp serve` at its own socket."""

    def __init__(self, world: World, carrier: str, *more: str) -> None:
        if shutil.which("socat") is None:
            raise Skip("socat is not installed (Debian: socat)")
        self.world = world
        self.eyas = str(world.eyas_binary)
        self.socket = world.file("sctp")
        command = [self.eyas, "sctp", "serve", carrier, "--socket", str(self.socket), *more]
        self.peer = Peer("eyas sctp serve", command, world.file("log"))
        self.peer.wait_until(lambda: "serving" in self.peer.tail())

    def joined(self, command: list[str]) -> list[str]:
        """Returns the command line that runs a command in a container, joined to this service."""
        return [*CONTAINER, self.eyas, "sctp", "run", "--join", str(self.socket), "--", *command]

    def start(self, command: list[str], ready: str, **options) -> Peer:
        """Starts a program and waits until it has printed this."""
        peer = Peer(command[0], self.joined(command), self.world.file("log"), **options)
        return peer.wait_until(lambda: ready in peer.log.read_text(errors="replace"))

    def status(self) -> dict:
        """Returns its status."""
        command = [self.eyas, "sctp", "status", "--json", "--socket", str(self.socket)]
        shown = subprocess.run(command, timeout=TIMEOUT, capture_output=True, check=True)
        return json.loads(shown.stdout)["supervisors"][0]

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_) -> None:
        self.peer.stop()


def exit_status(peer: Peer) -> int | None:
    """Returns the exit status of a program that ends by itself; none if it hangs."""
    try:
        return peer.process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        peer.stop()
        return None


@about("socat")
def case_socket_service_containers(world: World) -> None:
    """Two programs in separate containers exchange a message; the status shows both."""
    check = world.report.check
    for carrier in ("--udp", "--ip"):
        capture = world.file("pcapng")
        with Service(world, carrier, "--capture", str(capture)) as service:
            server = service.start(SOCAT_LISTENER, "listening on")
            client = subprocess.Popen(
                service.joined(SOCAT_SENDER), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            client.stdin.write("hello\n")
            client.stdin.flush()
            server.wait_until(lambda: "hello\n" in server.log.read_text(errors="replace"))
            shown = service.status()
            states = sorted(it["state"] for it in shown["associations"])
            sockets = sorted(it["state"] for it in shown["sockets"])
            measured = [path["smoothed_rtt_ms"] for it in shown["associations"] for path in it["paths"]]
            client.stdin.close()
            done = (client.wait(TIMEOUT), exit_status(server))
            check("socat", f"hello between containers, {carrier}", done == (0, 0), f"{done}")
            seen = states == ["ESTABLISHED"] * 2 and sockets.count("connected") == 2 and any(measured)
            check("socat", f"eyas sctp status, {carrier}", seen, f"{states}, {sockets}, round trips {measured} ms")
            left = len(service.status()["sockets"])
            check("socat", f"no sockets are left, {carrier}", left == 0, f"{left} sockets")
        if shutil.which("tshark") is None:
            raise Skip("tshark is not installed (Debian: tshark)")
        text, errors = dissect(capture)
        good = "hello" in text and not errors
        check("tshark", f"reads the capture, {carrier}", good, f"{errors or text.split()}")


def dissect(capture: pathlib.Path) -> tuple[str, str]:
    """Returns the text of the messages in a capture, and the packets that tshark reports as wrong."""
    read = ["tshark", "-r", str(capture), "-o", "sctp.checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    fields = [*read, "-Y", "sctp.chunk_type == 0", "-T", "fields", "-e", "data.data"]
    data = subprocess.run(fields, timeout=TIMEOUT, capture_output=True, text=True, check=True).stdout
    wrong = ["-Y", "sctp.checksum.status == 0 || udp.checksum.status == 0 || _ws.malformed"]
    errors = subprocess.run([*read, *wrong], timeout=TIMEOUT, capture_output=True, text=True, check=True)
    return bytes.fromhex(data.replace("\n", "")).decode(errors="replace"), errors.stdout


@about("socat")
def case_socket_service_killed(world: World) -> None:
    """When the service is killed, its programs get errors; the next service replaces the stale socket."""
    check = world.report.check
    with Service(world, "--udp") as service:
        waiting = service.start(SOCAT_LISTENER, "listening on")
        service.peer.process.kill()
        service.peer.process.wait()
        status = exit_status(waiting)
        check("socat", "eyas sctp serve is killed: its program ends", status == 1, waiting.tail()[-120:])
        command = [service.eyas, "sctp", "serve", "--udp", "--socket", str(service.socket)]
        restarted = Peer("eyas sctp serve", command, world.file("log"))
        restarted.wait_until(lambda: "serving" in restarted.tail())
        refused = subprocess.run(command, timeout=TIMEOUT, capture_output=True, text=True, check=False)
        message = refused.stderr.strip()
        check("socat", "a second service at the same socket is refused", refused.returncode == 45, message[:120])
        program = service.start(SOCAT_LISTENER, "listening on")
        restarted.process.send_signal(signal.SIGTERM)
        status = (exit_status(restarted), exit_status(program))
        gone = not service.socket.exists()
        check("socat", "it ends, and with it its program and its socket", status == (0, 1) and gone, f"{status}")


CASES = [case_socket_service_containers, case_socket_service_killed]
