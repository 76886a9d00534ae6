//! Two name servers of one zone, on 127.0.0.1 and 127.0.0.2.

use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex};

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const HTTPS: u16 = 65;

/// `1 . alpn=h2`.
const SERVICE: [u8; 10] = [0, 1, 0, 0, 1, 0, 3, 2, b'h', b'2'];

/// The addresses of names. A name with an address that is none exists without any.
const ZONE: &[(&str, &str)] = &[
    ("v4.test", "10.0.0.4"),
    ("v6.test", "2001:db8::6"),
    ("both.test", "10.0.0.8"),
    ("both.test", "10.0.0.9"),
    ("both.test", "2001:db8::8"),
    ("alias.test", "both.test"),
    ("broken.test", "gone.test"),
    ("empty.test", "NODATA"),
    ("un_der.test", "10.0.0.11"),
    ("hyphen-.test", "10.0.0.12"),
    ("top", "10.0.0.13"),
    ("svc.ns.svc.cluster.local", "10.1.0.1"),
    ("svc.default.svc.cluster.local", "10.1.0.2"),
    ("svc.default.svc.cluster.local", "2001:db8:c::2"),
    ("api.example.com", "10.1.0.3"),
    ("m.one.test", "2001:db8:1::1"),
    ("m.two.test", "10.0.2.1"),
    ("s.two.test", "10.0.2.2"),
    ("uncached.two.test", "10.0.2.3"),
    ("n.one.test", "NODATA"),
    ("n.two.test", "10.0.2.4"),
    ("both.test.one.test", "10.0.2.5"),
    ("absent.test.one.test", "10.0.2.6"),
    ("empty.test.one.test", "10.0.2.7"),
    ("f.servfail.test", "SERVFAIL"),
    ("f.two.test", "10.0.2.8"),
    ("box.test", "10.0.2.9"),
    ("localhost.test", "10.0.2.10"),
    ("l23456789012345678901234567890123456789012345678901234567890123.test", "10.0.3.1"),
    ("_sip._tcp.test", "10.0.3.2"),
    ("xn--bcher-kva.test", "10.0.3.4"),
    ("123.test", "10.0.3.5"),
    ("mapped.test", "::ffff:10.0.3.6"),
    ("many.test", "10.0.0.20"),
    ("many.test", "192.0.2.20"),
    ("many.test", "198.51.100.20"),
    ("many.test", "2001:db8:a::20"),
    ("many.test", "2001:db8:b::20"),
    ("many.test", "2001:db8::20"),
    ("many.test", "2002:c000:201::20"),
    ("local.test", "10.0.2.11"),
];

/// Names with an HTTPS record.
const SERVICES: [&str; 4] = ["both.test", "m.two.test", "s.two.test", "alias.test"];

/// The servers; they end with the process.
pub(crate) struct Server {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        for address in ["127.0.0.1", "127.0.0.2"] {
            let socket = UdpSocket::bind((address, 53)).unwrap();
            let asked = Arc::clone(&asked);
            std::thread::spawn(move || serve(&socket, &asked));
        }
        Self { asked }
    }

    /// Returns what was asked since the last call, such as `a.test 28`.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn serve(socket: &UdpSocket, asked: &Mutex<Vec<String>>) {
    let IpAddr::V4(own) = socket.local_addr().unwrap().ip() else { unreachable!() };
    let mut query = [0; 1500];
    while let Ok((len, from)) = socket.recv_from(&mut query) {
        if let Some((name, answer)) = answer(&query[..len], own.octets()[3]) {
            asked.lock().unwrap().push(name);
            let _ = socket.send_to(&answer, from);
        }
    }
}

/// Returns the question, and the response to it (RFC 1035 §4.1).
fn answer(query: &[u8], own: u8) -> Option<(String, Vec<u8>)> {
    let mut at = 12;
    let mut labels = Vec::new();
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(query.get(at + 1..end)?).to_ascii_lowercase());
        at = end;
    }
    let name = labels.join(".");
    let kind = u16::from_be_bytes([query[at + 1], query[at + 2]]);
    let mut response = query[..at + 5].to_vec();
    let mut records: Vec<(u16, Vec<u8>)> = Vec::new();
    let mut owner = name.as_str();
    while let Some(target) = alias(owner) {
        records.push((CNAME, wire(target)));
        owner = target;
    }
    let values: Vec<&str> =
        ZONE.iter().filter(|(listed, _)| *listed == owner).map(|(_, value)| *value).collect();
    for value in &values {
        match value.parse() {
            Ok(IpAddr::V4(v4)) if kind == A => records.push((A, v4.octets().to_vec())),
            Ok(IpAddr::V6(v6)) if kind == AAAA => records.push((AAAA, v6.octets().to_vec())),
            _ => {}
        }
    }
    if owner == "where.test" && kind == A {
        records.push((A, vec![10, 0, 0, own]));
    }
    if kind == HTTPS && SERVICES.contains(&owner) {
        records.push((HTTPS, SERVICE.to_vec()));
    }
    let code = match values.first() {
        Some(&"SERVFAIL") => 2,
        _ if owner.ends_with("servfail.test") => 2,
        None if records.iter().all(|(kind, _)| *kind == CNAME) && owner != "where.test" => 3,
        _ => 0,
    };
    // A response with recursion, one question, these answers and nothing else.
    let count = u8::try_from(records.len()).ok()?;
    response[2..12].copy_from_slice(&[0x85, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
    let mut from = wire(&name);
    for (kind, data) in records {
        response.extend(&from);
        response.extend(kind.to_be_bytes());
        // Class IN; kept for an hour.
        response.extend([0, 1, 0, 0, 0x0e, 0x10]);
        response.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        if kind == CNAME {
            from.clone_from(&data);
        }
        response.extend(data);
    }
    Some((format!("{name} {kind}"), response))
}

/// Returns what the name is an alias for.
fn alias(name: &str) -> Option<&'static str> {
    let (_, target) = ZONE.iter().find(|(listed, _)| *listed == name)?;
    target.ends_with(".test").then_some(*target)
}

fn wire(name: &str) -> Vec<u8> {
    let mut wire = Vec::new();
    for label in name.split('.') {
        wire.push(u8::try_from(label.len()).unwrap());
        wire.extend(label.as_bytes());
    }
    wire.push(0);
    wire
}
