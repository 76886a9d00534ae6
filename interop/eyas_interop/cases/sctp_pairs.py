"""Pairs of programs for the kernel's SCTP, on one host or on two: the listener, the client, and their expected output.

Commands and files contain names in braces: addresses of the two hosts, files of the pair, the listener's output so far
(`{log}`), and common values, such as `{wait_for} WORD FILE`, which waits for the word.
"""

import dataclasses
import importlib.util
import os
import pathlib
import shutil

from ..dns import ORIGIN

# A Go program, which makes its own system calls.
GO = pathlib.Path(os.environ.get("EYAS_PEERS", ""), "sctp", "own_calls", "go")
# Debian's place for the modules of Kamailio.
MODULES = pathlib.Path("/usr/lib/x86_64-linux-gnu/kamailio/modules")
PROGRAMS = (
    "socat", "ncat", "sctp_test", "sctp_darn", "sctp_status", "iperf3", "sipp", "netperfmeter", "gensiot", "mtr", "ITGRecv",
    "kamailio", "osmo-stp", "freeDiameterd", "erl", "java", "javac", "script", "stdbuf",
)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A listener, a client, and their expected output."""

    name: str
    peer: str
    listen_command: str
    # What the listener prints once it listens.
    ready: str
    connect_command: str
    # What the listener and the client must have printed in the end.
    listener_prints: tuple[str, ...] = ()
    connector_prints: tuple[str, ...] = ()
    # A pattern whose matches must agree on both sides; lksctp's programs do not print it for the first message.
    same: str = ""
    # The exit status of the client.
    status: int = 0
    # Runs the listener on a terminal: lksctp's programs buffer their output otherwise.
    terminal: bool = False
    # Uses a fixed TCP port, so that the carriers are tested one after the other.
    uses_tcp_port: bool = False
    # What the listener prints on Linux, where that is less.
    linux_listener_prints: tuple[str, ...] | None = None
    # Does not work on one host.
    needs_two_hosts: bool = False
    # Works with loopback addresses.
    loopback: bool = True
    # Names and contents of files.
    files: tuple[tuple[str, str], ...] = ()
    # What is missing apart from the programs.
    missing_dependency: str = ""

    def missing(self) -> str:
        """Returns why it cannot run; empty if it can."""
        words = f"{self.listen_command} {self.connect_command}".replace("(", " ").split()
        absent = [word for word in words if word in PROGRAMS and shutil.which(word) is None]
        return f"{absent[0]} is not installed" if absent else self.missing_dependency


def fill(text: str, values: dict[str, str]) -> str:
    """Returns the text with the values of its names in braces; other braces stay."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def ping_command(program: str) -> str:
    """Returns a command that sends `ping` to a program and closes its input once `ping` is echoed: SCTP has no half-close."""
    return f"o=$(mktemp); (echo ping; {{wait_for}} ping $o) | {program} >$o; s=$?; cat $o; rm $o; exit $s"


def end_after(word: str, program: str, signal: str = "TERM") -> str:
    """Returns a command that runs a program and ends it once it has printed this word."""
    wait = f"{{wait_for}} '{word}' $o 50; s=$?"
    return f"o=$(mktemp); {program} >$o 2>&1 & p=$!; {wait}; kill -{signal} $p; wait $p; cat $o; rm $o; exit $s"


# A client that ends at once may be gone before it is accepted, and some listeners then fail to query its address.
HELLO = "(echo hello; {wait_for} hello {log})"
# An input that does not end, because its end would end the association.
OPEN = "tail -f /dev/null"
SOCAT = "socat -d -d -u SCTP-LISTEN:5000 STDOUT"
IPERF = "iperf3 -s -1 -p 5201 --forceflush"
EVENTS = ("COMMUNICATION_UP", "SHUTDOWN_COMPLETE")
# The stream and the payload protocol identifier of each message.
LABELS = r"SNDRCV\(stream=(\d+)[^)]*?ppid=(\d+)"

# With one socket per association, Linux reports end of file at the peer's SHUTDOWN, before the notification.
MESSAGES = Pair(
    "sctp_test -T", "lksctp", "sctp_test -H {server} -P 5003 -l -T", "Receiving packets",
    "sctp_test -H {client} -P 5004 -h {server} -p 5003 -s -x 2 -c 0 -T", terminal=True, same=LABELS,
    listener_prints=("20 x Data 1 bytes", *EVENTS, "No association is present now"),
    linux_listener_prints=("20 x Data 1 bytes", "COMMUNICATION_UP", "No association is present now"),
)
BULK = Pair(
    "iperf3 -R -P 2", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 -t 2 -R -P 2",
    connector_prints=("iperf Done.",), uses_tcp_port=True,
)
CALLS = Pair(
    "SIPp", "sipp", "sipp -sn uas -t s1 -i {server} -p 5060 -nostdin -m 3", "Scenario Screen",
    "sipp -sn uac -t s1 -i {client} -p 5061 {server}:5060 -nostdin -m 3 -r 10", terminal=True,
)
# Tools that test and measure SCTP, and that transfer lines.
TOOLS = [
    Pair("socat", "socat", SOCAT, "listening on", f"{HELLO} | socat -u STDIN SCTP:{{server}}:5000", listener_prints=("hello",)),
    Pair(
        "socat, fork, nofork", "socat", "socat -d -d SCTP-LISTEN:5001,fork EXEC:/bin/cat,nofork", "listening on",
        ping_command("socat -t 1 - SCTP:{server}:5001"), connector_prints=("ping",),
    ),
    Pair(
        "socat, killed", "socat", SOCAT.replace("5000", "5013"), "listening on",
        end_after("starting data transfer", "socat -d -d -u PIPE SCTP:{server}:5013", "KILL"), listener_prints=("is at EOF",),
    ),
    Pair(
        "ncat", "ncat", f"{OPEN} | ncat --sctp -v -l {{server}} 5002", "Listening on",
        f"{HELLO} | ncat --sctp --send-only {{server}} 5002", listener_prints=("hello",),
    ),
    Pair(
        "ncat -6", "ncat", f"{OPEN} | ncat --sctp -6 -v -l {{server6}} 5014", "Listening on",
        f"{HELLO} | ncat --sctp -6 --send-only {{server6}} 5014", listener_prints=("hello",),
    ),
    Pair(
        "ncat -k -e", "ncat", "ncat --sctp -v -k -l {server} 5015 -e /bin/cat", "Listening on",
        " && ".join([f"({ping_command('ncat --sctp {server} 5015')})"] * 2), connector_prints=("2 x ping",),
    ),
    # Over IP, two programs under `eyas` on one host both receive packets to an unused port, and neither answers them.
    Pair(
        "ncat, refused", "ncat", SOCAT, "listening on", "ncat --sctp {server} 5999", connector_prints=("Connection refused",), status=1,
        needs_two_hosts=True,
    ),
    MESSAGES,
    Pair(
        "sctp_test", "lksctp", "sctp_test -H {server} -P 5005 -l", "Receiving packets",
        "sctp_test -H {client} -P 5006 -h {server} -p 5005 -s -x 2 -c 0", terminal=True, same=LABELS,
        listener_prints=("20 x Data 1 bytes", *EVENTS),
    ),
    Pair(
        "sctp_test -B, -C twice", "lksctp", "sctp_test -H {server} -B {server2} -P 5007 -l", "Receiving packets",
        "sctp_test -H {client} -B {client2} -P 5008 -C {server} -C {server2} -p 5007 -s -x 2 -c 0", terminal=True,
        same=LABELS, listener_prints=("20 x Data 1 bytes", *EVENTS),
    ),
    *(
        Pair(
            f"sctp_darn {style}".strip(), "lksctp", f"sctp_darn {style} -H {{server}} -P 5009 -l", "listening",
            f"(printf 'hello\\nsecond\\n'; {{wait_for}} second {{log}}) | sctp_darn {style} -H {{client}} -P 5010 -h {{server}} -p 5009 -s",
            listener_prints=("DATA(7):  hello.", "DATA(8):  second."), status=8, terminal=True,
        )
        for style in ("", "-t")
    ),
    # It prints the state of its association repeatedly while it sends.
    Pair(
        "sctp_status", "lksctp", "sctp_status -H {server} -P 5011 -l", "Starting tests",
        end_after("ACTIVE", "script -qfec 'sctp_status -H {client} -P 5012 -h {server} -p 5011 -s -x 1000' /dev/null"),
        connector_prints=(r"~ESTABLISHED( +\d+){3} +10 +10 +\d+ +ACTIVE",), terminal=True,
    ),
    Pair(
        "iperf3", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 -t 2", connector_prints=("iperf Done.",), uses_tcp_port=True,
    ),
    BULK,
    Pair(
        "iperf3 -l 1400 -N", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 -l 1400 -N -n 1M",
        connector_prints=("iperf Done.",), uses_tcp_port=True,
    ),
    Pair(
        "iperf3 --nstreams 4", "iperf3", IPERF, "listening on", "iperf3 --sctp -c {server} -p 5201 --nstreams 4 -n 64K",
        connector_prints=("iperf Done.",), uses_tcp_port=True,
    ),
    Pair("mtr", "mtr", SOCAT, "listening on", "mtr --sctp -r -c 1 -G 1 {server}", connector_prints=("0.0%",), needs_two_hosts=True),
    # It prints the address at which it listens or to which it has connected.
    Pair(
        "gensiot", "gensio", f"{OPEN} | gensiot -a -p -i 'stdio(self)' sctp,{{server}},5260 2>&1", "5260",
        "(echo hello gensio; {wait_for} gensio {log}) | gensiot -i 'stdio(self)' sctp,{server},5260", listener_prints=("hello gensio",),
    ),
    CALLS,
    Pair(
        "netperfmeter", "netperfm", "stdbuf -oL netperfmeter 5250", "Passive Mode",
        "netperfmeter {server}:5250 -runtime=1 -sctp const10:const1200:const5:const300", uses_tcp_port=True,
        connector_prints=("~Transmission:[^B]*Bytes: +[1-9]", "~Reception:[^B]*Bytes: +[1-9]"),
    ),
    Pair(
        "D-ITG", "d-itg", "stdbuf -oL ITGRecv", "Press Ctrl-C", "ITGSend -a {server} -T SCTP 0 1 -t 1000 -C 50 -c 500 -rp 5252",
        listener_prints=("Finish on SCTP port : 5252",), connector_prints=("Finished sending",), uses_tcp_port=True,
    ),
]

# A one-to-many socket at two addresses.
PYTHON_LISTENER = """
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
PYTHON_CLIENT = """
import sctp, socket
addresses = [("{server}", 5200), ("{server2}", 5200)]
client = sctp.sctpsocket_tcp(socket.AF_INET)
client.connectx(addresses)
print(sorted(client.getpaddrs()) == sorted(addresses), client.get_status().state)
client.sctp_send(b"hello", stream=3)
print(client.sctp_recv(1000)[2].decode())
client.close()
"""
# Prints what arrives, until an association has ended.
ERLANG_LISTENER = """
{ok, Address} = inet:parse_address("{server}"),
{ok, S} = gen_sctp:open(5200, [{ip, Address}, {active, false}, binary]),
ok = gen_sctp:listen(S, true),
io:format("listening~n"),
Loop = fun Loop() -> case gen_sctp:recv(S) of
  {ok, {_, _, [{sctp_sndrcvinfo, Stream, _, _, _, _, _, _, _, _}], Data}} ->
    io:format("~s on ~p~n", [Data, Stream]), Loop();
  {ok, {_, _, _, {sctp_assoc_change, shutdown_comp, _, _, _, _}}} -> io:format("shutdown_comp~n");
  {ok, {_, _, _, {sctp_assoc_change, State, _, _, _, _}}} -> io:format("~p~n", [State]), Loop();
  {ok, _} -> Loop()
end end,
Loop(), halt(0).
"""
# Sends on a one-to-many socket, then on a peeled-off one.
ERLANG_CLIENT = """
{ok, S} = gen_sctp:open([{active, false}, binary]),
{ok, A} = gen_sctp:connect(S, "{server}", 5200, []),
ok = gen_sctp:send(S, A, 3, <<"hello">>),
{ok, P} = gen_sctp:peeloff(S, A),
ok = gen_sctp:send(P, A, 1, <<"second">>),
ok = gen_sctp:eof(P, A),
{ok, {_, _, _, {sctp_assoc_change, shutdown_comp, _, _, _, _}}} = gen_sctp:recv(P),
halt(0).
"""
# Erlang without crash dumps.
ERLANG = "env ERL_CRASH_DUMP_BYTES=0 erl -noshell -eval"
# The expected output of peers/java.
JAVA_LISTENER_PRINTS = ("server saw [COMM_UP, SHUTDOWN], then -1", "branched after first", "the end of the listener")
JAVA_LISTENER_PRINTS_ON_LINUX = ("server saw [COMM_UP", ", then -1", *JAVA_LISTENER_PRINTS[1:])
JAVA_CLIENT_PRINTS = (
    "connectable true, connected true", "client saw [COMM_UP], then hello on 3", "from the branch on 1",
    "closed while it waited", "the end of the connector",
)
LANGUAGES = [
    Pair(
        "pysctp", "pysctp", "{python} {listener}", "listening", "{python} {client}", listener_prints=("association 0", "hello on 3"),
        connector_prints=("True 4", "hello"), files=(("listener", PYTHON_LISTENER), ("client", PYTHON_CLIENT)),
        missing_dependency="" if importlib.util.find_spec("sctp") else "pysctp is not installed; run interop/install python",
    ),
    Pair(
        "Erlang", "erlang", f'{ERLANG} "$(cat {{listener}})"', "listening", f'{ERLANG} "$(cat {{client}})"',
        listener_prints=("comm_up", "hello on 3", "second on 1", "shutdown_comp"),
        files=(("listener", ERLANG_LISTENER), ("client", ERLANG_CLIENT)),
    ),
    Pair(
        "OpenJDK", "java", "java -cp {classes} Channels listen {server}", "listening",
        "java -cp {classes} Channels connect {server}", listener_prints=JAVA_LISTENER_PRINTS, linux_listener_prints=JAVA_LISTENER_PRINTS_ON_LINUX,
        connector_prints=JAVA_CLIENT_PRINTS,
    ),
    # Four associations at once.
    Pair(
        "ishidawataru/sctp", "Go", f"{GO} server {{server}}:5320", "listening", f"{GO} client {{server}}:5320",
        listener_prints=("4 x EOF",), connector_prints=("echoed 80",), missing_dependency="" if GO.exists() else "it is not built; run interop/install sctp to see why",
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
# Each has a TCP control port, on one host at its own loopback address.
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
# Programs of telephone networks.
SIGNALLING = [
    # Four processes serve the one socket that their parent has opened.
    Pair(
        "Kamailio", "kamailio", "kamailio -f {proxy} -DD -E -Y $(mktemp -d)", "child_init()",
        "sipp -sf {scenario} -t s1 -i {client} -p 5261 {server}:5270 -nostdin -m 500 -r 50",
        connector_prints=("Successful call",), files=(("proxy", KAMAILIO), ("scenario", OPTIONS)),
        missing_dependency="" if (MODULES / "sctp.so").exists() else "Kamailio has no SCTP (Debian: kamailio-sctp-modules)",
    ),
    # M3UA becomes active over a multihomed association, and its end is detected.
    Pair(
        "osmo-stp", "osmo-stp", "osmo-stp -c {stp_server}", "Available via telnet",
        end_after("AS Active", "osmo-stp -c {stp_client}"), listener_prints=("xUA SRV SHUTDOWN_EVENT", "connection closed"),
        connector_prints=("AS Active",), files=(("stp_server", OSMO_SERVER), ("stp_client", OSMO_CLIENT)), uses_tcp_port=True,
    ),
    # Both peers open, and one disconnects from the other.
    Pair(
        "freeDiameter", "freediam", "freeDiameterd -c {node_b}", "daemon initialized",
        end_after("STATE_OPEN", "freeDiameterd -c {node_a}"), listener_prints=("STATE_OPEN", "(SCTP,", "DPR"),
        connector_prints=("STATE_OPEN",), files=(("node_b", fill(NODE, NODE_B)), ("node_a", fill(NODE, NODE_A))), loopback=False,
    ),
]
