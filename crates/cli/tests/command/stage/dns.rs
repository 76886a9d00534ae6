//! A DNS server on loopback with a few names.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

const TYPE_A: u16 = 1;
const NO_ERROR: u8 = 0;
const NO_SUCH_NAME: u8 = 3;

/// Answers A queries for the names it knows and NXDOMAIN for all others, until the test ends.
pub(crate) struct DnsStub {
    /// Its address.
    pub(crate) address: SocketAddr,
}

impl DnsStub {
    /// Starts a server with these names.
    pub(crate) fn start(names: &[(&str, Ipv4Addr)]) -> Self {
        let (socket, listener) = bind();
        let address = socket.local_addr().expect("an address");
        let names: BTreeMap<String, Ipv4Addr> =
            names.iter().map(|(name, address)| ((*name).to_owned(), *address)).collect();
        let known = names.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A client may end the connection at any time.
                let _ = answer_stream(stream, &known);
            }
        });
        thread::spawn(move || {
            let mut packet = [0; 1500];
            while let Ok((length, client)) = socket.recv_from(&mut packet) {
                if let Some(answer) = answer(&packet[..length], &names) {
                    socket.send_to(&answer, client).expect("loopback takes it");
                }
            }
        });
        Self { address }
    }

    /// Returns a server that never answers, as long as the socket is open.
    pub(crate) fn silent() -> (Self, UdpSocket) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("an address");
        (Self { address }, socket)
    }
}

/// Returns a UDP and a TCP socket with the same port.
fn bind() -> (UdpSocket, TcpListener) {
    loop {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("an address");
        if let Ok(listener) = TcpListener::bind(address) {
            return (socket, listener);
        }
    }
}

/// Answers one query over TCP: its length is before each message (RFC 1035 §4.2.2).
fn answer_stream(mut stream: TcpStream, names: &BTreeMap<String, Ipv4Addr>) -> std::io::Result<()> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut query = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut query)?;
    let Some(answer) = answer(&query, names) else { return Ok(()) };
    let length = u16::try_from(answer.len()).expect("a short answer");
    stream.write_all(&[&length.to_be_bytes()[..], &answer].concat())
}

/// Returns a response with the header, the question, and one A record if the name and type are
/// known.
fn answer(query: &[u8], names: &BTreeMap<String, Ipv4Addr>) -> Option<Vec<u8>> {
    let mut at = 12;
    let mut labels = Vec::new();
    while *query.get(at)? != 0 {
        let length = usize::from(query[at]);
        labels.push(String::from_utf8_lossy(query.get(at + 1..at + 1 + length)?).to_lowercase());
        at += 1 + length;
    }
    let question = query.get(12..at + 5)?;
    let record_type = u16::from_be_bytes([query[at + 1], query[at + 2]]);
    let found = names.get(&labels.join("."));
    let code = if found.is_some() { NO_ERROR } else { NO_SUCH_NAME };
    let address = found.filter(|_| record_type == TYPE_A);
    let mut packet = Vec::from(&query[..2]);
    packet.extend([0x85, 0x80 | code, 0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
    packet.extend(question);
    if let Some(address) = address {
        // The name by a pointer to the question, type A, class IN, 60 seconds, 4 octets.
        packet.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        packet.extend(address.octets());
    }
    Some(packet)
}
