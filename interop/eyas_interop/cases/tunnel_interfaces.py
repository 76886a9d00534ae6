"""`eyas tunnel --tun` between two hosts with two lines: ping, iperf3 while a line fails, and nothing left behind."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time

from ..report import Skip
from ..world import World
from .case import about
from .tunnel_lines import FAILS_AFTER, MIN_TRANSFER, TIMEOUT, Ends

NAME = "eyas-tun0"
# The addresses of the client and of the server.
CLIENT_ADDRESSES = ("10.9.0.2/24", "fd00:9::2/64")
SERVER_ADDRESSES = ("10.9.0.1/24", "fd00:9::1/64")
PERMITS = ",".join(f'permit-tun="{address.split("/")[0]}"' for address in CLIENT_ADDRESSES)
# Each in turn.
TRANSPORTS = ("sctp-udp", "quic", "tcp")


def tun(addresses: tuple[str, ...]) -> tuple[str, ...]:
    return "--tun", NAME, "--tun-address", ",".join(addresses)


@about("tunnel")
def case_tunnel_interfaces(world: World) -> None:
    """One server, a client over each transport, and a line that fails under the last one."""
    if not os.access("/dev/net/tun", os.W_OK):
        raise Skip("/dev/net/tun cannot be opened here")
    if shutil.which("ping") is None:
        raise Skip("ping is not installed (Debian: iputils-ping)")
    ends = Ends(world, "interfaces")
    try:
        ends.lines.add_addresses(ends.lines.all[1])
        ends.serve(*tun(SERVER_ADDRESSES), options=PERMITS)
        for over in reversed(TRANSPORTS):
            client = ends.client(f"{over}://", *tun(CLIENT_ADDRESSES))
            client.wait_until(lambda client=client: "exchanges packets" in client.tail())
            pings(ends, world.report.check, over)
            if over == TRANSPORTS[0]:
                status(ends, world.report.check)
                iperf(ends, world)
                # It cannot clean up.
                client.process.send_signal(signal.SIGKILL)
            client.process.terminate()
            client.process.wait()
            check_gone(ends, world.report.check, over)
    finally:
        ends.stop()


def inside(ends: Ends, *command: str) -> subprocess.CompletedProcess:
    """Runs a command at the client."""
    return subprocess.run(ends.lines.inside(ends.lines.client, list(command)), capture_output=True, text=True,
                          timeout=2 * TIMEOUT, check=False)


def pings(ends: Ends, check, over: str) -> None:
    """Both address families, with almost full packets."""
    for address in SERVER_ADDRESSES:
        # One answer suffices: a loss on a busy machine is not the tunnel's fault.
        completed = inside(ends, "ping", "-n", "-c", "1", "-w", str(TIMEOUT), "-s", "1200", address.split("/")[0])
        check("tunnel", f"ping {address} over {over}", completed.returncode == 0,
              (completed.stdout + completed.stderr)[-200:])


def status(ends: Ends, check) -> None:
    """The counters in the client's status."""
    output = subprocess.run(ends.eyas("status", "--json"), capture_output=True, text=True, check=True,
                          env=ends.environment()).stdout
    counters = [session["packets"] for tunnel in json.loads(output)["tunnels"] if tunnel["role"] == "client"
               for session in tunnel["sessions"]]
    good = len(counters) == 1 and min(counters[0]["sent"], counters[0]["received"]) >= len(SERVER_ADDRESSES)
    check("tunnel", "status counts packets", good and counters[0]["forged"] == 0, str(counters))
    # The first packets are sent before the server has announced that it accepts datagrams.
    check("tunnel", "packets are SCTP messages", good and counters[0]["sent_as_datagrams"] > 0, str(counters))


def iperf(ends: Ends, world: World) -> None:
    """TCP over the interface while the second line fails, and a ping afterwards."""
    if shutil.which("iperf3") is None:
        world.report.skip("tunnel", "iperf3 by --tun", "iperf3 is not installed")
        return
    server_address = SERVER_ADDRESSES[0].split("/")[0]
    server = ends.start(ends.lines.server, "iperf3-tun", ["iperf3", "-s", "-1", "-B", server_address, "--forceflush"])
    server.wait_until(lambda: "listening on" in server.tail())
    failure = threading.Timer(FAILS_AFTER, lambda: ends.lines.cut(ends.lines.all[1]))
    failure.start()
    completed = inside(ends, "iperf3", "-c", server_address, "-t", "3", "-J")
    failure.join()
    result = json.loads(completed.stdout)
    amount = result.get("end", {}).get("sum_received", {}).get("bytes", 0)
    good = completed.returncode == 0 and amount >= MIN_TRANSFER
    world.report.check("tunnel", "iperf3 by --tun while a line fails", good,
                       f"{amount} bytes {result.get('error', '')}")
    pings(ends, world.report.check, "the remaining line")


def check_gone(ends: Ends, check, over: str) -> None:
    """Checks that the interface is removed with its process, which takes the kernel a moment."""
    deadline = time.monotonic() + TIMEOUT
    while (completed := inside(ends, "ip", "link", "show", NAME)).returncode == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    check("tunnel", f"no interface is left behind, {over}", completed.returncode != 0, completed.stdout[-200:])


CASES = [case_tunnel_interfaces]
