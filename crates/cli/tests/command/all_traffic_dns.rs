//! The DNS queries of programs under `eyas proxy run --all-traffic`. Where this user cannot create namespaces, they are
//! skipped.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::thread;

use crate::netem::is_possible;
use crate::stage::{Eyas, Served};

/// Functions for programs: makes a query, and sends it by UDP or TCP.
const CLIENT: &str = "
import socket, struct
SERVER = ('198.19.0.2', 53)
def query(name, kind, size=0, id=7):
    labels = b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\\0'
    opt = b'\\0' + struct.pack('>HHIH', 41, size, 0, 0) if size else b''
    return struct.pack('>6H', id, 0x100, 1, 0, 0, 1 if size else 0) + labels + struct.pack('>2H', kind, 1) + opt
def udp(message):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(60)
    s.sendto(message, SERVER)
    return s.recv(65535)
def tcp(message):
    s = socket.create_connection(SERVER)
    s.sendall(struct.pack('>H', len(message)) + message)
    f = s.makefile('rb')
    return f.read(struct.unpack('>H', f.read(2))[0])
def head(answer):
    id, flags, questions, answers, _, additional = struct.unpack('>6H', answer[:12])
    return id, flags & 0xf, bool(flags & 0x200), questions, answers, additional
";

fn enclosed(flags: &str, program: &str) {
    let eyas = Eyas::new(&format!("proxy run --all-traffic --memory none {flags} --"));
    eyas.arg("python3").arg("-c").arg(format!("{CLIENT}{program}")).run().exits(0);
}

/// The end of the only question of a query.
fn end(query: &[u8]) -> usize {
    12 + query[12..].iter().position(|octet| *octet == 0).expect("a name") + 5
}

/// Answers with one record of the type of the question, with this data, or only with its head and the question.
fn answer(query: &[u8], data: Option<&[u8]>, flags: [u8; 2]) -> Vec<u8> {
    let end = end(query);
    let mut answer = query[..end].to_vec();
    let count = u8::from(data.is_some());
    answer[2..12].copy_from_slice(&[flags[0], flags[1], 0, 1, 0, count, 0, 0, 0, 0]);
    if let Some(data) = data {
        answer.extend([0xc0, 12]);
        answer.extend(&query[end - 4..end]);
        answer.extend([0, 0, 0, 60]);
        answer.extend(u16::try_from(data.len()).expect("short").to_be_bytes());
        answer.extend(data);
    }
    answer
}

/// Starts a name server whose texts are long, so that they need TCP, and that repeats the question's name in other
/// records.
fn start_server() -> SocketAddr {
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = udp.local_addr().expect("an address");
    let tcp = TcpListener::bind(address).expect("the same port");
    thread::spawn(move || {
        let mut query = [0; 1500];
        while let Ok((len, from)) = udp.recv_from(&mut query) {
            let query = &query[..len];
            let answer = match query[end(query) - 3] {
                // TXT
                16 => answer(query, None, [0x83, 0x80]),
                // MX, SRV
                15 => answer(query, Some(&[0, 10, 0xc0, 12]), [0x81, 0x80]),
                33 => answer(query, Some(&[0, 1, 0, 2, 0, 80, 0xc0, 12]), [0x81, 0x80]),
                // PTR
                12 => answer(query, Some(b"\x04host\x04test\0"), [0x81, 0x80]),
                // A, AAAA, and all others
                _ => answer(query, None, [0x81, 0x83]),
            };
            udp.send_to(&answer, from).expect("loopback takes it");
        }
    });
    thread::spawn(move || {
        while let Ok((mut stream, _)) = tcp.accept() {
            let mut len = [0; 2];
            stream.read_exact(&mut len).expect("a length");
            let mut query = vec![0; usize::from(u16::from_be_bytes(len))];
            stream.read_exact(&mut query).expect("a query");
            let text: Vec<u8> = (0..12).flat_map(|_| [&[250][..], &[b'x'; 250]].concat()).collect();
            let answer = answer(&query, Some(&text), [0x81, 0x80]);
            let len = u16::try_from(answer.len()).expect("short").to_be_bytes();
            stream.write_all(&[&len[..], &answer].concat()).expect("it takes it");
        }
    });
    address
}

#[test]
fn queries_of_other_types_are_passed_on() {
    if !is_possible() {
        return;
    }
    let server = start_server();
    enclosed(
        &format!("--dns-server {server} --resolve name.test:80:127.0.0.1"),
        "
assert head(udp(query('a.test', 15))) == (7, 0, False, 1, 1, 0)
assert head(udp(query('_s._tcp.a.test', 33, 4096))) == (7, 0, False, 1, 1, 1)
assert b'host' in udp(query('1.2.0.192.in-addr.arpa', 12))
assert head(udp(query('a.test', 257))) == (7, 3, False, 1, 0, 0)
assert head(udp(query('a.test', 252))) == (7, 4, False, 1, 0, 0), 'no zone transfers'
# A long answer needs TCP, or an announced size.
for size in (0, 1232):
    assert head(udp(query('a.test', 16, size))) == (7, 0, True, 1, 0, 1 if size else 0), size
assert len(udp(query('a.test', 16, 8192))) > 3000
assert len(tcp(query('a.test', 16))) > 3000
# An address that represents a name leads back to it.
ip = socket.gethostbyname('name.test')
assert ip == '198.19.1.0', ip
assert socket.gethostbyaddr(ip)[0] == 'name.test'
assert b'host' in udp(query('9.9.19.198.in-addr.arpa', 12)), 'it represents none'
",
    );
}

/// With another proxy, names are resolved there, and nothing is asked here.
#[test]
fn nothing_is_passed_on_beside_another_proxy() {
    if !is_possible() {
        return;
    }
    let server = start_server();
    enclosed(
        &format!("--dns-server {server} --via http://127.0.0.1:9"),
        "assert head(udp(query('a.test', 15))) == (7, 4, False, 1, 0, 0)",
    );
}

/// The server answers nobody before it has heard from as many as may ask at a time.
#[test]
fn many_questions_at_once_wait_for_their_turn() {
    const AT_ONCE: usize = 256;
    if !is_possible() {
        return;
    }
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let server = socket.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut names, mut held) = (BTreeSet::new(), Vec::new());
        let mut query = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut query) {
            let query = query[..len].to_vec();
            names.insert(query[12..end(&query)].to_vec());
            held.push((query, from));
            if names.len() >= AT_ONCE {
                for (query, from) in held.drain(..) {
                    let answer = answer(&query, Some(&[1, b'x']), [0x81, 0x80]);
                    socket.send_to(&answer, from).expect("loopback takes it");
                }
            }
        }
    });
    enclosed(
        &format!("--dns-server {server}"),
        "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
s.settimeout(60)
for id in range(1000):
    s.sendto(query(f'n{id}.test', 16, id=id), SERVER)
missing = set(range(1000))
while missing:
    missing.discard(head(s.recv(65535))[0])
",
    );
}

#[test]
fn as_many_connections_wait_as_the_host_allows() {
    if !is_possible() {
        return;
    }
    enclosed(
        "",
        "
import subprocess
limit = open('/proc/sys/net/core/somaxconn').read().strip()
listeners = subprocess.run(['ss', '-Hltn'], capture_output=True, text=True).stdout.splitlines()
assert listeners and all(line.split()[2] == limit for line in listeners), (limit, listeners)
",
    );
}

/// ```text
/// eyas ─ eyas ─ eyas ─ the program
/// ```
#[test]
fn one_encloses_another() {
    if !is_possible() {
        return;
    }
    let plain = Served::start(Eyas::new("serve --plain --no-files --no-sctp"));
    let port = plain.address.port();
    let eyas = env!("CARGO_BIN_EXE_eyas");
    let mut command = Eyas::new(&format!(
        "proxy run --all-traffic --memory none --resolve name.test:{port}:127.0.0.1 --"
    ));
    for _ in 0..2 {
        command = command.arg(eyas);
        for argument in "proxy run --all-traffic --memory none --".split(' ') {
            command = command.arg(argument);
        }
    }
    let program = format!(
        "import urllib.request as r
assert len(r.urlopen('http://name.test:{port}/bytes/200000').read()) == 200000
assert '198.19.0.2' in open('/etc/resolv.conf').read()"
    );
    command.arg("python3").arg("-c").arg(program).run().exits(0);
}

/// There is no file to put another one over, or a link to nowhere.
#[test]
fn a_host_without_resolv_conf_gets_one_inside() {
    if !is_possible() {
        return;
    }
    let eyas = env!("CARGO_BIN_EXE_eyas");
    let folder = tempfile::tempdir().unwrap();
    let etc = folder.path().display();
    for missing in ["true", "ln -s /run/nowhere/resolv.conf resolv.conf"] {
        let script = format!(
            "set -e; mount -t tmpfs none {etc}; cd {etc}; cp /etc/passwd /etc/group .
             {missing}; mount --bind {etc} /etc; test ! -e /etc/resolv.conf
             {eyas} proxy run --all-traffic --memory none -- cat /etc/resolv.conf
             test ! -e /etc/resolv.conf"
        );
        let output = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .output()
            .expect("unshare is there");
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.contains("nameserver 198.19.0.2"), "{out}{err}");
    }
}
