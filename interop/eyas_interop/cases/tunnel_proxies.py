"""`eyas tunnel` through third-party proxies, where they are the only way to the server: Squid and tinyproxy."""

import os
import pathlib
import shutil

from ..network import EYAS, ipv4
from ..process import Peer
from ..world import World
from .case import about
from .tunnel import PAGE, SERVE, WEB, Tunnels, curl, wait_for

# The server listens on loopback of the proxies' host only, so nothing else leads there.
SERVER = "127.0.0.1:4434"
SQUID, TINYPROXY = 3128, 8888
FORWARDED = 18083


def squid(directory: pathlib.Path, connect_ports: str) -> list[str]:
    """Squid, which by default allows CONNECT to port 443 only."""
    configuration = directory / "squid.conf"
    configuration.write_text(
        f"http_port {SQUID}\nacl tls port {connect_ports}\nacl CONNECT method CONNECT\nhttp_access deny CONNECT !tls\n"
        f"http_access allow all\nalways_direct allow all\naccess_log none\ncache deny all\n"
        f"pid_filename none\ncache_log /dev/null\ncache_effective_user proxy\n"
        f"netdb_filename none\nshutdown_lifetime 0 seconds\n")
    # The name keeps its shared memory apart from that of others.
    return ["squid", "-N", "-d", "1", "-n", f"eyas{os.getpid()}", "-f", str(configuration)]


def tinyproxy(directory: pathlib.Path) -> list[str]:
    """tinyproxy, which asks for a password."""
    configuration = directory / "tinyproxy.conf"
    configuration.write_text(f"Port {TINYPROXY}\nTimeout 600\nMaxClients 20\nBasicAuth ada secret\n")
    return ["tinyproxy", "-d", "-c", str(configuration)]


@about("tunnel")
def case_tunnel_proxies(world: World) -> None:
    """Both directions through each, refusals, and a proxy that is restarted."""
    tunnels = Tunnels(world)
    check, skip = world.report.check, world.report.skip
    try:
        web = tunnels.start("web", world.network.on_server([*SERVE, str(tunnels.directory / "there")]))
        web.wait_until(lambda: "Serving HTTP" in web.tail())
        tunnels.keys.write_text(f"{tunnels.keygen('key.pem')} interop\n")
        server = tunnels.start("server", world.network.on_server(tunnels.eyas(
            "serve", "--listen", SERVER, "--key", str(tunnels.directory / "host.pem"),
            "--authorized-keys", str(tunnels.keys))))
        server.wait_until(lambda: "listening on" in server.tail())
        if shutil.which("squid") is None:
            skip("tunnel", "through Squid", "squid is not installed (Debian: squid)")
        else:
            through_squid(tunnels, check)
        if shutil.which("tinyproxy") is None:
            skip("tunnel", "through tinyproxy", "tinyproxy is not installed (Debian: tinyproxy)")
        else:
            through_tinyproxy(tunnels, check)
    finally:
        tunnels.stop()


def client(tunnels: Tunnels, proxy: str, *arguments: str) -> list[str]:
    return tunnels.eyas(SERVER, "--memory", "none", "--key", str(tunnels.directory / "key.pem"),
                        "--known-hosts", str(tunnels.known), "--proxy", proxy, *arguments)


def start_proxy(tunnels: Tunnels, name: str, command: list[str], port: int) -> Peer:
    proxy = tunnels.start(name, tunnels.world.network.on_server(command))
    return proxy.wait_until(lambda: "000" not in curl("-o", "/dev/null", "-w", "%{http_code}",
                                                      f"http://{ipv4(EYAS)}:{port}/"))


def stdio(tunnels: Tunnels, proxy: str):
    return tunnels.run(*client(tunnels, proxy, "--stdio", f"localhost:{WEB}")[2:], stdin=b"GET /page HTTP/1.0\r\n\r\n")


def through_squid(tunnels: Tunnels, check) -> None:
    proxy = f"http://{ipv4(EYAS)}:{SQUID}"
    strict = start_proxy(tunnels, "squid", squid(tunnels.directory, "443"), SQUID)
    completed = stdio(tunnels, proxy)
    good = completed.returncode == 7 and b"403 Forbidden" in completed.stderr and b"4434" in completed.stderr
    check("tunnel", "Squid does not allow the port", good, str(completed)[-300:])
    strict.stop()
    command = squid(tunnels.directory, "4434")
    squid_peer = start_proxy(tunnels, "squid", command, SQUID)
    completed = stdio(tunnels, proxy)
    check("tunnel", "--stdio through Squid", PAGE.encode() in completed.stdout, str(completed)[-300:])
    forwarding = tunnels.start("client", client(tunnels, proxy, "-L", f"{FORWARDED}:localhost:{WEB}"))
    forwarding.wait_until(lambda: " leads to " in forwarding.tail())
    url = f"http://localhost:{FORWARDED}/page"
    output = curl(url)
    check("tunnel", "-L through Squid", PAGE in output, output[-200:])
    squid_peer.stop()
    told = wait_for(lambda: "cannot reach the proxy" in forwarding.tail())
    start_proxy(tunnels, "squid", command, SQUID)
    output = curl(url)
    check("tunnel", "after Squid was restarted", told and PAGE in output, output + forwarding.tail()[-200:])


def through_tinyproxy(tunnels: Tunnels, check) -> None:
    start_proxy(tunnels, "tinyproxy", tinyproxy(tunnels.directory), TINYPROXY)
    host = f"{ipv4(EYAS)}:{TINYPROXY}"
    completed = stdio(tunnels, f"http://{host}")
    good = completed.returncode == 7 and b"put NAME:PASSWORD@" in completed.stderr
    check("tunnel", "tinyproxy asks for a password", good, str(completed)[-300:])
    completed = stdio(tunnels, f"http://ada:secret@{host}")
    check("tunnel", "--stdio through tinyproxy", PAGE.encode() in completed.stdout, str(completed)[-300:])


CASES = [case_tunnel_proxies]
