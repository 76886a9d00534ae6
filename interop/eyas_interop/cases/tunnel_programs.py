"""Third-party programs through `eyas tunnel` between two hosts with two lines: ssh, rsync over ssh, a browser, a client
that is suspended for a while, and a server that is killed and restarted."""

import shutil
import signal
import subprocess
import sys
import time

from .. import clients
from ..openssh import PORT as SSH
from ..openssh import OpenSsh
from ..report import Skip
from ..world import World
from .case import about
from .tunnel_lines import PORT, TIMEOUT, Ends, is_used

WEB, SOCKS, LOCAL = 8098, 18082, 18080
# Longer than an end waits for the other one before it gives the session up, in seconds.
SUSPENDED_FOR = 25
PAGE = "<!doctype html><title>there</title><p id=page></p><script src=part.js></script>\n"
PART = "document.getElementById('page').textContent = 'loaded through ' + 'the tunnel';\n"
LOADED = "loaded through the tunnel"


@about("tunnel")
def case_tunnel_programs(world: World) -> None:
    """One client over both lines, and the clients that ssh and rsync start."""
    ends = Ends(world, "programs")
    check = world.report.check
    try:
        ends.lines.add_addresses(ends.lines.all[1])
        ends.serve()
        site = ends.directory / "site"
        site.mkdir()
        (site / "page.html").write_text(PAGE)
        (site / "part.js").write_text(PART)
        web = ends.start(ends.lines.server, "web", [
            sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", str(WEB), "--directory", str(site)])
        web.wait_until(lambda: "Serving HTTP" in web.tail())
        client = ends.client("sctp-udp://", "-D", str(SOCKS), "-L", f"{LOCAL}:127.0.0.1:{WEB}")
        client.wait_until(lambda: client.tail().count(" leads to ") == 2)
        for name, program in (("a browser's page by -D", browser), ("ssh and rsync by --stdio", ssh_and_rsync)):
            try:
                program(ends, check)
            except Skip as reason:
                world.report.skip("tunnel", name, str(reason))
        suspended(ends, client, check)
        restarted(ends, client, check)
    finally:
        ends.stop()


def browser(ends: Ends, check) -> None:
    """Chromium, which lets the proxy resolve names; `localhost` is the server's loopback here."""
    scratch = ends.directory / "browser"
    scratch.mkdir()
    inside = ends.lines.inside(ends.lines.client, [])
    completed = clients.chromium_by_socks(f"http://localhost:{WEB}/page.html", f"127.0.0.1:{SOCKS}", scratch, inside)
    check("tunnel", "a browser's page by -D over two lines", LOADED in completed.stdout, completed.stdout[-200:])


def ssh_and_rsync(ends: Ends, check) -> None:
    """ssh with a ProxyCommand, and rsync over that."""
    openssh = OpenSsh(ends.directory)
    sshd = ends.start(ends.lines.server, "sshd", openssh.server())
    sshd.wait_until(lambda: "Server listening" in sshd.tail())
    proxy = ends.eyas(f"sctp-udp://{ends.lines.all[0].address(2)}:{PORT}", "--memory", "none", "--multipath",
                      "--key", str(ends.directory / "key.pem"),
                      "--known-hosts", str(ends.directory / "known_hosts"), "--stdio", f"localhost:{SSH}")
    command = openssh.client(proxy)
    completed = inside(ends, *command, "root@tunnel.test", f"sha256sum {ends.directory / 'file'}")
    good = completed.returncode == 0 and str(ends.directory / "file") in completed.stdout
    check("tunnel", "ssh by ProxyCommand over two lines", good, (completed.stdout + completed.stderr)[-200:])
    if shutil.which("rsync") is None:
        raise Skip("rsync is not installed (Debian: rsync)")
    copy = ends.directory / "copy"

    def copied() -> tuple[bool, str]:
        # ssh arguments contain spaces; rsync splits the string like a shell.
        words = " ".join(f"'{word}'" for word in command)
        completed = inside(ends, "rsync", "-e", words, str(ends.directory / "file"), f"root@tunnel.test:{copy}")
        return completed.returncode == 0 and copy.read_bytes() == ends.bytes, completed.stderr[-200:]

    is_used(ends, check, "rsync by ssh over both lines", copied)


def suspended(ends: Ends, client, check) -> None:
    """A client that is stopped, as when a laptop sleeps: when it continues, its clocks have jumped."""
    client.process.send_signal(signal.SIGSTOP)
    time.sleep(SUSPENDED_FOR)
    client.process.send_signal(signal.SIGCONT)
    completed = inside(ends, "curl", "-sS", "--max-time", str(TIMEOUT), f"http://localhost:{LOCAL}/page.html")
    # Either it reads that the server has given the session up, or it tries another one beside the silent session.
    is_told = any(word in client.tail() for word in ("; reconnecting", "the server does not answer over"))
    good = completed.stdout == PAGE and is_told
    check("tunnel", "a suspended client", good, f"{completed.stdout[:60]} {completed.stderr} {client.tail()[-200:]}")


def restarted(ends: Ends, client, check) -> None:
    """A server that is killed, and restarted with the same keys: its DTLS sessions and associations are gone."""
    for peer in [peer for peer in ends.peers if peer.name == "server"]:
        peer.process.kill()
        peer.process.wait()
    ends.start_server()
    began = time.monotonic()
    completed = inside(ends, "curl", "-sS", "--max-time", str(TIMEOUT), f"http://localhost:{LOCAL}/page.html")
    took = time.monotonic() - began
    is_prompt = completed.stdout == PAGE and "nothing was received" not in client.tail()
    check("tunnel", "a restarted server", is_prompt, f"{took:.1f} s {completed.stderr} {client.tail()[-200:]}")


def inside(ends: Ends, *command: str) -> subprocess.CompletedProcess:
    """Runs a command at the client."""
    return subprocess.run(ends.lines.inside(ends.lines.client, list(command)), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=2 * TIMEOUT, env=ends.environment(), check=False)


CASES = [case_tunnel_programs]
