"""Encrypted ClientHello (RFC 9849) with Go's servers over TCP and QUIC, and with Caddy, also behind CoreDNS: what
the server sees, what goes over the cable, and what follows when a server does not accept it."""

import base64
import json
import pathlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .. import dns, servers
from ..command import Command
from ..network import DNS, EYAS, ipv4
from ..process import Peer
from ..report import Skip
from ..sctp import captures
from ..world import World
from .case import about

# The name that must not be seen, and the one that everybody may see.
SECRET, PUBLIC = "secret.eyas.test", "public.eyas.test"
FLAGS = ("--http2", "--http3-only")
PORT, DNS_PORT = 8601, 5353
# How long a packet may take until it is in a capture, in seconds.
CAPTURED = 1


class EchServer:
    """A server with ECH at a port, and what its clients are told."""

    def __init__(self, peer: Peer, port: int) -> None:
        self.peer = peer
        self.port = port

    @property
    def configs(self) -> str:
        """Returns its ECHConfigList in base64, once it has printed that."""
        return self.peer.output().partition("\n")[0]


@contextmanager
def ech_server(world: World, state: str, public_name: str = PUBLIC, port: int = PORT) -> Iterator[EchServer]:
    """Runs Go's server: `current`, `stale` or `off` says what has become of the key that its clients have."""
    address, identity = f"{ipv4(EYAS)}:{port}", world.identity
    command = [str(world.binary("ech")), address, str(identity.chain), str(identity.key), public_name, state]
    peer = Peer("ech", world.network.on_server(command), world.file("ech.log"))
    server = EchServer(peer, port)
    try:
        peer.wait_until(lambda: len(server.configs) > 60)
        yield server
    finally:
        peer.stop()


@contextmanager
def captured(world: World) -> Iterator[pathlib.Path]:
    """Records what goes over the cable."""
    for program in ("tcpdump", "tshark"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed (Debian: {program})")
    file = world.file("pcap")
    command = ["tcpdump", "--immediate-mode", "-U", "-i", "wire", "-w", str(file), "tcp or udp"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        # It says so once it listens.
        for line in process.stderr:
            if "listening on" in line:
                break
        try:
            yield file
            time.sleep(CAPTURED)
        finally:
            process.terminate()


def names_in_the_clear(capture: pathlib.Path) -> set[str]:
    """Returns the names in the ClientHellos of a capture, over TCP and QUIC, as Wireshark reads them."""
    name = "tls.handshake.extensions_server_name"
    return {value for (value,) in captures.fields(capture, name, where=name)}


def fetch(world: World, server: EchServer, flag: str, *options: str) -> tuple[object, str]:
    """Fetches the page of a server; returns how that ended, and the page."""
    page = world.file("page")
    url = f"https://{SECRET}:{server.port}/"
    completed = world.eyas.run(
        "get", url, flag, "--json", "--memory", "none", "--output", str(page),
        "--resolve", f"{SECRET}:{server.port}:{ipv4(EYAS)}", *world.trust, *options,
    )
    return completed, page.read_text().strip() if page.exists() else ""


def outcome(completed) -> str | None:
    """Returns what became of ECH."""
    return (completed.json.get("connection") or {}).get("ech")


@about("go")
def case_ech_accepted(world: World) -> None:
    """The server accepts, and nobody on the cable sees its name."""
    with ech_server(world, "current") as server:
        for flag in FLAGS:
            with captured(world) as capture:
                completed, page = fetch(world, server, flag, "--ech", f"ecl:{server.configs}")
            seen = names_in_the_clear(capture)
            good = page == f"{SECRET} accepted" and outcome(completed) == "accepted" and seen == {PUBLIC}
            world.report.check("go", f"ECH accepted, {flag}", good, f"{page!r}, {seen}, {completed.outline()}")
        # Without a configuration the name is in the clear, beside GREASE over QUIC.
        for flag, expected in zip(FLAGS, (None, "grease")):
            with captured(world) as capture:
                completed, page = fetch(world, server, flag)
            seen = names_in_the_clear(capture)
            good = page == f"{SECRET} clear" and outcome(completed) == expected and seen == {SECRET}
            world.report.check("go", f"ECH without a configuration, {flag}", good, f"{page!r}, {seen}, {outcome(completed)}")
            completed, page = fetch(world, server, flag, "--ech", "require")
            good = completed.status != 0 and page == "" and "has no configuration" in completed.stdout
            world.report.check("go", f"ECH required without a configuration, {flag}", good, completed.outline())


@about("go")
def case_ech_replaced(world: World) -> None:
    """The server has a new key: it says so, and the second connection has it."""
    with ech_server(world, "stale") as server:
        for flag in FLAGS:
            with captured(world) as capture:
                completed, page = fetch(world, server, flag, "--ech", f"ecl:{server.configs}")
            seen = names_in_the_clear(capture)
            reasons = " ".join((completed.json.get("connection") or {}).get("reasons") or [])
            good = page == f"{SECRET} accepted" and "replaced" in reasons and seen == {PUBLIC}
            world.report.check("go", f"ECH with a key that was replaced, {flag}", good, f"{page!r}, {seen}, {reasons}")


@about("go")
def case_ech_turned_off(world: World) -> None:
    """The server has turned ECH off, as it proves: the name is sent in the clear, unless ECH is required."""
    with ech_server(world, "off") as server:
        for flag in FLAGS:
            with captured(world) as capture:
                completed, page = fetch(world, server, flag, "--ech", f"ecl:{server.configs}")
            seen = names_in_the_clear(capture)
            good = page == f"{SECRET} clear" and outcome(completed) == "turned-off" and seen == {PUBLIC, SECRET}
            world.report.check("go", f"ECH turned off, {flag}", good, f"{page!r}, {seen}, {completed.outline()}")


@about("go")
def case_ech_broken(world: World) -> None:
    """Something answers that is neither the server nor its public name: nothing more is sent."""
    with ech_server(world, "stale", public_name="other.example") as server:
        for flag in FLAGS:
            with captured(world) as capture:
                completed, page = fetch(world, server, flag, "--ech", f"ecl:{server.configs}")
            seen = names_in_the_clear(capture)
            good = completed.status != 0 and page == "" and "ech-broken" in completed.stdout and seen == {"other.example"}
            world.report.check("go", f"ECH broken, {flag}", good, f"{page!r}, {seen}, {completed.outline()}")


@contextmanager
def name_server(world: World, lines: list[str]) -> Iterator[Command]:
    """Runs CoreDNS with these lines in its zone; yields the command that asks it."""
    directory = world.file("dns")
    directory.mkdir()
    zone = [f"$ORIGIN {dns.ORIGIN}.", "$TTL 60", "@ IN SOA ns hostmaster 1 3600 600 86400 60", "@ IN NS ns"]
    (directory / "zone").write_text("\n".join([*zone, *dns.addresses("ns", DNS), *lines, ""]))
    corefile = directory / "Corefile"
    corefile.write_text(
        f".:{DNS_PORT} {{\n    bind {ipv4(DNS)}\n    file {directory / 'zone'} {dns.ORIGIN}\n    errors\n}}\n"
    )
    command = world.network.on_server([str(world.binary("coredns")), "-conf", str(corefile)])
    peer = Peer("coredns", command, directory / "log")
    eyas = Command(world.eyas_binary, world.directory, ["--dns-server", f"{ipv4(DNS)}:{DNS_PORT}"])
    try:
        peer.wait_until(lambda: f":{DNS_PORT}" in peer.output())
        yield eyas
    finally:
        peer.stop()


def record(server_port: int, priority: int, configs: str | None) -> str:
    """Returns an HTTPS record of the secret name, which is at a port of its own."""
    ech = f' ech="{configs}"' if configs else ""
    return f'_{server_port}._https.secret IN HTTPS {priority} secret.{dns.ORIGIN}. alpn="h3,h2" port={server_port}{ech}'


@about("go")
def case_ech_of_records(world: World) -> None:
    """The configurations come from the records of DNS, for a race of TCP and QUIC; where each record has them, nothing
    is tried without, though nothing can be reached with them."""
    with ech_server(world, "current") as server:
        lines = [*dns.addresses("secret", EYAS), record(PORT, 1, server.configs)]
        with name_server(world, lines) as eyas, captured(world) as capture:
            page = world.file("page")
            completed = eyas.run(
                "get", f"https://{SECRET}:{PORT}/", "--json", "--memory", "none", "--output", str(page), *world.trust
            )
        seen = names_in_the_clear(capture)
        text = page.read_text().strip() if page.exists() else ""
        good = text == f"{SECRET} accepted" and outcome(completed) == "accepted" and seen == {PUBLIC}
        world.report.check("go", "ECH of a record", good, f"{text!r}, {seen}, {completed.outline()}")
    with ech_server(world, "stale", public_name="other.example") as server:
        lines = [*dns.addresses("secret", EYAS), record(PORT, 1, server.configs)]
        with name_server(world, lines) as eyas, captured(world) as capture:
            completed = eyas.run("get", f"https://{SECRET}:{PORT}/", "--memory", "none", *world.trust)
        seen = names_in_the_clear(capture)
        good = completed.status != 0 and "ech-broken" in completed.stderr and seen == {"other.example"}
        world.report.check("go", "ECH of a record, broken over TCP and QUIC", good, f"{seen}, {completed.outline()}")


def caddy_configuration(world: World) -> dict:
    """Caddy with ECH, and a page that says whether it was accepted."""
    configuration = servers.caddy_configuration(world.identity)
    apps = configuration["apps"]
    server = apps["http"]["servers"]["main"]
    server["listen"] = [f"{ipv4(EYAS)}:{PORT}"]
    server["routes"] = [{"handle": [{"handler": "static_response", "body": "{http.request.tls.ech}"}]}]
    apps["tls"]["encrypted_client_hello"] = {"configs": [{"public_name": PUBLIC}]}
    return configuration


class Caddy(EchServer):
    """Caddy, which keeps its configurations in files."""

    def __init__(self, peer: Peer, directory: pathlib.Path) -> None:
        super().__init__(peer, PORT)
        self.directory = directory

    def published(self) -> bytes:
        """Returns its ECHConfig, once it has made that."""
        files = list(self.directory.glob("**/ech/configs/*/config.bin"))
        return files[0].read_bytes() if files else b""

    @property
    def configs(self) -> str:
        config = self.published()
        return base64.b64encode(len(config).to_bytes(2, "big") + config).decode()


@contextmanager
def caddy(world: World) -> Iterator[EchServer]:
    """Runs Caddy with ECH, until it has made its configuration."""
    directory = world.file("caddy")
    directory.mkdir()
    (directory / "caddy.json").write_text(json.dumps(caddy_configuration(world)))
    command = [str(world.binary("caddy")), "run", "--config", str(directory / "caddy.json")]
    peer = servers.start("caddy", world.network.on_server(command), directory)
    server = Caddy(peer, directory)
    try:
        peer.wait_until(lambda: server.published() and servers.answers_tls(ipv4(EYAS), PORT))
        yield server
    finally:
        peer.stop()


@about("caddy")
def case_ech_of_caddy(world: World) -> None:
    """Caddy accepts with the configuration that it has made, as it would publish it."""
    with caddy(world) as server:
        for flag in FLAGS:
            with captured(world) as capture:
                completed, page = fetch(world, server, flag, "--ech", f"ecl:{server.configs}")
            seen = names_in_the_clear(capture)
            good = page == "true" and outcome(completed) == "accepted" and seen == {PUBLIC}
            world.report.check("caddy", f"ECH accepted, {flag}", good, f"{page!r}, {seen}, {completed.outline()}")


@about("caddy")
def case_ech_of_caddy_behind_coredns(world: World) -> None:
    """CoreDNS has the record that Caddy would publish, whose configuration is used over TCP and QUIC."""
    with caddy(world) as server:
        lines = [*dns.addresses("secret", EYAS), record(PORT, 1, server.configs)]
        with name_server(world, lines) as eyas:
            for flag in FLAGS:
                page = world.file("page")
                with captured(world) as capture:
                    completed = eyas.run(
                        "get", f"https://{SECRET}:{PORT}/", flag, "--ech", "require", "--json", "--memory", "none",
                        "--output", str(page), *world.trust,
                    )
                seen = names_in_the_clear(capture)
                text = page.read_text().strip() if page.exists() else ""
                good = text == "true" and outcome(completed) == "accepted" and seen == {PUBLIC}
                details = f"{text!r}, {seen}, {completed.outline()}"
                world.report.check("caddy", f"ECH of its record in CoreDNS, {flag}", good, details)


CASES = [
    case_ech_accepted, case_ech_replaced, case_ech_turned_off, case_ech_broken, case_ech_of_records,
    case_ech_of_caddy, case_ech_of_caddy_behind_coredns,
]
