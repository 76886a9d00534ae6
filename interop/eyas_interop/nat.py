"""SCTP between hosts with two paths, one of which passes a NAT.

Each host announces both of its addresses to its peer (RFC 9260 §3.3.2). The NAT rewrites the IPv4
address, so the peer cannot assign packets from that path to the association and answers with an
ABORT. The association over IPv6 must survive that.
"""

import pathlib
import shlex

from .command import Command, Run
from .report import Report

# How long the association must live, in ms: the second path is probed within the first 100 ms.
RESPONSE = 500
TOPOLOGY = """
[path.p]
delay = "10 ms"
[[path.p.middlebox]]
kind = "nat"
"""


def fetch(directory: pathlib.Path, eyas: pathlib.Path) -> Run:
    """Fetches a delayed response from a server with addresses of both families."""
    topology = directory / "nat.toml"
    topology.write_text(TOPOLOGY, encoding="utf-8")
    command = shlex.quote(str(eyas))
    log = shlex.quote(str(directory / "nat.log"))
    server = f"exec {command} serve --no-files --listen [::]:443 --names nat.test >{log} 2>&1"
    get = (
        f"exec {command} get --insecure --memory none --json --output /dev/null"
        # No other transport has time to win, unless the association ends.
        f" --prefer sctp-udp --head-start 2s --resolve nat.test:443:$EYAS_SERVER6"
        f" 'https://nat.test/slow?ms={RESPONSE}'"
    )
    return Command(eyas, directory, []).run(
        "netem", "run", "--quiet", "--topology", str(topology), "--server", server, "--", "sh", "-c", get
    )


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """The association survives the server's answer on its second path."""
    name = "an association over IPv6, with IPv4 behind a NAT"
    try:
        completed = fetch(directory, eyas)
        good = completed.status == 0 and completed.winner.get("transport") == "sctp-udp"
        report.check("nat", name, good, completed.outline())
    except Exception as error:  # one broken case must not hide the others
        report.failed("nat", name, f"{type(error).__name__}: {error}")
