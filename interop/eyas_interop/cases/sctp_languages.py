"""What Python and Java have for the kernel's SCTP, unchanged, under `eyas sctp run`."""

import importlib.util
import pathlib
import sys

from ..report import Skip
from ..world import World
from .case import about
from .sctp_programs import at_once
from .sctp_sockets import Server, client, needs

ADDRESSES = [("127.0.0.1", 5300), ("127.0.0.2", 5300)]
# One socket for all associations, at two addresses.
HEARING = f"""
import sctp, socket
server = sctp.sctpsocket_udp(socket.AF_INET)
server.bindx({ADDRESSES})
server.events.data_io = server.events.association = True
server.listen(5)
print("listening", flush=True)
while True:
    peer, flags, data, info = server.sctp_recv(1000)
    if not flags & 0x8000:
        break
    print("association", info.state, flush=True)
print(data.decode(), "on", info.stream, flush=True)
server.sctp_send(data, to=peer, stream=info.stream)
"""
SPEAKING = f"""
import sctp, socket
client = sctp.sctpsocket_tcp(socket.AF_INET)
client.connectx({ADDRESSES})
print(sorted(client.getpaddrs()) == {ADDRESSES}, client.get_status().state)
client.sctp_send(b"hello", stream=3)
print(client.sctp_recv(1000)[2].decode())
client.close()
"""


@about("pysctp")
def case_socket_languages_python(world: World) -> None:
    """One to many at two addresses, and one to one by connectx."""
    if importlib.util.find_spec("sctp") is None:
        raise Skip("pysctp is not installed: interop/install python")

    def one(carrier: str) -> None:
        with Server(world, carrier, [sys.executable, "-c", HEARING], "listening") as server:
            status, said = client(world, carrier, [sys.executable, "-c", SPEAKING])
            good = server.ended() and status == 0 and said.splitlines() == ["True 4", "hello"]
            good = good and server.all().splitlines() == ["listening", "association 0", "hello on 3"]
            world.report.check("pysctp", f"bindx and connectx, {carrier}", good, "" if good else said + server.all())

    at_once(one)


# What Channels.java says.
CHANNELS = """connectable true, connected true
client saw [COMM_UP], then hello on 3
server saw [COMM_UP, SHUTDOWN], then -1
branched after first: from the branch on 1
closed while it waited
the end"""


@about("java")
def case_socket_languages_java(world: World) -> None:
    """A Selector that connects, SctpMultiChannel with branch, and close from another thread."""
    needs("java", "javac")
    program = pathlib.Path(__file__).parents[2] / "peers" / "java" / "Channels.java"

    def one(carrier: str) -> None:
        status, said = client(world, carrier, ["java", str(program)])
        # The threads of both ends speak in any order.
        good = status == 0 and sorted(said.splitlines()) == sorted(CHANNELS.splitlines())
        world.report.check("java", f"channels of OpenJDK, {carrier}", good, "" if good else said[-400:])

    at_once(one)


CASES = [case_socket_languages_python, case_socket_languages_java]
