"""Programs for the kernel's SCTP that meet, on one host or on two: who listens, who connects, and what both then say.

Commands and files hold names in braces: addresses of the two hosts, files of the pair, what the listener has said so far
(`{log}`), and what every pair may use, such as `{until} WORD FILE`, which waits for the word.
"""

import dataclasses
import importlib.util
import os
import pathlib
import shutil

from ..dns import ORIGIN

# Written in Go, with its own system calls.
GO = pathlib.Path(os.environ.get("EYAS_PEERS", ""), "sctp", "own_calls", "go")
# Debian's place for the modules of Kamailio.
MODULES = pathlib.Path("/usr/lib/x86_64-linux-gnu/kamailio/modules")
PROGRAMS = (
    "socat", "ncat", "sctp_test", "sctp_darn", "sctp_status", "iperf3", "sipp", "netperfmeter", "gensiot", "mtr", "ITGRecv",
    "kamailio", "osmo-stp", "freeDiameterd", "erl", "java", "javac", "script", "stdbuf",
)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Who listens, who connects, and what they then say."""

    name: str
    peer: str
    listens: str
    # What the listener says once it listens.
    ready: str
    connects: str
    # What the listener says in the end, and what the one that connects.
    heard: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    # What is the same on both sides, as often as a pattern finds it: of the first message lksctp's programs do not show it.
    same: str = ""
    # How the one that connects ends.
    status: int = 0
    # lksctp's programs keep what they print to themselves for long, unless on a terminal.
    terminal: bool = False
    # Has a port of TCP, which both carriers would take.
    alone: bool = False
    # What Linux says in the end as the listener, where that is less.
    heard_by_linux: tuple[str, ...] | None = None
    # Needs two hosts.
    apart: bool = False
    # Whether it speaks over loopback addresses.
    loopback: bool = True
    # Names and texts.
    files: tuple[tuple[str, str], ...] = ()
    # What is missing beside the programs.
    without: str = ""

    def missing(self) -> str:
        """Why it cannot run; empty if it can."""
        words = f"{self.listens} {self.connects}".replace("(", " ").split()
        gone = [word for word in words if word in PROGRAMS and shutil.which(word) is None]
        return f"{gone[0]} is not installed" if gone else self.without


def fill(text: str, values: dict[str, str]) -> str:
    """The text with what stands for its names in braces; other braces stay."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def asking(program: str) -> str:
    """`ping` to a program, whose input ends once that has come back: SCTP has no half-close."""
    return f"o=$(mktemp); (echo ping; {{until}} ping $o) | {program} >$o; s=$?; cat $o; rm $o; exit $s"


def until_says(word: str, program: str, signal: str = "TERM") -> str:
    """A program that is ended once it has said this."""
    wait = f"{{until}} '{word}' $o 50; s=$?"
    return f"o=$(mktemp); {program} >$o 2>&1 & p=$!; {wait}; kill -{signal} $p; wait $p; cat $o; rm $o; exit $s"


# Who ends at once may be gone before it is accepted, and some listeners then ask in vain who it was.
HELLO = "(echo hello; {until} hello {log})"
# An input that does not end: where it ended, so would the association.
OPEN = "tail -f /dev/null"
SOCAT = "socat -d -d -u SCTP-LISTEN:5000 STDOUT"
IPERF = "iperf3 -s -1 -p 5201 --forceflush"
EVENTS = ("COMMUNICATION_UP", "SHUTDOWN_COMPLETE")
# The stream and the payload protocol identifier of each message.
LABELS = r"SNDRCV\(stream=(\d+)[^)]*?ppid=(\d+)"

# With one socket for each association, Linux ends what is read once the peer's SHUTDOWN is there, and tells of the end later.
MESSAGES = Pair(
    "sctp_test -T", "lksctp", "sctp_test -H {server} -P 5003 -l -T", "Receiving packets",
    "sctp_test -H {client} -P 5004 -h {server} -p 5003 -s -x 2 -c 0 -T", terminal=True, same=LABELS,
    heard=("20 x Data 1 bytes", *EVENTS, "No association is present now"),
    heard_by_linux=("20 x Data 1 bytes", "COMMUNICATION_UP", "No association is present now"),
)
BULK = Pair(
    "iperf3 -R -P 2", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 -t 2 -R -P 2",
    said=("iperf Done.",), alone=True,
)
CALLS = Pair(
    "SIPp", "sipp", "sipp -sn uas -t s1 -i {server} -p 5060 -nostdin -m 3", "Scenario Screen",
    "sipp -sn uac -t s1 -i {client} -p 5061 {server}:5060 -nostdin -m 3 -r 10", terminal=True,
)
# What tests and measures SCTP, and moves lines.
TOOLS = [
    Pair("socat", "socat", SOCAT, "listening on", f"{HELLO} | socat -u STDIN SCTP:{{server}}:5000", heard=("hello",)),
    Pair(
        "socat, fork, nofork", "socat", "socat -d -d SCTP-LISTEN:5001,fork EXEC:/bin/cat,nofork", "listening on",
        asking("socat -t 1 - SCTP:{server}:5001"), said=("ping",),
    ),
    Pair(
        "socat, killed", "socat", SOCAT.replace("5000", "5013"), "listening on",
        until_says("starting data transfer", "socat -d -d -u PIPE SCTP:{server}:5013", "KILL"), heard=("is at EOF",),
    ),
    Pair(
        "ncat", "ncat", f"{OPEN} | ncat --sctp -v -l {{server}} 5002", "Listening on",
        f"{HELLO} | ncat --sctp --send-only {{server}} 5002", heard=("hello",),
    ),
    Pair(
        "ncat -6", "ncat", f"{OPEN} | ncat --sctp -6 -v -l {{server6}} 5014", "Listening on",
        f"{HELLO} | ncat --sctp -6 --send-only {{server6}} 5014", heard=("hello",),
    ),
    Pair(
        "ncat -k -e", "ncat", "ncat --sctp -v -k -l {server} 5015 -e /bin/cat", "Listening on",
        " && ".join([f"({asking('ncat --sctp {server} 5015')})"] * 2), said=("2 x ping",),
    ),
    # Directly over IP, two that run under `eyas` on one host would both see what is for nobody, and neither answers.
    Pair(
        "ncat, refused", "ncat", SOCAT, "listening on", "ncat --sctp {server} 5999", said=("Connection refused",), status=1,
        apart=True,
    ),
    MESSAGES,
    Pair(
        "sctp_test", "lksctp", "sctp_test -H {server} -P 5005 -l", "Receiving packets",
        "sctp_test -H {client} -P 5006 -h {server} -p 5005 -s -x 2 -c 0", terminal=True, same=LABELS,
        heard=("20 x Data 1 bytes", *EVENTS),
    ),
    Pair(
        "sctp_test -B, -C twice", "lksctp", "sctp_test -H {server} -B {server2} -P 5007 -l", "Receiving packets",
        "sctp_test -H {client} -B {client2} -P 5008 -C {server} -C {server2} -p 5007 -s -x 2 -c 0", terminal=True,
        same=LABELS, heard=("20 x Data 1 bytes", *EVENTS),
    ),
    *(
        Pair(
            f"sctp_darn {style}".strip(), "lksctp", f"sctp_darn {style} -H {{server}} -P 5009 -l", "listening",
            f"(printf 'hello\\nsecond\\n'; {{until}} second {{log}}) | sctp_darn {style} -H {{client}} -P 5010 -h {{server}} -p 5009 -s",
            heard=("DATA(7):  hello.", "DATA(8):  second."), status=8, terminal=True,
        )
        for style in ("", "-t")
    ),
    # It shows the state of its association now and then while it sends.
    Pair(
        "sctp_status", "lksctp", "sctp_status -H {server} -P 5011 -l", "Starting tests",
        until_says("ACTIVE", "script -qfec 'sctp_status -H {client} -P 5012 -h {server} -p 5011 -s -x 1000' /dev/null"),
        said=(r"~ESTABLISHED( +\d+){3} +10 +10 +\d+ +ACTIVE",), terminal=True,
    ),
    Pair(
        "iperf3", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 -t 2", said=("iperf Done.",), alone=True,
    ),
    BULK,
    Pair(
        "iperf3 -l 1400 -N", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 -l 1400 -N -n 1M",
        said=("iperf Done.",), alone=True,
    ),
    Pair(
        "iperf3 --nstreams 4", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 --nstreams 4 -n 64K",
        said=("iperf Done.",), alone=True,
    ),
    Pair("mtr", "mtr", SOCAT, "listening on", "mtr --sctp -r -c 1 -G 1 {server}", said=("0.0%",), apart=True),
    # It says what it listens at, and at what it has connected to.
    Pair(
        "gensiot", "gensio", f"{OPEN} | gensiot -a -p -i 'stdio(self)' sctp,{{server}},5260 2>&1", "5260",
        "(echo hello gensio; {until} gensio {log}) | gensiot -i 'stdio(self)' sctp,{server},5260", heard=("hello gensio",),
    ),
    CALLS,
    Pair(
        "netperfmeter", "netperfm", "stdbuf -oL netperfmeter 5250", "Passive Mode",
        "netperfmeter {server}:5250 -runtime=1 -sctp const10:const1200:const5:const300", alone=True,
        said=("~Transmission:[^B]*Bytes: +[1-9]", "~Reception:[^B]*Bytes: +[1-9]"),
    ),
    Pair(
        "D-ITG", "d-itg", "stdbuf -oL ITGRecv", "Press Ctrl-C", "ITGSend -a {server} -T SCTP 0 1 -t 1000 -C 50 -c 500 -rp 5252",
        heard=("Finish on SCTP port : 5252",), said=("Finished sending",), alone=True,
    ),
]

# One socket for all associations, at two addresses.
PYTHON_HEARS = """
import sctp, socket
server = sctp.sctpsocket_udp(socket.AF_INET)
server.bindx([("{server}", 5200), ("{server2}", 5200)])
server.events.data_io = server.events.association = True
server.listen(5)
print("listening", flush=True)
while True:
    peer, flags, data, info = server.sctp_recv(1000)
    if not flags & 0x8000:
        break
    print("association", info.state, flush=True)
print(data.decode(), "on", info.stream, flush=True)
server.sctp_send(data, to=peer, stream=info.stream)
"""
PYTHON_SPEAKS = """
import sctp, socket
addresses = [("{server}", 5200), ("{server2}", 5200)]
client = sctp.sctpsocket_tcp(socket.AF_INET)
client.connectx(addresses)
print(sorted(client.getpaddrs()) == sorted(addresses), client.get_status().state)
client.sctp_send(b"hello", stream=3)
print(client.sctp_recv(1000)[2].decode())
client.close()
"""
# Says what comes, until an association has ended.
ERLANG_HEARS = """
{ok, Address} = inet:parse_address("{server}"),
{ok, S} = gen_sctp:open(5200, [{ip, Address}, {active, false}, binary]),
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
ERLANG_SPEAKS = """
{ok, S} = gen_sctp:open([{active, false}, binary]),
{ok, A} = gen_sctp:connect(S, "{server}", 5200, []),
ok = gen_sctp:send(S, A, 3, <<"hello">>),
{ok, P} = gen_sctp:peeloff(S, A),
ok = gen_sctp:send(P, A, 1, <<"second">>),
ok = gen_sctp:eof(P, A),
{ok, {_, _, _, {sctp_assoc_change, shutdown_comp, _, _, _, _}}} = gen_sctp:recv(P),
halt(0).
"""
# An Erlang program that leaves no dump behind.
ERLANG = "env ERL_CRASH_DUMP_BYTES=0 erl -noshell -eval"
# What each end says of the channels of peers/java.
JAVA_HEARS = ("server saw [COMM_UP, SHUTDOWN], then -1", "branched after first", "the end of the listener")
JAVA_HEARS_ON_LINUX = ("server saw [COMM_UP", ", then -1", *JAVA_HEARS[1:])
JAVA_SPEAKS = (
    "connectable true, connected true", "client saw [COMM_UP], then hello on 3", "from the branch on 1",
    "closed while it waited", "the end of the connector",
)
LANGUAGES = [
    Pair(
        "pysctp", "pysctp", "{python} {hears}", "listening", "{python} {speaks}", heard=("association 0", "hello on 3"),
        said=("True 4", "hello"), files=(("hears", PYTHON_HEARS), ("speaks", PYTHON_SPEAKS)),
        without="" if importlib.util.find_spec("sctp") else "pysctp is not installed: interop/install python",
    ),
    Pair(
        "Erlang", "erlang", f'{ERLANG} "$(cat {{hears}})"', "listening", f'{ERLANG} "$(cat {{speaks}})"',
        heard=("comm_up", "hello on 3", "second on 1", "shutdown_comp"),
        files=(("hears", ERLANG_HEARS), ("speaks", ERLANG_SPEAKS)),
    ),
    Pair(
        "OpenJDK", "java", "java -cp {classes} Channels listen {server}", "listening",
        "java -cp {classes} Channels connect {server}", heard=JAVA_HEARS, heard_by_linux=JAVA_HEARS_ON_LINUX,
        said=JAVA_SPEAKS,
    ),
    # Four associations at once.
    Pair(
        "ishidawataru/sctp", "Go", f"{GO} server {{server}}:5320", "listening", f"{GO} client {{server}}:5320",
        heard=("4 x EOF",), said=("echoed 80",), without="" if GO.exists() else "it is not built: interop/install sctp says why",
    ),
]

KAMAILIO = f"""
debug=2
log_stderror=yes
children=4
sctp_children=4
disable_tcp=yes
enable_sctp=yes
auto_aliases=no
listen=sctp:{{server}}:5270
mpath="{MODULES}/"
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
# A port of TCP takes commands: on one host each has an address for it.
OSMO = """
log stderr
 logging color 0
 logging level set-all info
 logging filter all 1
line vty
 no login
 bind {control}
cs7 instance 0
"""
OSMO_SERVER = fill(OSMO, {"control": "127.0.0.1"}) + """
 asp b 2906 2905 m3ua
  remote-ip {client}
  remote-ip {client2}
  local-ip {server}
  role sg
  sctp-role server
 as as-b m3ua
  asp b
  routing-key 2 0.23.2
 listen m3ua 2905
  local-ip {server}
"""
OSMO_CLIENT = fill(OSMO, {"control": "127.0.0.3"}) + """
 asp a 2905 2906 m3ua
  remote-ip {server}
  local-ip {client}
  local-ip {client2}
  role asp
  sctp-role client
 as as-a m3ua
  asp a
  routing-key 2 0.23.2
"""
NODE = f"""
Identity = "{{name}}.{ORIGIN}";
Realm = "{ORIGIN}";
Port = {{own}};
SecPort = 0;
No_IPv6;
No_TCP;
SCTP_streams = 3;
TwTimer = 6;
ListenOn = "{{address}}";
TLS_Cred = "{{chain}}", "{{key}}";
TLS_CA = "{{authority}}";
ConnectPeer = "{{peer}}.{ORIGIN}" {{ ConnectTo = "{{remote}}"; Port = {{other}}; No_TLS; }};
"""
NODE_B = {"name": "b", "address": "{server}", "own": "3868", "peer": "a", "remote": "{client}", "other": "3869"}
NODE_A = {"name": "a", "address": "{client}", "own": "3869", "peer": "b", "remote": "{server}", "other": "3868"}
# What telephone networks run.
SIGNALLING = [
    # Four processes answer what comes to the one socket that their parent made.
    Pair(
        "Kamailio", "kamailio", "kamailio -f {proxy} -DD -E -Y $(mktemp -d)", "child_init()",
        "sipp -sf {scenario} -t s1 -i {client} -p 5261 {server}:5270 -nostdin -m 500 -r 50",
        said=("Successful call",), files=(("proxy", KAMAILIO), ("scenario", OPTIONS)),
        without="" if (MODULES / "sctp.so").exists() else "Kamailio has no SCTP (Debian: kamailio-sctp-modules)",
    ),
    # M3UA becomes active over an association of two addresses, and its end is noticed.
    Pair(
        "osmo-stp", "osmo-stp", "osmo-stp -c {stp_server}", "Available via telnet",
        until_says("AS Active", "osmo-stp -c {stp_client}"), heard=("xUA SRV SHUTDOWN_EVENT", "connection closed"),
        said=("AS Active",), files=(("stp_server", OSMO_SERVER), ("stp_client", OSMO_CLIENT)), alone=True,
    ),
    # Both open, and one says goodbye to the other.
    Pair(
        "freeDiameter", "freediam", "freeDiameterd -c {node_b}", "daemon initialized",
        until_says("STATE_OPEN", "freeDiameterd -c {node_a}"), heard=("STATE_OPEN", "(SCTP,", "DPR"),
        said=("STATE_OPEN",), files=(("node_b", fill(NODE, NODE_B)), ("node_a", fill(NODE, NODE_A))), loopback=False,
    ),
]
