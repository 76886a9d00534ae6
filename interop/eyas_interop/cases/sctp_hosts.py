"""Programs for the kernel's SCTP under `eyas sctp run`, on two hosts; and through a network that loses."""

import importlib.util
import shlex
import subprocess
import sys

from ..network import NoNamespaces, sysctl
from ..report import Skip
from ..sctp.network import CABLES, SctpNetwork, ours, theirs
from ..world import World
from .case import about
from .sctp_meeting import Here, ended, judge, meet, shell, tell
from .sctp_pairs import BULK, CALLS, LANGUAGES, MESSAGES, SIGNALLING, TOOLS, Pair, fill
from .sctp_sockets import at_once, on_terminal, under

# One in twenty packets is lost on the way there, and on the way back.
LOSSY = ["--loss", "5%", "--delay", "40ms", "--quiet"]


class TwoHosts:
    """Two cables between them."""

    def __init__(self) -> None:
        try:
            self.network = SctpNetwork()
        except NoNamespaces as missing:
            raise Skip(str(missing)) from missing
        # A port of TCP that a program had is free at once for the next one.
        sysctl(self.network.theirs, "net.ipv4.tcp_max_tw_buckets=0")
        self.addresses = {
            "server": theirs(CABLES[0]), "server2": theirs(CABLES[1]), "server6": theirs(CABLES[0], six=True),
            "client": ours(CABLES[0]), "client2": ours(CABLES[1]),
        }

    def meet(self, world: World, pair: Pair, carrier: str) -> tuple[bool, str]:
        """Whether both say what they should."""
        there, here = (Here(world, carrier, self.network, name) for name in (self.network.theirs, self.network.ours))
        return meet(world, pair, there, here, self.addresses)

    def silence(self) -> None:
        """The other host drops what comes of SCTP and UDP."""
        rules = "table inet silent { chain in { type filter hook prerouting priority -300; meta l4proto { udp, 132 } drop; }; }\n"
        command = self.network.inside(self.network.theirs, ["nft", "-f", "-"])
        subprocess.run(command, input=rules, text=True, capture_output=True, check=True)

    def remove(self) -> None:
        self.network.remove()


def lossy(world: World, pair: Pair, carrier: str) -> tuple[bool, str]:
    """The same through `eyas netem run`, whose addresses it finds in its environment."""
    addresses = {"server": "198.18.1.2", "client": "198.18.1.1"}
    listening, connecting = (shell(fill(words, addresses)) for words in (pair.listens, pair.connects))
    listening = on_terminal(shlex.join(listening)) if pair.terminal else listening
    log = world.file("log")
    log.touch()
    server = f"exec {shlex.join(under(world, carrier, listening))} > {log} 2>&1"
    ready = f"until grep -q {shlex.quote(pair.ready)} {log}; do sleep 0.1; done; exec "
    client = ready + shlex.join(under(world, carrier, connecting))
    # What it says last is to be heard before both are ended.
    client = f"({client}); status=$?; sleep 2; exit $status"
    command = [str(world.eyas_binary), "netem", "run", *LOSSY, "--server", server, "--", "sh", "-c", client]
    status, said = ended(command)
    return judge(pair, status, said, log.read_text(errors="replace"))


@about("sctp")
def case_socket_hosts(world: World) -> None:
    """All of them, from one host to the other."""
    hosts = TwoHosts()
    try:
        for pair in [*TOOLS, *LANGUAGES, *SIGNALLING]:
            tell(world, "two hosts", pair, lambda pair, carrier: hosts.meet(world, pair, carrier))
    finally:
        hosts.remove()


@about("sctp")
def case_socket_hosts_lossy(world: World) -> None:
    """One in twenty packets is lost, each way."""
    for pair in (MESSAGES, BULK, CALLS):
        tell(world, "5% lost", pair, lambda pair, carrier: lossy(world, pair, carrier))


# Three attempts, 300 ms apart.
UNANSWERED = """
import errno, sctp, socket
client = sctp.sctpsocket_tcp(socket.AF_INET)
client.initparams.max_attempts = 2
waits = client.get_rtoinfo()
waits.min = waits.initial = waits.max = 300
client.set_rtoinfo(waits)
try:
    client.connect(("{server}", 5200))
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@about("pysctp")
def case_socket_hosts_silent(world: World) -> None:
    """A host that does not answer: the attempts that a program asked for, and an error."""
    if importlib.util.find_spec("sctp") is None:
        raise Skip("pysctp is not installed: interop/install python")
    hosts = TwoHosts()
    try:
        hosts.silence()

        def one(carrier: str) -> None:
            words = [sys.executable, "-c", fill(UNANSWERED, hosts.addresses)]
            status, said = Here(world, carrier, hosts.network, hosts.network.ours).runs(words)
            world.report.check("pysctp", f"no answer, {carrier}", (status, said) == (0, "ETIMEDOUT\n"), said)

        at_once(one)
    finally:
        hosts.remove()


CASES = [case_socket_hosts, case_socket_hosts_lossy, case_socket_hosts_silent]
