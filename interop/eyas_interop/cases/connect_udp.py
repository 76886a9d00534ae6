"""UDP over HTTP/3 (RFC 9298): masque-go as the client of `eyas proxy`, and as the proxy of `--via`."""

import pathlib
import socket
import subprocess
import threading

from .. import dns
from ..process import Peer
from ..report import Skip
from ..world import World
from .case import about

NAME = f"masque.{dns.ORIGIN}"
EYAS_PORT, MASQUE_PORT, SOCKS_PORT = 8443, 9443, 1080
USER = "ada:love"
LENGTHS = (5, 0, 1000)
# The time limit for one datagram to return, in seconds.
TIMEOUT = 10


def masque(world: World) -> pathlib.Path:
    program = world.binaries / "masque"
    if not program.exists():
        raise Skip("masque is not installed: interop/install masque")
    return program


class Echo:
    """Sends back each datagram."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while True:
            datagram, client = self.socket.recvfrom(65535)
            if datagram == b"over":
                return
            self.socket.sendto(datagram, client)

    def stop(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"over", ("127.0.0.1", self.port))
        self.thread.join()
        self.socket.close()


def is_up(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@about("masque-go")
def case_client(world: World) -> None:
    """Its datagrams reach their destination and return; without valid credentials it is refused."""
    program, echo = masque(world), Echo()
    users = world.file("users")
    users.write_text(f"{USER}\n")
    users.chmod(0o600)
    log = world.file("log")
    proxy = Peer("eyas proxy", [
        str(world.eyas_binary), "proxy", "--memory", "none", "--json", "-l", f"127.0.0.1:{EYAS_PORT}",
        "--users", str(users), "--tls-cert", str(world.identity.chain), "--tls-key", str(world.identity.key)], log)
    try:
        proxy.wait_until(lambda: is_up(EYAS_PORT))
        for user, is_granted in ((USER, True), ("ada:hate", False)):
            command = [str(program), "client", NAME, str(EYAS_PORT), f"127.0.0.1:{echo.port}",
                       str(world.authority.file), user]
            completed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            back = [int(line.split()[1]) for line in completed.stdout.splitlines()]
            if is_granted:
                good = completed.returncode == 0 and back == list(LENGTHS)
            else:
                good = completed.returncode != 0 and "407" in completed.stderr
            name = "client" if is_granted else "client with a wrong password"
            world.report.check("masque-go", name, good, f"returned: {back} {completed.stderr.strip()[-200:]}")
    finally:
        proxy.stop()
        echo.stop()


@about("masque-go")
def case_proxy(world: World) -> None:
    """A SOCKS5 client's datagrams pass through it."""
    program, echo = masque(world), Echo()
    far = Peer("masque proxy", [str(program), "proxy", NAME, str(MASQUE_PORT), str(world.identity.chain),
                                str(world.identity.key)], world.file("log"))
    near = None
    try:
        far.wait_until(lambda: "ready" in far.tail())
        near = Peer("eyas proxy", [
            str(world.eyas_binary), "proxy", "--memory", "none", "--explain", "-l", f"127.0.0.1:{SOCKS_PORT}",
            "--via", f"https://{NAME}:{MASQUE_PORT}", "--via-cacert", str(world.authority.file),
            "--resolve", f"{NAME}:{MASQUE_PORT}:127.0.0.1"], world.file("log"))
        near.wait_until(lambda: is_up(SOCKS_PORT))
        back = through_socks(echo.port)
        good = back == list(LENGTHS) and f"asked for 127.0.0.1:{echo.port}" in far.tail()
        world.report.check("masque-go", "proxy", good, f"returned: {back}" + ("" if good else f"; {far.tail()}"))
    finally:
        for peer in filter(None, (near, far)):
            peer.stop()
        echo.stop()


def through_socks(port: int) -> list[int]:
    """Sends datagrams by UDP ASSOCIATE (RFC 1928 §7); returns the lengths of those that return."""
    with socket.create_connection(("127.0.0.1", SOCKS_PORT), TIMEOUT) as tcp, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        tcp.sendall(bytes([5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]))
        reply = b""
        while len(reply) < 12:
            read = tcp.recv(12 - len(reply))
            if not read:
                return []
            reply += read
        association = (socket.inet_ntoa(reply[6:10]), int.from_bytes(reply[10:12], "big"))
        head = bytes([0, 0, 0, 1]) + socket.inet_aton("127.0.0.1") + port.to_bytes(2, "big")
        udp.settimeout(TIMEOUT)
        back = []
        for length in LENGTHS:
            sent = head + b"x" * length
            udp.sendto(sent, association)
            try:
                received = udp.recv(65535)
            except TimeoutError:
                break
            if received == sent:
                back.append(len(received) - len(head))
        return back


CASES = [case_client, case_proxy]
