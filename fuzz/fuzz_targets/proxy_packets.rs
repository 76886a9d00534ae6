//! Arbitrary packets of a command whose connections are intercepted: every answer is a valid packet, a
//! connection is opened once, and DNS queries are answered with DNS messages.
#![no_main]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use arbitrary::Arbitrary;
use etherparse::{PacketBuilder, PacketHeaders, TcpHeader};
use eyas_proxy::HOST;
use eyas_proxy::internals::dns::{self, IncomingMessage, NameExistence};
use eyas_proxy::internals::{
    FlowDenial, FlowTranslator, ProgramFlow, RepresentedNames, TranslatorOutput,
};
use eyas_relay::packet::UnreachableCause;
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<5> = Reach::new([
    "a granted connection",
    "a refused connection",
    "an answer from a listener",
    "an answered query",
    "a packet that is not delivered",
]);

const LISTENERS: [u16; 2] = [7000, 7001];

#[derive(Arbitrary, Debug)]
enum Event<'a> {
    Packet(&'a [u8]),
    Segment { v6: bool, from: u8, to: u8, flags: u8, sequence: u32, payload: &'a [u8] },
    FromListener { flow: u8, flags: u8 },
    Datagram { v6: bool, to_dns: bool, payload: &'a [u8] },
    Question { labels: u8, kind: u8, payload: &'a [u8] },
    Grant(u8),
    Refuse(u8, u8),
    Close(u8),
    Later(u16),
}

fn host(v6: bool) -> IpAddr {
    if v6 { HOST.1.into() } else { HOST.0.into() }
}

fn segment(from: SocketAddr, to: SocketAddr, flags: u8, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut header = TcpHeader::new(from.port(), to.port(), sequence, 1000);
    (header.syn, header.ack) = (flags & 1 != 0, flags & 2 != 0);
    (header.fin, header.rst) = (flags & 4 != 0, flags & 8 != 0);
    let mut packet = Vec::new();
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 9)
            .tcp_header(header)
            .write(&mut packet, payload),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 9)
            .tcp_header(header)
            .write(&mut packet, payload),
        _ => return packet,
    }
    .expect("the packet is short");
    packet
}

fn datagram(v6: bool, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    match (HOST, v6) {
        ((from, _), false) => PacketBuilder::ipv4(from.octets(), [192, 0, 2, 1], 9)
            .udp(4000, port)
            .write(&mut packet, payload),
        ((_, from), true) => PacketBuilder::ipv6(from.octets(), from.octets(), 9)
            .udp(4000, port)
            .write(&mut packet, payload),
    }
    .expect("the packet is short");
    packet
}

/// Returns a query for a name with this many labels, followed by arbitrary bytes.
fn query(labels: u8, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in 0..labels % 8 {
        message.extend([2, b'a' + label, payload.get(usize::from(label)).copied().unwrap_or(b'x')]);
    }
    // A, AAAA, HTTPS, MX.
    message.extend([0, 0, [1, 28, 65, 15][usize::from(kind % 4)], 0, 1]);
    message.extend(payload);
    message
}

fuzz_target!(|events: Vec<Event<'_>>| {
    REACH.begin();
    let (mut translator, mut names) = (FlowTranslator::new(LISTENERS), RepresentedNames::default());
    let (mut now, mut flows): (Duration, Vec<ProgramFlow>) = (Duration::from_secs(1), Vec::new());
    for event in events {
        let flow = |at: u8| flows.get(usize::from(at) % flows.len().max(1)).copied();
        match event {
            Event::Packet(bytes) => translator.handle_packet(now, bytes),
            Event::Segment { v6, from, to, flags, sequence, payload } => {
                let from = SocketAddr::new(host(v6), 4000 + u16::from(from % 4));
                let to: SocketAddr = match (v6, to % 2) {
                    (false, to) => ([192, 0, 2, to], 443).into(),
                    (true, to) => ([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(to)], 443).into(),
                };
                translator.handle_packet(now, &segment(from, to, flags, sequence, payload));
            }
            Event::FromListener { flow: at, flags } => {
                if let Some(flow) = flow(at) {
                    let v6 = flow.peer.is_ipv6();
                    let from = SocketAddr::new(host(v6), LISTENERS[usize::from(v6)]);
                    translator.handle_packet(now, &segment(from, flow.peer, flags, 1, b""));
                    REACH.hit("an answer from a listener");
                }
            }
            Event::Datagram { v6, to_dns, payload } => {
                let port = if to_dns { 53 } else { 443 };
                translator.handle_packet(now, &datagram(v6, port, payload));
                if !to_dns {
                    REACH.hit("a packet that is not delivered");
                }
            }
            Event::Question { labels, kind, payload } => {
                translator.handle_packet(now, &datagram(false, 53, &query(labels, kind, payload)));
            }
            Event::Grant(at) => {
                if let Some(flow) = flow(at) {
                    translator.grant(now, &flow);
                    REACH.hit("a granted connection");
                }
            }
            Event::Refuse(at, how) => {
                if let Some(flow) = flow(at) {
                    let why = match how % 2 {
                        0 => FlowDenial::Reset,
                        _ => FlowDenial::Unreachable(UnreachableCause::Host),
                    };
                    translator.refuse(&flow, why);
                    REACH.hit("a refused connection");
                }
            }
            Event::Close(at) => {
                if let Some(flow) = flow(at) {
                    translator.close(now, &flow);
                }
            }
            Event::Later(seconds) => now += Duration::from_secs(seconds.into()),
        }
        while let Some(output) = translator.poll_output() {
            match output {
                TranslatorOutput::Packet(packet) => {
                    PacketHeaders::from_ip_slice(&packet).expect("a valid packet");
                }
                TranslatorOutput::Open(flow) => {
                    assert!(flows.iter().all(|known| known.peer != flow.peer));
                    flows.push(flow);
                }
                TranslatorOutput::Question { from, to, message } => {
                    let answer = match dns::read(&message) {
                        IncomingMessage::Question(question) => {
                            let (v4, v6) = names.addresses(now, question.name()).expect("room");
                            let name = names.name(now, v6.into());
                            assert_eq!(name.as_deref(), Some(question.name()));
                            REACH.hit("an answered query");
                            question.answer(NameExistence::Addresses(v4, v6))
                        }
                        // The query itself, in the place of what a server answers.
                        IncomingMessage::Forward(forwarded) => {
                            forwarded.query().and_then(|query| forwarded.answer(Some(&query)))
                        }
                        IncomingMessage::Reverse(ip, forwarded) => match names.name(now, ip) {
                            Some(name) => forwarded.answer_name(&name),
                            None => forwarded.answer(None),
                        },
                        IncomingMessage::Answer(answer) => Some(answer),
                        IncomingMessage::Ignored => None,
                    };
                    if let Some(answer) = answer {
                        let answer = dns::fitted(&message, answer);
                        translator.datagram(to, from, &answer);
                    }
                }
            }
        }
    }
    assert!(translator.flow_count() <= flows.len());
});
