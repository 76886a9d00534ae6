//! Rules of `eyas proxy` and the host's search list, which gives names other spellings. Where this user cannot create
//! namespaces, they are skipped.

use std::process::Command;

use crate::netem::is_possible;

/// A host with a search list and one name in DNS, a server at that name, and a proxy with rules. It asks for the
/// name in these spellings through the proxy, over TCP and UDP, and prints which were served.
const HOST: &str = "
import os, socket, struct, subprocess, sys, threading
eyas, rules, names = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
subprocess.run('ip link set lo up && mount -t tmpfs none /etc', shell=True, check=True)
open('/etc/resolv.conf', 'w').write('nameserver 127.0.0.1\\nsearch other.test corp.test\\n')

def question(query):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    return '.'.join(labels), query[at + 2], at + 5

def dns():
    while True:
        query, client = server.recvfrom(1500)
        name, kind, end = question(query)
        known = name == 'intern.corp.test'
        answers = known and kind == 1
        head = query[:2] + (b'\\x81\\x80' if known else b'\\x81\\x83') + struct.pack('>4H', 1, answers, 0, 0)
        record = b'\\xc0\\x0c\\0\\x01\\0\\x01\\0\\0\\0\\x3c\\0\\x04\\x7f\\0\\0\\x01' if answers else b''
        server.sendto(head + query[12:end] + record, client)

def echo_tcp():
    while True:
        stream = tcp.accept()[0]
        stream.sendall(b'served')
        stream.close()

def echo_udp():
    while True:
        data, client = udp.recvfrom(1500)
        udp.sendto(b'served', client)

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('127.0.0.1', 53))
tcp = socket.create_server(('127.0.0.1', 8000))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(('127.0.0.1', 8000))
for work in dns, echo_tcp, echo_udp:
    threading.Thread(target=work, daemon=True).start()
proxy = subprocess.Popen([eyas, 'proxy', '-l', '127.0.0.1:1080', '--memory', 'none', *rules], stdout=subprocess.PIPE)
proxy.stdout.readline()

def destination(name):
    return bytes([3, len(name)]) + name.encode() + struct.pack('>H', 8000)

def request(command):
    stream = socket.create_connection(('127.0.0.1', 1080), 60)
    stream.sendall(b'\\x05\\x01\\x00')
    assert stream.recv(2) == b'\\x05\\x00'
    stream.sendall(b'\\x05' + command)
    return stream, stream.recv(10)

def over_tcp(name):
    stream, reply = request(b'\\x01\\0' + destination(name))
    return reply[1] == 0 and stream.recv(100) == b'served'

def over_udp(name):
    stream, reply = request(b'\\x03\\0\\x01' + bytes(6))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.settimeout(2)
    datagrams.sendto(b'\\0\\0\\0' + destination(name) + b'hello', ('127.0.0.1', struct.unpack('>H', reply[8:10])[0]))
    try:
        return datagrams.recv(100).endswith(b'served')
    except TimeoutError:
        return False

for name in names:
    print(name, over_tcp(name), over_udp(name))
proxy.kill()
";

fn served(rules: &str, names: &str) -> String {
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount", "python3", "-c", HOST])
        .args([env!("CARGO_BIN_EXE_eyas"), rules, names])
        .output()
        .expect("unshare is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_denied_name_is_denied_by_its_short_forms_too() {
    if !is_possible() {
        return;
    }
    let names = "intern.corp.test intern INTERN intern.";
    assert_eq!(
        served("--deny intern.corp.test", names),
        "intern.corp.test False False\nintern False False\nINTERN False False\nintern. False False\n"
    );
    assert_eq!(served("--deny *.corp.test", "intern"), "intern False False\n");
    // Another name is searched, and so is one that is allowed as it is given.
    assert_eq!(served("--deny elsewhere.corp.test", "intern"), "intern True True\n");
    assert_eq!(
        served("--deny *.corp.test --allow intern", "intern intern.corp.test"),
        "intern True True\nintern.corp.test False False\n"
    );
    // A name that would only match with the domain after it remains what it is.
    assert_eq!(
        served("--deny *.corp.test.corp.test", "intern.corp.test"),
        "intern.corp.test True True\n"
    );
}
