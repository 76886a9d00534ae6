"""Programs for the kernel's SCTP under `eyas sctp run`, on two hosts; and through a lossy network."""

import importlib.util
import shlex
import subprocess
import sys

from ..network import NoNamespaces, sysctl
from ..report import Skip
from ..sctp.network import CABLES, SctpNetwork, ours, theirs
from ..world import World
from .case import about
from .sctp_pair_runs import OurHost, check_outputs, report_pair, run_pair, run_to_end, shell
from .sctp_pairs import BULK, CALLS, LANGUAGES, MESSAGES, SIGNALLING, TOOLS, Pair, fill
from .sctp_sockets import in_parallel, on_terminal, sctp_run

# One packet in twenty is lost in each direction.
LOSSY = ["--loss", "5%", "--delay", "40ms", "--quiet"]


class TwoHosts:
    """Two hosts connected by two cables."""

    def __init__(self) -> None:
        try:
            self.network = SctpNetwork()
        except NoNamespaces as missing:
            raise Skip(str(missing)) from missing
        # A TCP port that a program has used is free at once for the next one.
        sysctl(self.network.theirs, "net.ipv4.tcp_max_tw_buckets=0")
        self.addresses = {
            "server": theirs(CABLES[0]), "server2": theirs(CABLES[1]), "server6": theirs(CABLES[0], ipv6=True),
            "client": ours(CABLES[0]), "client2": ours(CABLES[1]),
        }

    def run_pair(self, world: World, pair: Pair, carrier: str) -> tuple[bool, str]:
        """Runs a pair; returns whether both outputs are as expected, and details."""
        listener, connector = (OurHost(world, carrier, self.network, name) for name in (self.network.theirs, self.network.ours))
        return run_pair(world, pair, listener, connector, self.addresses)

    def silence(self) -> None:
        """The other host drops incoming SCTP and UDP."""
        rules = "table inet silent { chain in { type filter hook prerouting priority -300; meta l4proto { udp, 132 } drop; }; }\n"
        command = self.network.inside(self.network.theirs, ["nft", "-f", "-"])
        subprocess.run(command, input=rules, text=True, capture_output=True, check=True)

    def remove(self) -> None:
        self.network.remove()


def lossy(world: World, pair: Pair, carrier: str) -> tuple[bool, str]:
    """Runs a pair through `eyas netem run`, between its fixed addresses."""
    addresses = {"server": "198.18.1.2", "client": "198.18.1.1"}
    listening, connecting = (shell(fill(words, addresses)) for words in (pair.listen_command, pair.connect_command))
    listening = on_terminal(shlex.join(listening)) if pair.terminal else listening
    log = world.file("log")
    log.touch()
    server = f"exec {shlex.join(sctp_run(world, carrier, listening))} > {log} 2>&1"
    ready = f"until grep -q {shlex.quote(pair.ready)} {log}; do sleep 0.1; done; exec "
    client = ready + shlex.join(sctp_run(world, carrier, connecting))
    # Its last messages must arrive before both are ended.
    client = f"({client}); status=$?; sleep 2; exit $status"
    command = [str(world.eyas_binary), "netem", "run", *LOSSY, "--server", server, "--", "sh", "-c", client]
    status, output = run_to_end(command)
    return check_outputs(pair, status, output, log.read_text(errors="replace"))


@about("sctp")
def case_socket_hosts(world: World) -> None:
    """All pairs, from one host to the other."""
    hosts = TwoHosts()
    try:
        for pair in [*TOOLS, *LANGUAGES, *SIGNALLING]:
            report_pair(world, "two hosts", pair, lambda pair, carrier: hosts.run_pair(world, pair, carrier))
    finally:
        hosts.remove()


@about("sctp")
def case_socket_hosts_lossy(world: World) -> None:
    """One packet in twenty is lost in each direction."""
    for pair in (MESSAGES, BULK, CALLS):
        report_pair(world, "5% lost", pair, lambda pair, carrier: lossy(world, pair, carrier))


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
    """A host that does not answer: the configured number of attempts, and an error."""
    if importlib.util.find_spec("sctp") is None:
        raise Skip("pysctp is not installed; run interop/install python")
    hosts = TwoHosts()
    try:
        hosts.silence()

        def check(carrier: str) -> None:
            command = [sys.executable, "-c", fill(UNANSWERED, hosts.addresses)]
            status, output = OurHost(world, carrier, hosts.network, hosts.network.ours).run(command)
            world.report.check("pysctp", f"no answer, {carrier}", (status, output) == (0, "ETIMEDOUT\n"), output)

        in_parallel(check)
    finally:
        hosts.remove()


CASES = [case_socket_hosts, case_socket_hosts_lossy, case_socket_hosts_silent]
