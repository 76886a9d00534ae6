"""What telephone networks run over SCTP, unchanged, under `eyas sctp run`: SIP, SS7, Diameter, and Erlang."""

import pathlib

from ..certificates import Authority
from ..network import NoNamespaces
from ..process import Peer
from ..report import Skip
from ..sctp.network import CABLES, SctpNetwork, ours, theirs
from ..world import World
from .case import about
from .sctp_programs import at_once
from .sctp_sockets import CARRIERS, WITHIN, Server, client, needs, under

# Debian's place for the modules of Kamailio.
MODULES = pathlib.Path("/usr/lib/x86_64-linux-gnu/kamailio/modules")
PROXY = """
debug=2
log_stderror=yes
children=4
sctp_children=4
disable_tcp=yes
enable_sctp=yes
auto_aliases=no
listen=sctp:127.0.0.1:5270
mpath="{modules}/"
loadmodule "sctp.so"
loadmodule "sl.so"
request_route {{
  sl_send_reply("200","OK");
}}
"""
OPTIONS = """<?xml version="1.0" encoding="ISO-8859-1"?>
<scenario name="OPTIONS">
  <send><![CDATA[
OPTIONS sip:[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:a@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:b@[remote_ip]>
Call-ID: [call_id]
CSeq: 1 OPTIONS
Max-Forwards: 70
Content-Length: 0

]]></send>
  <recv response="200"></recv>
</scenario>
"""
ASKED = 500


@about("kamailio")
def case_socket_signalling_kamailio(world: World) -> None:
    """Four processes answer what comes to the one socket that their parent made."""
    needs("kamailio", "sipp")
    if not (MODULES / "sctp.so").exists():
        raise Skip("Kamailio has no SCTP (Debian: kamailio-sctp-modules)")
    scenario = world.file("xml")
    scenario.write_text(OPTIONS)
    proxy = world.file("cfg")
    proxy.write_text(PROXY.format(modules=MODULES))

    def one(carrier: str) -> None:
        state = world.file("run")
        state.mkdir()
        with Server(world, carrier, ["kamailio", "-f", str(proxy), "-DD", "-E", "-Y", str(state)], "child_init()"):
            calls = f"-t s1 -i 127.0.0.1 -p 5061 127.0.0.1:5270 -nostdin -m {ASKED} -r 50"
            status, said = client(world, carrier, ["sipp", "-sf", str(scenario), *calls.split()])
            counted = [line.split() for line in said.splitlines() if "Successful call" in line]
            good = status == 0 and bool(counted) and counted[-1][-1] == str(ASKED)
            detail = f"{ASKED} answers" if good else said[-300:]
            world.report.check("kamailio", f"OPTIONS of SIPp, {carrier}", good, detail)

    at_once(one)


SIGNALLING_SERVER = """
log stderr
 logging color 0
 logging level set-all info
 logging filter all 1
line vty
 no login
 bind 127.0.0.1
cs7 instance 0
 asp b 2906 2905 m3ua
  remote-ip 127.0.0.2
  remote-ip 127.0.0.1
  local-ip 127.0.0.1
  role sg
  sctp-role server
 as as-b m3ua
  asp b
  routing-key 2 0.23.2
 listen m3ua 2905
  local-ip 127.0.0.1
"""
SIGNALLING_CLIENT = """
log stderr
 logging color 0
 logging level set-all info
 logging filter all 1
line vty
 no login
 bind 127.0.0.3
cs7 instance 0
 asp a 2905 2906 m3ua
  remote-ip 127.0.0.1
  local-ip 127.0.0.1
  local-ip 127.0.0.2
  role asp
  sctp-role client
 as as-a m3ua
  asp a
  routing-key 2 0.23.2
"""


@about("osmo-stp")
def case_socket_signalling_osmo_stp(world: World) -> None:
    """M3UA becomes active over an association of two addresses, and its end is noticed."""
    needs("osmo-stp")
    files = []
    for text in (SIGNALLING_SERVER, SIGNALLING_CLIENT):
        files.append(world.file("cfg"))
        files[-1].write_text(text)
    # In turns: each has a port of its own to be controlled at.
    for carrier in CARRIERS:
        with Server(world, carrier, ["osmo-stp", "-c", str(files[0])], "Available via telnet") as server:
            with Server(world, carrier, ["osmo-stp", "-c", str(files[1])], "AS Active"):
                pass
            server.peer.wait_until(lambda: "connection closed" in server.all())
            good = "xUA SRV SHUTDOWN_EVENT" in server.all()
            world.report.check("osmo-stp", f"M3UA, {carrier}", good, "AS Active, then an end" if good else server.all()[-300:])


NODE = """
Identity = "{name}.example.org";
Realm = "example.org";
SecPort = 0;
No_IPv6;
SCTP_streams = 3;
TwTimer = 6;
ListenOn = "{address}";
TLS_Cred = "{chain}", "{key}";
TLS_CA = "{authority}";
ConnectPeer = "{peer}.example.org" {{ ConnectTo = "{remote}"; No_TLS; No_TCP; }};
"""


@about("freediam")
def case_socket_signalling_freediameter(world: World) -> None:
    """Two hosts, for it leaves loopback alone: both are open, and one says goodbye to the other."""
    needs("freeDiameterd")
    try:
        network = SctpNetwork()
    except NoNamespaces as missing:
        raise Skip(str(missing)) from missing
    try:
        place = world.file("diameter")
        place.mkdir()
        nodes = nodes_of(place, ours(CABLES[0]), theirs(CABLES[0]))
        for carrier in CARRIERS:
            peers = []
            for namespace, node in zip((network.theirs, network.ours), nodes, strict=True):
                command = network.inside(namespace, under(world, carrier, ["freeDiameterd", "-c", str(node)]))
                peers.append(Peer("freeDiameter", command, world.file("log")))
            try:
                for peer in peers:
                    peer.wait_until(lambda peer=peer: "-> 'STATE_OPEN'" in said(peer))
                peers[1].stop()
                peers[0].wait_until(lambda: "sent a DPR" in said(peers[0]))
                good = "(SCTP," in said(peers[0])
                world.report.check("freediam", f"two of them, {carrier}", good, "open, and a DPR" if good else peers[0].said())
            finally:
                for peer in peers:
                    peer.stop()
    finally:
        network.remove()


def said(peer: Peer) -> str:
    """All that it has said, in words that a tab does not part."""
    return " ".join(peer.log.read_text(errors="replace").split())


def nodes_of(place: pathlib.Path, here: str, there: str) -> list[pathlib.Path]:
    """What the two nodes are told: that of the other host, and that of ours."""
    authority = Authority(place)
    files = []
    for name, peer, address, remote in (("b", "a", there, here), ("a", "b", here, there)):
        identity = authority.issue(name, [f"{name}.example.org"])
        files.append(place / f"{name}.conf")
        files[-1].write_text(NODE.format(
            name=name, peer=peer, address=address, remote=remote,
            chain=identity.chain, key=identity.key, authority=authority.file,
        ))
    return files


# Says what comes, until an association has ended.
HEARING = """
{ok, S} = gen_sctp:open(5200, [{ip, {127,0,0,1}}, {active, false}, binary]),
ok = gen_sctp:listen(S, true),
io:format("listening~n"),
Hear = fun Hear() -> case gen_sctp:recv(S) of
  {ok, {_, _, [{sctp_sndrcvinfo, Stream, _, _, _, _, _, _, _, _}], Data}} ->
    io:format("~s on ~p~n", [Data, Stream]), Hear();
  {ok, {_, _, _, {sctp_assoc_change, shutdown_comp, _, _, _, _}}} -> io:format("shutdown_comp~n");
  {ok, {_, _, _, {sctp_assoc_change, State, _, _, _, _}}} -> io:format("~p~n", [State]), Hear();
  {ok, _} -> Hear()
end end,
Hear(), halt(0).
"""
# Sends on a socket for many associations, then on that of the one.
SPEAKING = """
{ok, S} = gen_sctp:open([{active, false}, binary]),
{ok, A} = gen_sctp:connect(S, {127,0,0,1}, 5200, []),
ok = gen_sctp:send(S, A, 3, <<"hello">>),
{ok, P} = gen_sctp:peeloff(S, A),
ok = gen_sctp:send(P, A, 1, <<"second">>),
ok = gen_sctp:eof(P, A),
{ok, {_, _, _, {sctp_assoc_change, shutdown_comp, _, _, _, _}}} = gen_sctp:recv(P),
halt(0).
"""


def erlang(words: str) -> list[str]:
    """A program of Erlang that leaves no dump behind."""
    return ["env", "ERL_CRASH_DUMP_BYTES=0", "erl", "-noshell", "-eval", words]


@about("erlang")
def case_socket_signalling_erlang(world: World) -> None:
    """gen_sctp with itself, and with socat at either end."""
    needs("erl", "socat")
    check = world.report.check

    def one(carrier: str) -> None:
        with Server(world, carrier, erlang(HEARING), "listening") as server:
            status, words = client(world, carrier, erlang(SPEAKING))
            good = server.ended() and status == 0
            wanted = ["listening", "comm_up", "hello on 3", "second on 1", "shutdown_comp"]
            good = good and server.all().splitlines() == wanted
            check("erlang", f"gen_sctp, {carrier}", good, "" if good else words + server.all())
        with Server(world, carrier, erlang(HEARING), "listening") as server:
            status, words = client(world, carrier, ["socat", "-u", "STDIN", "SCTP:127.0.0.1:5200"], "line\n")
            good = server.ended() and status == 0 and "line\n on 0" in server.all()
            check("erlang", f"socat to gen_sctp, {carrier}", good, "" if good else words + server.all())
        listening = ["socat", "-d", "-d", "-u", "SCTP-LISTEN:5200,bind=127.0.0.1", "STDOUT"]
        with Server(world, carrier, listening, "listening on") as server:
            status, words = client(world, carrier, erlang(SPEAKING))
            good = server.ended() and status == 0 and "hellosecond" in server.all()
            check("erlang", f"gen_sctp to socat, {carrier}", good, "" if good else words + server.all())

    at_once(one)


CASES = [
    case_socket_signalling_kamailio, case_socket_signalling_osmo_stp, case_socket_signalling_freediameter,
    case_socket_signalling_erlang,
]
