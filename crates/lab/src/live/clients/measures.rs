//! Derives the measures of a fetch from its packets, and from nothing else: no client is queried.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::rr::RecordType;

use super::packet::{FlowPorts, PacketContent, PacketInfo, QuicPacketType, SegmentKind};

/// The measures of a fetch, by the names of their columns.
pub(super) type FetchMeasures = BTreeMap<&'static str, f64>;

/// The first packet to an address and port over one protocol.
#[derive(Clone, Copy, Debug)]
struct ObservedAttempt {
    at: Duration,
    peer: IpAddr,
    port: u16,
    quic: bool,
}

/// Connections, by the peer, the ports, and whether it is QUIC.
type ObservedConnections = BTreeMap<(IpAddr, FlowPorts, bool), ObservedConnection>;

/// A connection, from its own port to that of the server.
#[derive(Debug, Default)]
struct ObservedConnection {
    /// Whether its start is among the packets: a connection of an earlier fetch does not count.
    started: bool,
    accepted: bool,
    reset_by_client: bool,
    /// Whether the client has sent data.
    sent_data: bool,
    flights: FlightState,
}

/// Whose data arrived in turn, up to the first byte of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum FlightState {
    #[default]
    None,
    /// The request, or the ClientHello.
    Client,
    /// The reply to the ClientHello.
    Server,
    /// The end of the handshake, with or before the request.
    ClientSecond,
    Response,
}

/// The first byte of the response.
#[derive(Clone, Copy, Debug)]
struct FirstResponseByte {
    at: Duration,
    ipv6: bool,
    quic: bool,
}

/// Returns the start of time: the first query for the name, or the first attempt of a client that
/// queries later, or not at all because it remembers.
pub(super) fn start_time(packets: &[PacketInfo], name: &str) -> Option<Duration> {
    let query = |packet: &&PacketInfo| {
        packet.sent
            && matches!(&packet.content, PacketContent::Dns(dns) if !dns.is_answer && is_query_for(&dns.name, name))
    };
    let query = packets.iter().find(query).map(|packet| packet.at);
    let attempt = attempts(packets).first().map(|attempt| attempt.at);
    query.into_iter().chain(attempt).min()
}

/// Returns which addresses are queried first.
fn first_address_query(packets: &[PacketInfo], name: &str) -> Option<RecordType> {
    packets.iter().find_map(|packet| match &packet.content {
        PacketContent::Dns(dns)
            if packet.sent && !dns.is_answer && is_query_for(&dns.name, name) =>
        {
            Some(dns.record_type).filter(|record_type| record_type.is_ip_addr())
        }
        _ => None,
    })
}

/// Returns whether a packet belongs to a fetch of this name, which queries for other names and
/// their answers do not.
pub(super) fn belongs(packet: &PacketInfo, name: &str) -> bool {
    match &packet.content {
        PacketContent::Dns(dns) => is_query_for(&dns.name, name),
        _ => true,
    }
}

/// Returns whether a query is for this name or for one below it, as for the HTTPS record of another
/// port.
fn is_query_for(queried: &str, name: &str) -> bool {
    queried.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Computes the measures of one fetch of this name. `ended` is when the client's process ended.
pub(super) fn measure(
    packets: &[PacketInfo],
    name: &str,
    ended: Option<Duration>,
) -> FetchMeasures {
    let mut measures = FetchMeasures::new();
    let attempts = attempts(packets);
    let (connections, response) = connections(packets);
    measures.insert("packets", packets.len() as f64);
    measures.insert("bytes", packets.iter().map(|packet| packet.length).sum::<usize>() as f64);
    measures.insert("failed", percent(response.is_none()));
    let wasted =
        connections.values().filter(|connection| connection.accepted && !connection.sent_data);
    measures.insert("wasted", wasted.count() as f64);
    let killed = connections.values().filter(|connection| is_killed(connection));
    measures.insert("killed", killed.count() as f64);
    let Some(begin) = start_time(packets, name) else { return measures };
    if let Some(first) = response {
        measures.insert("byte", milliseconds(begin, first.at));
        measures.insert("won-6", percent(first.ipv6));
        measures.insert("won-quic", percent(first.quic));
        if let Some(ended) = ended {
            measures.insert("linger", milliseconds(first.at, ended));
        }
    }
    if let Some(record_type) = first_address_query(packets, name) {
        measures.insert("aaaa-first", percent(record_type == RecordType::AAAA));
    }
    measure_attempts(&attempts, packets, begin, &mut measures);
    measure_answers(&attempts, packets, name, &mut measures);
    measures
}

/// Returns whether it was abandoned before it was accepted, which happened later.
fn is_killed(connection: &ObservedConnection) -> bool {
    connection.accepted && connection.reset_by_client && !connection.sent_data
}

fn measure_attempts(
    attempts: &[ObservedAttempt],
    packets: &[PacketInfo],
    begin: Duration,
    measures: &mut FetchMeasures,
) {
    let count =
        |ipv6| attempts.iter().filter(|attempt| attempt.peer.is_ipv6() == ipv6).count() as f64;
    measures.insert("addresses-6", count(true));
    measures.insert("addresses-4", count(false));
    let Some(first) = attempts.first() else { return };
    measures.insert("first", milliseconds(begin, first.at));
    measures.insert("first-6", percent(first.peer.is_ipv6()));
    let turns = attempts.windows(2).filter(|two| two[0].peer.is_ipv6() != two[1].peer.is_ipv6());
    measures.insert("turns", turns.count() as f64);
    if let Some(second) = attempts.get(1)
        && !is_answered(packets, first, second.at)
    {
        measures.insert("cad", milliseconds(first.at, second.at));
    }
    let mut gaps: Vec<f64> =
        attempts.windows(2).map(|two| milliseconds(two[0].at, two[1].at)).collect();
    gaps.sort_by(f64::total_cmp);
    if gaps.len() > 1 {
        measures.insert("between", gaps[gaps.len() / 2]);
    }
    let of = |quic| attempts.iter().find(|attempt| attempt.quic == quic);
    if let (Some(udp), Some(tcp)) = (of(true), of(false)) {
        measures.insert("udp-to-tcp", tcp.at.as_secs_f64() * 1e3 - udp.at.as_secs_f64() * 1e3);
    }
}

fn measure_answers(
    attempts: &[ObservedAttempt],
    packets: &[PacketInfo],
    name: &str,
    measures: &mut FetchMeasures,
) {
    let answered = |wanted: RecordType| {
        let is_it = |packet: &&PacketInfo| {
            matches!(&packet.content, PacketContent::Dns(dns) if dns.is_answer && dns.record_type == wanted
                && dns.records > 0 && is_query_for(&dns.name, name))
        };
        packets.iter().find(is_it).map(|packet| packet.at)
    };
    let (a, aaaa) = (answered(RecordType::A), answered(RecordType::AAAA));
    let missing =
        |answer: Option<Duration>, at: Duration| answer.is_none_or(|received| received > at);
    let ipv4 = attempts.iter().find(|attempt| attempt.peer.is_ipv4());
    // Without an answer, the address was remembered or was a hint.
    if let (Some(a), Some(ipv4)) = (a, ipv4)
        && a <= ipv4.at
        && missing(aaaa, ipv4.at)
    {
        measures.insert("rd", milliseconds(a, ipv4.at));
    }
    if let (Some(aaaa), Some(first)) = (aaaa, attempts.first())
        && aaaa <= first.at
        && missing(a, first.at)
    {
        measures.insert("waits-for-a", milliseconds(aaaa, first.at));
    }
}

/// Returns the first SYN or Initial to each address and port.
fn attempts(packets: &[PacketInfo]) -> Vec<ObservedAttempt> {
    let mut attempts: Vec<ObservedAttempt> = Vec::new();
    for packet in packets.iter().filter(|packet| packet.sent) {
        let (port, quic) = match packet.content {
            PacketContent::Tcp { flow, segment: SegmentKind::Syn } => (flow.remote, false),
            PacketContent::Quic { flow, packet_type: QuicPacketType::Initial } => {
                (flow.remote, true)
            }
            _ => continue,
        };
        let attempt = ObservedAttempt { at: packet.at, peer: packet.peer, port, quic };
        let to = |attempt: &ObservedAttempt| (attempt.peer, attempt.port, attempt.quic);
        if !attempts.iter().any(|other| to(other) == to(&attempt)) {
            attempts.push(attempt);
        }
    }
    attempts
}

/// Returns whether anything was received for an attempt before this time.
fn is_answered(packets: &[PacketInfo], attempt: &ObservedAttempt, before: Duration) -> bool {
    packets.iter().filter(|packet| !packet.sent && packet.at < before).any(|packet| {
        match packet.content {
            PacketContent::Tcp { flow, .. } => {
                !attempt.quic && packet.peer == attempt.peer && flow.remote == attempt.port
            }
            PacketContent::Quic { flow, .. } => {
                attempt.quic && packet.peer == attempt.peer && flow.remote == attempt.port
            }
            PacketContent::Unreachable { address, port, .. } => {
                address == attempt.peer && port == attempt.port
            }
            _ => false,
        }
    })
}

/// Returns all connections, and the first byte of the response.
fn connections(packets: &[PacketInfo]) -> (ObservedConnections, Option<FirstResponseByte>) {
    let mut connections = ObservedConnections::new();
    let mut response = None;
    for packet in packets {
        let (flow, quic) = match packet.content {
            PacketContent::Tcp { flow, .. } => (flow, false),
            PacketContent::Quic { flow, .. } => (flow, true),
            _ => continue,
        };
        let connection = connections.entry((packet.peer, flow, quic)).or_default();
        connection.add_packet(packet);
        if connection.flights == FlightState::Response && response.is_none() {
            response = Some(FirstResponseByte { at: packet.at, ipv6: packet.peer.is_ipv6(), quic });
        }
    }
    (connections, response)
}

/// The port of HTTP without TLS.
const PLAIN: u16 = 80;

impl ObservedConnection {
    fn add_packet(&mut self, packet: &PacketInfo) {
        self.started |= packet.sent
            && matches!(
                packet.content,
                PacketContent::Tcp { segment: SegmentKind::Syn, .. }
                    | PacketContent::Quic { packet_type: QuicPacketType::Initial, .. }
            );
        if !self.started {
            return;
        }
        match packet.content {
            PacketContent::Tcp { segment: SegmentKind::SynAck, .. } => {
                self.accepted |= !packet.sent
            }
            PacketContent::Tcp { segment: SegmentKind::Rst, .. } => {
                self.reset_by_client |= packet.sent
            }
            PacketContent::Tcp { flow, segment: SegmentKind::Data } => {
                self.sent_data |= packet.sent;
                self.flights = self.flights.next_state(packet.sent, flow.remote == PLAIN);
            }
            PacketContent::Quic { packet_type, .. } => self.datagram(packet.sent, packet_type),
            _ => {}
        }
    }

    fn datagram(&mut self, sent: bool, packet_type: QuicPacketType) {
        self.accepted |=
            !sent && matches!(packet_type, QuicPacketType::Handshake | QuicPacketType::Short);
        // A client whose handshake is complete sends packets with short headers, and early data
        // with its first ones.
        if sent && matches!(packet_type, QuicPacketType::Short | QuicPacketType::ZeroRtt) {
            self.sent_data = true;
            self.flights = self.flights.max(FlightState::ClientSecond);
        }
        if !sent
            && packet_type == QuicPacketType::Short
            && self.flights == FlightState::ClientSecond
        {
            self.flights = FlightState::Response;
        }
    }
}

impl FlightState {
    /// Returns the state after data from the client or the server.
    const fn next_state(self, sent: bool, plain: bool) -> Self {
        match (self, sent) {
            (Self::None, true) => Self::Client,
            (Self::Client, false) if plain => Self::Response,
            (Self::Client, false) => Self::Server,
            (Self::Server, true) => Self::ClientSecond,
            (Self::ClientSecond, false) => Self::Response,
            (same, _) => same,
        }
    }
}

fn milliseconds(from: Duration, to: Duration) -> f64 {
    (to.as_secs_f64() - from.as_secs_f64()) * 1e3
}

const fn percent(yes: bool) -> f64 {
    if yes { 100.0 } else { 0.0 }
}

// With an explicit path, because the fuzz target includes this file by its own path.
#[cfg(test)]
#[path = "measures/tests.rs"]
mod tests;
