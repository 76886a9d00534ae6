//! A name server that does what a test says, over UDP and TCP on one port.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

use super::super::exchange::{framed, read_message};

/// The types of records.
pub(super) const A: u16 = 1;
pub(super) const CNAME: u16 = 5;
pub(super) const SOA: u16 = 6;
pub(super) const AAAA: u16 = 28;
pub(super) const OPT: u16 = 41;
pub(super) const HTTPS: u16 = 65;
#[cfg(feature = "encrypted-dns")]
pub(super) const SVCB: u16 = 64;

/// A query as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) octets: Vec<u8>,
    pub(super) over_tcp: bool,
    /// How many queries came before.
    pub(super) before: usize,
    /// How many connections came before, with those for other queries.
    #[cfg_attr(not(feature = "encrypted-dns"), expect(dead_code, reason = "for encrypted DNS"))]
    pub(super) connection: usize,
}

impl Asked {
    pub(super) fn edns(&self) -> bool {
        self.octets[11] != 0
    }

    /// The end of the only question.
    fn end(&self) -> usize {
        12 + self.octets[12..].iter().position(|octet| *octet == 0).unwrap() + 5
    }

    pub(super) fn kind(&self) -> u16 {
        u16::from_be_bytes([self.octets[self.end() - 4], self.octets[self.end() - 3]])
    }

    pub(super) fn name(&self) -> Vec<u8> {
        self.octets[12..self.end() - 4].to_vec()
    }
}

/// What a server does with a query.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Send(Vec<u8>),
    /// From another port.
    SendFromElsewhere(Vec<u8>),
    /// With this status in HTTP, and with this age.
    #[cfg_attr(not(feature = "encrypted-dns"), expect(dead_code, reason = "for encrypted DNS"))]
    SendHttp(u16, &'static str, Vec<u8>),
    /// Ends the connection.
    Close,
}

/// A response that is written piece by piece.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) id: [u8; 2],
    pub(super) flags: u16,
    /// Name, type and class.
    pub(super) question: Vec<u8>,
    pub(super) counts: [u16; 4],
    pub(super) records: Vec<u8>,
}

/// Recursion is desired and available.
const RESPONSE: u16 = 0x8180;
pub(super) const TRUNCATED: u16 = 0x0200;
pub(super) const AUTHENTIC: u16 = 0x0020;

pub(super) fn reply(to: &Asked) -> Reply {
    let question = to.octets[12..to.end()].to_vec();
    let id = [to.octets[0], to.octets[1]];
    Reply { id, flags: RESPONSE, question, counts: [1, 0, 0, 0], records: Vec::new() }
}

impl Reply {
    pub(super) fn code(mut self, code: u16) -> Self {
        self.flags |= code;
        self
    }

    pub(super) fn flags(mut self, flags: u16) -> Self {
        self.flags |= flags;
        self
    }

    pub(super) fn without_question(mut self) -> Self {
        (self.counts[0], self.question) = (0, Vec::new());
        self
    }

    /// Adds a record to a section: 1 has answers, 2 is the authority, 3 is additional.
    pub(super) fn record(mut self, section: usize, record: &[u8]) -> Self {
        self.counts[section] += 1;
        self.records.extend(record);
        self
    }

    pub(super) fn answer(self, record: &[u8]) -> Self {
        self.record(1, record)
    }

    pub(super) fn opt(self, version: u8, upper_code: u8) -> Self {
        let ttl = u32::from_be_bytes([upper_code, version, 0, 0]);
        self.record(3, &rr(b"\0", OPT, 1232, ttl, b""))
    }

    pub(super) fn octets(&self) -> Vec<u8> {
        let counts = self.counts.iter().flat_map(|count| count.to_be_bytes());
        let head = self.id.into_iter().chain(self.flags.to_be_bytes()).chain(counts);
        head.chain(self.question.iter().copied()).chain(self.records.iter().copied()).collect()
    }

    pub(super) fn send(&self) -> Vec<Act> {
        vec![Act::Send(self.octets())]
    }
}

/// The name of the question.
pub(super) const SAME: &[u8] = &[0xc0, 12];

pub(super) fn rr(owner: &[u8], kind: u16, class: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len()).unwrap();
    let fields = [&kind.to_be_bytes()[..], &class.to_be_bytes(), &ttl.to_be_bytes()].concat();
    [owner, &fields, &len.to_be_bytes(), data].concat()
}

pub(super) fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let labels = labels
        .flat_map(|label| std::iter::once(u8::try_from(label.len()).unwrap()).chain(label.bytes()));
    labels.chain([0]).collect()
}

pub(super) fn a(owner: &[u8]) -> Vec<u8> {
    rr(owner, A, 1, 60, &[192, 0, 2, 1])
}

pub(super) fn cname(owner: &[u8], target: &str) -> Vec<u8> {
    rr(owner, CNAME, 1, 60, &wire(target))
}

pub(super) fn soa() -> Vec<u8> {
    let times = [1_u32, 2, 3, 4, 60].into_iter().flat_map(u32::to_be_bytes);
    let data: Vec<u8> = wire("ns.test").into_iter().chain(wire("m.test")).chain(times).collect();
    rr(&wire("test"), SOA, 1, 60, &data)
}

/// What a server does.
pub(super) type Behaviour = fn(&Asked) -> Vec<Act>;

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Starts a server; its TCP port is closed if `tcp` is not set.
    pub(super) async fn start(
        behaviour: impl Fn(&Asked) -> Vec<Act> + Clone + Send + Sync + 'static,
        tcp: bool,
    ) -> Self {
        let (udp, listener) = ports().await;
        let address = udp.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let record = |asked: &Arc<Mutex<Vec<Asked>>>| {
            let asked = Arc::clone(asked);
            move |octets: &[u8], over_tcp| record(&asked, octets, over_tcp, 0)
        };
        let (over_udp, over_tcp) = (record(&asked), record(&asked));
        let of_stream = behaviour.clone();
        tokio::spawn(async move {
            let elsewhere = UdpSocket::bind((address.ip(), 0)).await.unwrap();
            let mut query = [0; 1500];
            while let Ok((len, from)) = udp.recv_from(&mut query).await {
                for act in behaviour(&over_udp(&query[..len], false)) {
                    match act {
                        Act::Send(octets) => _ = udp.send_to(&octets, from).await,
                        Act::SendFromElsewhere(octets) => {
                            _ = elsewhere.send_to(&octets, from).await;
                        }
                        Act::SendHttp(..) | Act::Close => return,
                    }
                }
            }
        });
        if tcp {
            tokio::spawn(serve_tcp(listener, of_stream, over_tcp));
        }
        Self { address, asked }
    }

    pub(super) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// Notes a query.
pub(super) fn record(
    asked: &Mutex<Vec<Asked>>,
    octets: &[u8],
    over_tcp: bool,
    connection: usize,
) -> Asked {
    let mut asked = asked.lock().unwrap();
    let one = Asked { octets: octets.to_vec(), over_tcp, before: asked.len(), connection };
    asked.push(one.clone());
    one
}

/// Returns sockets on a port that is free for both protocols.
async fn ports() -> (UdpSocket, TcpListener) {
    loop {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
            return (udp, tcp);
        }
    }
}

async fn serve_tcp(
    listener: TcpListener,
    behaviour: impl Fn(&Asked) -> Vec<Act>,
    record: impl Fn(&[u8], bool) -> Asked,
) {
    while let Ok((tcp, _)) = listener.accept().await {
        serve_stream(tcp, &behaviour, |query| record(query, true)).await;
    }
}

/// Serves one connection.
pub(super) async fn serve_stream(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    behaviour: impl Fn(&Asked) -> Vec<Act>,
    record: impl Fn(&[u8]) -> Asked,
) {
    while let Ok(query) = read_message(&mut stream).await {
        for act in behaviour(&record(&query)) {
            match act {
                Act::Send(octets) | Act::SendFromElsewhere(octets) => {
                    let _ = stream.write_all(&framed(&octets).unwrap()).await;
                }
                Act::SendHttp(..) | Act::Close => {
                    let _ = stream.shutdown().await;
                    return;
                }
            }
        }
    }
}
