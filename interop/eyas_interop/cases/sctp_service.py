"""One `eyas sctp serve` for programs in other network and mount namespaces, as in a pod, and what it shows."""

import json
import pathlib
import shutil
import signal
import subprocess

from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

# One program may run this long, in seconds.
WITHIN = 20
LISTENING = ["socat", "-d", "-d", "-u", "SCTP-LISTEN:5000,bind=127.0.0.1", "STDOUT"]
SPEAKING = ["socat", "-d", "-d", "-u", "STDIN", "SCTP:127.0.0.1:5000"]
# A container: namespaces of its own, but for the processes and the shared folder.
CONTAINER = ["unshare", "--net", "--mount", "--uts", "--ipc"]


class Service:
    """`eyas sctp serve` at a socket of its own."""

    def __init__(self, world: World, carrier: str, *more: str) -> None:
        if shutil.which("socat") is None:
            raise Skip("socat is not installed (Debian: socat)")
        self.world = world
        self.eyas = str(world.eyas_binary)
        self.socket = world.file("sctp")
        command = [self.eyas, "sctp", "serve", carrier, "--socket", str(self.socket), *more]
        self.peer = Peer("eyas sctp serve", command, world.file("log"))
        self.peer.wait_until(lambda: "serving" in self.peer.said())

    def joined(self, command: list[str]) -> list[str]:
        """The command in a container, with the sockets of this."""
        return [*CONTAINER, self.eyas, "sctp", "run", "--join", str(self.socket), "--", *command]

    def start(self, command: list[str], said: str, **options) -> Peer:
        """A program that has said this."""
        peer = Peer(command[0], self.joined(command), self.world.file("log"), **options)
        return peer.wait_until(lambda: said in peer.log.read_text(errors="replace"))

    def status(self) -> dict:
        """What it shows of itself."""
        command = [self.eyas, "sctp", "status", "--json", "--socket", str(self.socket)]
        shown = subprocess.run(command, timeout=WITHIN, capture_output=True, check=True)
        return json.loads(shown.stdout)["supervisors"][0]

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_) -> None:
        self.peer.stop()


def ends(peer: Peer) -> int | None:
    """The status of a program that ends by itself; of one that hangs, none."""
    try:
        return peer.process.wait(WITHIN)
    except subprocess.TimeoutExpired:
        peer.stop()
        return None


@about("socat")
def case_socket_service_containers(world: World) -> None:
    """Two programs, each in a container of its own, speak to each other; both are seen meanwhile."""
    check = world.report.check
    for carrier in ("--udp", "--ip"):
        capture = world.file("pcapng")
        with Service(world, carrier, "--capture", str(capture)) as service:
            server = service.start(LISTENING, "listening on")
            client = subprocess.Popen(
                service.joined(SPEAKING), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            client.stdin.write("hello\n")
            client.stdin.flush()
            server.wait_until(lambda: "hello\n" in server.log.read_text(errors="replace"))
            shown = service.status()
            states = sorted(one["state"] for one in shown["associations"])
            sockets = sorted(one["state"] for one in shown["sockets"])
            measured = [path["smoothed_rtt_ms"] for one in shown["associations"] for path in one["paths"]]
            client.stdin.close()
            done = (client.wait(WITHIN), ends(server))
            check("socat", f"hello between containers, {carrier}", done == (0, 0), f"{done}")
            seen = states == ["ESTABLISHED"] * 2 and sockets.count("connected") == 2 and any(measured)
            check("socat", f"eyas sctp status, {carrier}", seen, f"{states}, {sockets}, round trips {measured} ms")
            left = len(service.status()["sockets"])
            check("socat", f"nothing is left of them, {carrier}", left == 0, f"{left} sockets")
        if shutil.which("tshark") is None:
            raise Skip("tshark is not installed (Debian: tshark)")
        text, complaints = dissected(capture)
        good = "hello" in text and not complaints
        check("tshark", f"reads the capture, {carrier}", good, f"{complaints or text.split()}")


def dissected(capture: pathlib.Path) -> tuple[str, str]:
    """The text of the messages in a capture, and what tshark finds wrong with its packets."""
    read = ["tshark", "-r", str(capture), "-o", "sctp.checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    fields = [*read, "-Y", "sctp.chunk_type == 0", "-T", "fields", "-e", "data.data"]
    data = subprocess.run(fields, timeout=WITHIN, capture_output=True, text=True, check=True).stdout
    wrong = ["-Y", "sctp.checksum.status == 0 || udp.checksum.status == 0 || _ws.malformed"]
    complaints = subprocess.run([*read, *wrong], timeout=WITHIN, capture_output=True, text=True, check=True)
    return bytes.fromhex(data.replace("\n", "")).decode(errors="replace"), complaints.stdout


@about("socat")
def case_socket_service_killed(world: World) -> None:
    """Without who serves, programs get errors; the next one takes the place of what was left."""
    check = world.report.check
    with Service(world, "--udp") as service:
        waiting = service.start(LISTENING, "listening on")
        service.peer.process.kill()
        service.peer.process.wait()
        status = ends(waiting)
        check("socat", "eyas sctp serve is killed: its program ends", status == 1, waiting.said()[-120:])
        command = [service.eyas, "sctp", "serve", "--udp", "--socket", str(service.socket)]
        again = Peer("eyas sctp serve", command, world.file("log"))
        again.wait_until(lambda: "serving" in again.said())
        refused = subprocess.run(command, timeout=WITHIN, capture_output=True, text=True, check=False)
        said = refused.stderr.strip()
        check("socat", "a second one at its place is refused", refused.returncode == 45, said[:120])
        ended = service.start(LISTENING, "listening on")
        again.process.send_signal(signal.SIGTERM)
        status = (ends(again), ends(ended))
        gone = not service.socket.exists()
        check("socat", "it ends: so does its program, and its socket", status == (0, 1) and gone, f"{status}")


CASES = [case_socket_service_containers, case_socket_service_killed]
