"""SCTP between hosts with two paths, of which a NAT translates one and not the other.

Each host tells its peer of both of its addresses (RFC 9260 §3.3.2). The NAT changes the one of
IPv4, so the peer takes what comes over that path for a stranger's and answers with an ABORT. The
association over IPv6 has nothing to do with it.
"""

import pathlib
import shlex

from .command import Command, Ran
from .report import Report

# How long the association has to live, in ms: the second path is probed within the first hundred.
RESPONSE = 500
TOPOLOGY = """
[path.p]
delay = "10 ms"
[[path.p.middlebox]]
kind = "nat"
"""


def fetch(directory: pathlib.Path, eyas: pathlib.Path) -> Ran:
    """A response that takes its time, from a server in the addresses of both families."""
    topology = directory / "nat.toml"
    topology.write_text(TOPOLOGY, encoding="utf-8")
    command = shlex.quote(str(eyas))
    log = shlex.quote(str(directory / "nat.log"))
    server = f"exec {command} serve --no-files --listen [::]:443 --names nat.test >{log} 2>&1"
    get = (
        f"exec {command} get --insecure --memory none --json --output /dev/null"
        # Nothing else has the time to win, unless the association ends.
        f" --prefer sctp-udp --head-start 2s --resolve nat.test:443:$EYAS_SERVER6"
        f" 'https://nat.test/slow?ms={RESPONSE}'"
    )
    return Command(eyas, directory, []).run(
        "netem", "run", "--quiet", "--topology", str(topology), "--server", server, "--", "sh", "-c", get
    )


def run(directory: pathlib.Path, eyas: pathlib.Path, report: Report) -> None:
    """The association outlives what the server makes of its second path."""
    name = "an association over IPv6 beside IPv4 that is translated"
    try:
        ran = fetch(directory, eyas)
        good = ran.status == 0 and ran.winner.get("transport") == "sctp-udp"
        report.check("nat", name, good, ran.outline())
    except Exception as error:  # one broken case must not hide the others
        report.failed("nat", name, f"{type(error).__name__}: {error}")
