"""Encrypted resolvers that a name server designates (RFC 9462): CoreDNS over TLS, QUIC and HTTPS. What is asked in the
clear is read from the cable."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from .. import dns
from ..certificates import Identity
from ..command import Command
from ..network import CADDY, DNS, EYAS, ipv4, ipv6
from ..process import Peer
from ..sctp import captures
from ..world import World
from .case import about
from .ech import captured

# A name of the public DNS, unlike all others in these tests: those of a network are not encrypted.
NAME, RESOLVER = "page.example.net", "dns.example.net"
PORT = 5353
QUESTION = "_dns.resolver.arpa"
# The protocols in ALPN and in reports, with the scheme of CoreDNS and the parameters of the record.
PROTOCOLS = {
    "DoT": ("tls", 853, 'alpn="dot"'),
    "DoQ": ("quic", 853, 'alpn="doq"'),
    "DoH3": ("https3", 443, 'alpn="h3" dohpath="/dns-query{?dns}"'),
    "DoH": ("https", 443, 'alpn="h2" dohpath="/dns-query{?dns}"'),
}


@contextmanager
def name_server(world: World, identity: Identity, bindings: list[str]) -> Iterator[Command]:
    """Runs CoreDNS with these SVCB records of its resolvers, which have this certificate; yields the command that asks
    it in the clear unless told otherwise, and trusts the authority of the run."""
    directory = world.file("dns")
    directory.mkdir()
    head = ["$TTL 60", "@ IN SOA ns hostmaster 1 3600 600 86400 60", "@ IN NS ns"]
    (directory / "resolver").write_text("\n".join(["$ORIGIN resolver.arpa.", *head, *bindings, ""]))
    names = [*dns.addresses("ns", DNS), *dns.addresses("page", EYAS), *dns.addresses("dns", DNS)]
    (directory / "zone").write_text("\n".join(["$ORIGIN example.net.", *head, *names, ""]))
    zone = f"    bind {ipv4(DNS)}\n    file {directory / 'zone'} example.net\n    errors\n"
    tls = f"    tls {identity.chain} {identity.key}\n"
    blocks = [f".:{PORT} {{\n{zone}    file {directory / 'resolver'} resolver.arpa\n}}\n"]
    blocks += [f"{scheme}://.:{port} {{\n{tls}{zone}}}\n" for scheme, port, _ in PROTOCOLS.values()]
    (directory / "Corefile").write_text("".join(blocks))
    command = world.network.on_server([str(world.binary("coredns")), "-conf", str(directory / "Corefile")])
    peer = Peer("coredns", command, directory / "log")
    eyas = Command(world.eyas_binary, world.directory, ["--dns-server", f"{ipv4(DNS)}:{PORT}", "--memory", "none"])
    before = os.environ.get("SSL_CERT_FILE")
    os.environ["SSL_CERT_FILE"] = str(world.authority.file)
    try:
        peer.wait_until(lambda: f"https://.:{PROTOCOLS['DoH'][1]}" in peer.output())
        yield eyas
    finally:
        peer.stop()
        if before is None:
            del os.environ["SSL_CERT_FILE"]
        else:
            os.environ["SSL_CERT_FILE"] = before


def binding(protocol: str, priority: int = 1) -> str:
    """Returns the SVCB record of a resolver that speaks this protocol."""
    return f"_dns IN SVCB {priority} {RESOLVER}. {PROTOCOLS[protocol][2]} ipv4hint={ipv4(DNS)}"


def plan(eyas: Command, policy: str) -> tuple[set[str], str]:
    """Returns the addresses that a plan has for the name, and how it says that its queries were encrypted."""
    completed = eyas.run("plan", NAME, "--json", "--encrypted-dns", policy)
    if completed.status != 0:
        return set(), completed.json["error"]["message"]
    addresses = {entry["address"].rpartition(":")[0].strip("[]") for entry in completed.json["entries"]}
    return addresses, completed.json["names"]["encryption"][0]["text"]


def asked_in_the_clear(capture) -> set[str]:
    """Returns the names of a capture's questions, as Wireshark reads them."""
    return {name for (name,) in captures.fields(capture, "dns.qry.name", where="dns.qry.name or mdns")}


@about("coredns")
def case_designated_resolvers(world: World) -> None:
    """A resolver with the address of its designator in its certificate is asked, by each protocol, and nothing but the
    question for it goes in the clear; also where that is required."""
    identity = world.authority.issue("resolver", [RESOLVER, ipv4(DNS)])
    found = {ipv4(EYAS), ipv6(EYAS)}
    for protocol in PROTOCOLS:
        with name_server(world, identity, [binding(protocol)]) as eyas:
            for policy in ("auto", "require"):
                with captured(world) as capture:
                    addresses, text = plan(eyas, policy)
                seen = asked_in_the_clear(capture)
                encrypted = text.startswith(f"encrypted, by {protocol} to {RESOLVER} at ") and "unverified" not in text
                good = addresses == found and encrypted and seen == {QUESTION}
                what = f"{protocol}, --encrypted-dns {policy}"
                world.report.check("coredns", what, good, f"{sorted(addresses)}, {text}, {sorted(seen)}")


def plan_remembering(world: World, memory: str, policy: str) -> tuple[str, list[str]]:
    """Makes a plan with this memory file, as a process of its own. Returns how its queries were encrypted, and which
    questions the plain server saw."""
    server = f"{ipv4(DNS)}:{PORT}"
    eyas = Command(world.eyas_binary, world.directory, ["--dns-server", server, "--memory", memory])
    with captured(world) as capture:
        addresses, text = plan(eyas, policy)
    asked = captures.fields(capture, "dns.qry.name", where="dns.flags.response == 0")
    return text if addresses else f"failed: {text}", [name for (name,) in asked]


@about("coredns")
def case_remembered_resolver(world: World) -> None:
    """The next process on the network goes straight to the resolver that worked, without a question to the plain server;
    also where encryption is required. Its certificate is verified again: where another one has its place, the plain
    server is asked what it designates now, and nothing else. What is forgotten is asked for."""
    identity = world.authority.issue("resolver", [RESOLVER, ipv4(DNS)])
    # It knows the hardware address of the gateway then, without which a network could be two.
    with socket.socket() as gateway:
        gateway.settimeout(5)
        gateway.connect_ex((ipv4(CADDY), 9))
    for protocol in PROTOCOLS:
        memory = str(world.file("sqlite"))
        with name_server(world, identity, [binding(protocol)]):
            for policy, asked, remembered in (("auto", [QUESTION], False), ("require", [], True), ("auto", [], True)):
                text, seen = plan_remembering(world, memory, policy)
                encrypted = text.startswith(f"encrypted, by {protocol} to {RESOLVER} at ")
                good = encrypted and seen == asked and text.endswith(", as remembered") == remembered
                what = f"{protocol}, --encrypted-dns {policy}, {'remembered' if remembered else 'first'}"
                world.report.check("coredns", what, good, f"{text}, {len(seen)} questions in the clear {seen}")
            rows = world.eyas.run("memory", "list", "--json", "--memory", memory, bare=True).json["rows"]
            rows = [row for row in rows if row["verdict"] == "designated"]
            good = [(row["host"], row["designates"]) for row in rows] == [(ipv4(DNS), RESOLVER)]
            world.report.check("coredns", f"{protocol}, memory list", good, str(rows))
    # The last one is that of DNS over HTTPS.
    stranger = world.authority.issue("stranger", [RESOLVER])
    with name_server(world, stranger, [binding("DoH")]):
        text, seen = plan_remembering(world, memory, "require")
        good = text.startswith("failed: ") and set(seen) == {QUESTION}
        world.report.check("coredns", "another certificate, require", good, f"{text}, {seen}")
    with name_server(world, identity, [binding("DoH")]):
        world.eyas.run("memory", "forget", ipv4(DNS), "--memory", memory, bare=True)
        text, seen = plan_remembering(world, memory, "require")
        good = text.startswith("encrypted, by DoH to ") and seen == [QUESTION]
        world.report.check("coredns", "forgotten, require", good, f"{text}, {seen}")


@about("coredns")
def case_unverified_resolver(world: World) -> None:
    """A resolver without the designator's address in its certificate is not asked: the name goes in the clear, or
    nowhere if encryption is required. Without a policy nobody asks for a resolver."""
    identity = world.authority.issue("stranger", [RESOLVER])
    with name_server(world, identity, [binding(protocol) for protocol in PROTOCOLS]) as eyas:
        for policy, names in (("auto", {QUESTION, NAME}), ("require", {QUESTION}), ("system", {NAME})):
            with captured(world) as capture:
                completed = eyas.run("plan", NAME, "--json", "--encrypted-dns", policy)
            seen = asked_in_the_clear(capture)
            good = seen == names and (completed.status == 6) == (policy == "require")
            if policy == "require":
                good = good and "has not proved to belong to it" in completed.stdout
            world.report.check("coredns", f"unverified, {policy}", good, f"{sorted(seen)}, {completed}")
        diagnosis = eyas.run("doctor", "--json")
        topics = {topic["topic"]: topic for topic in diagnosis.json["topics"]}
        good = topics["encrypted-dns"]["verdict"] == "broken"
        world.report.check("coredns", "unverified, doctor", good, topics["encrypted-dns"]["finding"])


@about("coredns")
def case_first_protocol_that_passes(world: World) -> None:
    """Where UDP to the resolver is dropped, DNS over TLS is used, though DNS over QUIC is preferred."""
    identity = world.authority.issue("resolver", [RESOLVER, ipv4(DNS)])
    world.network.filter(
        "table inet doq { chain incoming { type filter hook prerouting priority -300; udp dport 853 drop; }; }\n"
    )
    try:
        with name_server(world, identity, [binding("DoQ", 1), binding("DoT", 2)]) as eyas:
            addresses, text = plan(eyas, "require")
    finally:
        world.network.filter("delete table inet doq")
    good = bool(addresses) and text.startswith("encrypted, by DoT")
    world.report.check("coredns", "UDP port 853 dropped", good, f"{sorted(addresses)}, {text}")


@about("coredns")
def case_named_resolvers(world: World) -> None:
    """The user names a server with its protocol."""
    identity = world.authority.issue("resolver", [RESOLVER, ipv4(DNS)])
    with name_server(world, identity, []) as eyas:
        for flags in (
            ("--dns-server", f"tls://{ipv4(DNS)}#{RESOLVER}"),
            ("--dns-server", f"quic://{ipv4(DNS)}#{RESOLVER}"),
            ("--doh-url", f"https://{ipv4(DNS)}/dns-query"),
        ):
            with captured(world) as capture:
                completed = eyas.run("plan", NAME, "--json", "--memory", "none", *flags, bare=True)
            seen = asked_in_the_clear(capture)
            good = completed.status == 0 and bool(completed.json["entries"]) and not seen
            world.report.check("coredns", " ".join(flags), good, f"{sorted(seen)}, status {completed.status}")


CASES = [
    case_designated_resolvers, case_remembered_resolver, case_unverified_resolver, case_first_protocol_that_passes,
    case_named_resolvers,
]
