"""Whole HTTP/3 both ways, with quic-go and aioquic: fields, interim responses, trailers, large contents, GOAWAY, many
requests at once; again over a path that loses and reorders packets, where Caddy serves, too; and with a byte in each
packet."""

import json
import shlex
import subprocess
import sys

from .. import servers
from ..process import Peer
from ..world import World
from .case import about

PORT = 4433
HERE, THERE = "127.0.0.1", "198.18.1.2"
# Packets that are lost and overtaken, both ways.
LOSSY = ["--loss", "3%", "--delay", "10ms", "--reorder", "5% by 15ms", "--seed", "3", "--quiet"]
LARGE, LARGE_LOSSY = 3_000_000, 300_000
# How long the commands of a client may take together, in seconds.
LIMIT = 120


def content(length: int) -> bytes:
    """What the peers serve as `/bytes/N`."""
    return bytes((7 * index + index // 256) % 256 for index in range(length))


class Pair:
    """A server and a client, on loopback or with a bad path between them."""

    def __init__(self, world: World, lossy: bool = False) -> None:
        self.world = world
        self.lossy = lossy
        self.host = THERE if lossy else HERE
        self.base = f"https://{self.host}:{PORT}"
        self.identity = world.authority.issue("http3", [HERE, THERE])
        self.authority = str(world.authority.file)
        self.large = LARGE_LOSSY if lossy else LARGE

    def peer(self, name: str, role: str, *arguments: str) -> list[str]:
        """Returns the command of a peer: its role, and what follows."""
        if name == "quic-go":
            program = [str(self.world.binary("quic-go"))]
        else:
            program = [sys.executable, "-m", "eyas_interop.aioquic_peer"]
        return [*program, role, *arguments]

    def peer_server(self, name: str, port: int = PORT, *options: str) -> list[str]:
        address = f"{self.host}:{port}"
        return self.peer(name, "server", address, str(self.identity.chain), str(self.identity.key), *options)

    def peer_client(self, name: str, *paths: str) -> list[str]:
        return self.peer(name, "client", self.base, self.authority, *paths)

    def eyas_server(self, *options: str) -> list[str]:
        certificate = ["--cert", str(self.identity.chain), "--key", str(self.identity.key)]
        listening = ["--listen", f"{self.host}:{PORT}", "--no-sctp", "--json"]
        return [str(self.world.eyas_binary), "serve", *listening, *certificate, *(options or ["--no-files"])]

    def eyas_client(self, *paths: str, options: list[str] = []) -> list[str]:
        urls = [f"{self.base}{path}" for path in paths]
        common = ["--http3-only", "--memory", "none", "-s", "-S", "--cacert", self.authority]
        return [str(self.world.eyas_binary), "get", *common, *options, *urls]

    def run(self, server: list[str], *clients: list[str], ready: str = "ready") -> str:
        """Runs the clients in turn while the server runs; returns what they print."""
        log = self.world.file("log")
        log.touch()
        if self.lossy:
            waiting = f"until grep -q {shlex.quote(ready)} {log}; do sleep 0.1; done; "
            command = waiting + "; ".join(map(shlex.join, clients))
            serving = f"exec {shlex.join(server)} > {log} 2>&1"
            netem = [str(self.world.eyas_binary), "netem", "run", *LOSSY, "--server", serving]
            return output([*netem, "--", "sh", "-c", command])
        running = Peer(server[0], server, log)
        try:
            running.wait_until(lambda: ready in running.output())
            return "".join(map(output, clients))
        finally:
            running.stop()


def output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False)
    return done.stdout + done.stderr


def peers_servers(world: World, peer: str, lossy: bool) -> None:
    """`eyas get` from the peer's server."""
    pair, check = Pair(world, lossy), world.report.check
    where = " over a lossy path" if lossy else ""
    body, received, echoed = (world.file("body") for _ in range(3))
    body.write_bytes(content(pair.large))
    post = ["--data-binary", f"@{body}"]
    printed = pair.run(
        pair.peer_server(peer),
        pair.eyas_client("/page", "/trailers", *(["/early"] if peer == "quic-go" else [])),
        pair.eyas_client(f"/bytes/{pair.large}", options=["-o", str(received)]),
        pair.eyas_client("/echo", options=[*post, "-o", str(echoed)]),
        # The second request needs another connection.
        pair.eyas_client("/away", "/page"),
    )
    lines = printed.splitlines()
    names = [f"{peer} HTTP/3", "before a trailer", "after a GOAWAY", f"{peer} HTTP/3"]
    names[2:2] = ["after a hint"] if peer == "quic-go" else []
    good = len(lines) == len(names) and all(line.startswith(name) for line, name in zip(lines, names))
    check(peer, f"eyas get: pages, interim responses, trailers, GOAWAY{where}", good, printed)
    for name, file in (("download", received), ("upload", echoed)):
        whole = file.exists() and file.read_bytes() == content(pair.large)
        check(peer, f"eyas get: {name} of {pair.large} bytes{where}", whole, printed)


def peers_clients(world: World, peer: str, lossy: bool) -> None:
    """The peer's client and `eyas serve`."""
    pair = Pair(world, lossy)
    where = " over a lossy path" if lossy else ""
    many = 20 if lossy else 200
    paths = [f"/bytes/{pair.large}", f"{many}*/bytes/1000", "/nothing-here"]
    printed = pair.run(pair.eyas_server(), pair.peer_client(peer, *paths), ready='"address"')
    lines = printed.splitlines()
    good = lines[:1] == [f"/bytes/{pair.large} 200 {pair.large}"] and lines[1:-1] == ["/bytes/1000 200 1000"] * many
    good = good and lines[-1].startswith("/nothing-here 404")
    world.report.check(peer, f"eyas serve: a download, {many} requests at once, an error{where}", good, summary(lines))


def through_gateway(world: World, peer: str, lossy: bool) -> None:
    """The peer's client, `eyas serve --upstream`, and the server of quic-go, which has all kinds of messages."""
    pair, where = Pair(world, lossy), " over a lossy path" if lossy else ""
    behind = Pair(world)
    upstream = Peer("quic-go", behind.peer_server("quic-go", PORT + 1), world.file("log"))
    try:
        upstream.wait_until(lambda: "ready" in upstream.output())
        gateway = pair.eyas_server(
            "--upstream", f"https://{HERE}:{PORT + 1}", "--upstream-cacert", pair.authority)
        early = ["/early"] if peer == "quic-go" else []
        paths = ["/page", "/trailers", "/echo/1000000", *early]
        printed = pair.run(gateway, pair.peer_client(peer, *paths), ready='"address"')
    finally:
        upstream.stop()
    expected = ["/trailers 200 17 trailer=received", "/echo/1000000 200 1000000 echoed trailer=sent"]
    expected += ["/early 200 13 interim=103</style.css>"] if early else []
    lines = printed.splitlines()
    good = lines[1:] == expected and lines[0].startswith("/page 200")
    world.report.check(peer, f"eyas serve --upstream: interim responses, trailers both ways{where}", good, printed)


def summary(lines: list[str]) -> str:
    """Returns each line once, with how often it came."""
    return "; ".join(f"{lines.count(line)} × {line}" for line in dict.fromkeys(lines))


def both_ways(world: World, peer: str) -> None:
    for lossy in (False, True):
        peers_servers(world, peer, lossy)
        peers_clients(world, peer, lossy)
    through_gateway(world, peer, lossy=False)


@about("quic-go")
def case_http3_quic_go(world: World) -> None:
    """Everything, with quic-go."""
    both_ways(world, "quic-go")


@about("aioquic")
def case_http3_aioquic(world: World) -> None:
    """The same with aioquic, whose QPACK has a dynamic table."""
    both_ways(world, "aioquic")


@about("aioquic")
def case_http3_trickle(world: World) -> None:
    """A byte in each packet."""
    pair, check = Pair(world), world.report.check
    printed = pair.run(pair.peer_server("aioquic", PORT, "--trickle"), pair.eyas_client("/page", "/trailers", "/bytes/3000"))
    good = printed.startswith("aioquic HTTP/3 GET") and "before a trailer\n" in printed
    check("aioquic", "eyas get, a byte in each packet", good, printed[:60])
    paths = ["/bytes/1000", "5*/bytes/1000", "--trickle"]
    printed = pair.run(pair.eyas_server(), pair.peer_client("aioquic", *paths), ready='"address"')
    good = printed.splitlines() == ["/bytes/1000 200 1000"] * 6
    check("aioquic", "eyas serve, a byte in each packet", good, summary(printed.splitlines()))


@about("caddy")
def case_http3_caddy(world: World) -> None:
    """Pages, a download and an upload from Caddy over a lossy path."""
    pair, directory = Pair(world, lossy=True), world.file("site")
    directory.mkdir()
    (directory / "large").write_bytes(content(pair.large))
    configuration = servers.caddy_configuration(pair.identity)
    server = configuration["apps"]["http"]["servers"]["main"]
    server["listen"] = [f"{pair.host}:{PORT}"]
    files = {"match": [{"path": ["/large"]}], "handle": [{"handler": "file_server", "root": str(directory)}]}
    server["routes"].insert(0, files)
    file, received = world.file("json"), world.file("body")
    file.write_text(json.dumps(configuration))
    printed = pair.run(
        [str(world.binary("caddy")), "run", "--config", str(file)],
        pair.eyas_client("/page", "/other"),
        pair.eyas_client("/large", options=["-o", str(received)]),
        pair.eyas_client("/upload", options=["--data-binary", f"@{directory / 'large'}"]),
        ready="serving initial configuration",
    )
    good = printed == "caddy HTTP/3.0 GET\n" * 2 + "caddy HTTP/3.0 POST\n"
    whole = received.exists() and received.read_bytes() == content(pair.large)
    world.report.check("caddy", "eyas get: pages, a download, an upload over a lossy path", good and whole, printed)


CASES = [case_http3_caddy, case_http3_quic_go, case_http3_aioquic, case_http3_trickle]
