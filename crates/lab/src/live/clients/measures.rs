//! Derives the measures of a fetch from its packets, and from nothing else: no client is queried.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::rr::RecordType;

use super::seen::{Flow, Form, Seen, Segment, What};

/// The measures of a fetch, by the names of their columns.
pub(super) type Measures = BTreeMap<&'static str, f64>;

/// The first packet to an address and port over one protocol.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    at: Duration,
    peer: IpAddr,
    port: u16,
    quic: bool,
}

/// Connections, by the peer, the ports, and whether it is QUIC.
type Courses = BTreeMap<(IpAddr, Flow, bool), Course>;

/// A connection, from its own port to that of the server.
#[derive(Debug, Default)]
struct Course {
    /// Whether its start is among the packets: a connection of an earlier fetch does not count.
    begun: bool,
    accepted: bool,
    reset_by_client: bool,
    /// Whether the client has sent data.
    asked: bool,
    flights: Flights,
}

/// Whose data arrived in turn, up to the first byte of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Flights {
    #[default]
    None,
    /// The request, or the ClientHello.
    Client,
    /// The reply to the ClientHello.
    Server,
    /// The end of the handshake, with or before the request.
    ClientAgain,
    Response,
}

/// The first byte of the response.
#[derive(Clone, Copy, Debug)]
struct First {
    at: Duration,
    six: bool,
    quic: bool,
}

/// Returns the start of time: the first query for the name, or the first attempt of a client that
/// queries later, or not at all because it remembers.
pub(super) fn beginning(seen: &[Seen], name: &str) -> Option<Duration> {
    let query = |seen: &&Seen| {
        seen.sent
            && matches!(&seen.what, What::Dns(dns) if !dns.is_answer && is_of(&dns.name, name))
    };
    let query = seen.iter().find(query).map(|seen| seen.at);
    let attempt = attempts(seen).first().map(|attempt| attempt.at);
    query.into_iter().chain(attempt).min()
}

/// Returns which addresses are queried first.
fn first_address_query(seen: &[Seen], name: &str) -> Option<RecordType> {
    seen.iter().find_map(|seen| match &seen.what {
        What::Dns(dns) if seen.sent && !dns.is_answer && is_of(&dns.name, name) => {
            Some(dns.record_type).filter(|asked| asked.is_ip_addr())
        }
        _ => None,
    })
}

/// Returns whether a packet belongs to a fetch of this name, which queries for other names and
/// their answers do not.
pub(super) fn belongs(seen: &Seen, name: &str) -> bool {
    match &seen.what {
        What::Dns(dns) => is_of(&dns.name, name),
        _ => true,
    }
}

/// Returns whether a query is for this name or for one below it, as for the HTTPS record of another
/// port.
fn is_of(asked: &str, name: &str) -> bool {
    asked.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Computes the measures of one fetch of this name. `ended` is when the client's process ended.
pub(super) fn measure(seen: &[Seen], name: &str, ended: Option<Duration>) -> Measures {
    let mut measures = Measures::new();
    let attempts = attempts(seen);
    let (courses, response) = courses(seen);
    measures.insert("packets", seen.len() as f64);
    measures.insert("bytes", seen.iter().map(|seen| seen.length).sum::<usize>() as f64);
    measures.insert("failed", percent(response.is_none()));
    let wasted = courses.values().filter(|course| course.accepted && !course.asked);
    measures.insert("wasted", wasted.count() as f64);
    let killed = courses.values().filter(|course| is_killed(course));
    measures.insert("killed", killed.count() as f64);
    let Some(begin) = beginning(seen, name) else { return measures };
    if let Some(first) = response {
        measures.insert("byte", milliseconds(begin, first.at));
        measures.insert("won-6", percent(first.six));
        measures.insert("won-quic", percent(first.quic));
        if let Some(ended) = ended {
            measures.insert("linger", milliseconds(first.at, ended));
        }
    }
    if let Some(asked) = first_address_query(seen, name) {
        measures.insert("aaaa-first", percent(asked == RecordType::AAAA));
    }
    of_attempts(&attempts, seen, begin, &mut measures);
    of_answers(&attempts, seen, name, &mut measures);
    measures
}

/// Returns whether it was abandoned before it was accepted, which happened later.
fn is_killed(course: &Course) -> bool {
    course.accepted && course.reset_by_client && !course.asked
}

fn of_attempts(attempts: &[Attempt], seen: &[Seen], begin: Duration, measures: &mut Measures) {
    let count = |six| attempts.iter().filter(|one| one.peer.is_ipv6() == six).count() as f64;
    measures.insert("addresses-6", count(true));
    measures.insert("addresses-4", count(false));
    let Some(first) = attempts.first() else { return };
    measures.insert("first", milliseconds(begin, first.at));
    measures.insert("first-6", percent(first.peer.is_ipv6()));
    let turns = attempts.windows(2).filter(|two| two[0].peer.is_ipv6() != two[1].peer.is_ipv6());
    measures.insert("turns", turns.count() as f64);
    if let Some(second) = attempts.get(1)
        && !is_answered(seen, first, second.at)
    {
        measures.insert("cad", milliseconds(first.at, second.at));
    }
    let mut gaps: Vec<f64> =
        attempts.windows(2).map(|two| milliseconds(two[0].at, two[1].at)).collect();
    gaps.sort_by(f64::total_cmp);
    if gaps.len() > 1 {
        measures.insert("between", gaps[gaps.len() / 2]);
    }
    let of = |quic| attempts.iter().find(|one| one.quic == quic);
    if let (Some(udp), Some(tcp)) = (of(true), of(false)) {
        measures.insert("udp-to-tcp", tcp.at.as_secs_f64() * 1e3 - udp.at.as_secs_f64() * 1e3);
    }
}

fn of_answers(attempts: &[Attempt], seen: &[Seen], name: &str, measures: &mut Measures) {
    let answered = |wanted: RecordType| {
        let is_it = |seen: &&Seen| {
            matches!(&seen.what, What::Dns(dns) if dns.is_answer && dns.record_type == wanted
                && dns.records > 0 && is_of(&dns.name, name))
        };
        seen.iter().find(is_it).map(|seen| seen.at)
    };
    let (a, aaaa) = (answered(RecordType::A), answered(RecordType::AAAA));
    let missing = |answer: Option<Duration>, at: Duration| answer.is_none_or(|came| came > at);
    let four = attempts.iter().find(|attempt| attempt.peer.is_ipv4());
    // Without an answer, the address was remembered or was a hint.
    if let (Some(a), Some(four)) = (a, four)
        && a <= four.at
        && missing(aaaa, four.at)
    {
        measures.insert("rd", milliseconds(a, four.at));
    }
    if let (Some(aaaa), Some(first)) = (aaaa, attempts.first())
        && aaaa <= first.at
        && missing(a, first.at)
    {
        measures.insert("waits-for-a", milliseconds(aaaa, first.at));
    }
}

/// Returns the first SYN or Initial to each address and port.
fn attempts(seen: &[Seen]) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for packet in seen.iter().filter(|packet| packet.sent) {
        let (port, quic) = match packet.what {
            What::Tcp { flow, segment: Segment::Syn } => (flow.remote, false),
            What::Quic { flow, form: Form::Initial } => (flow.remote, true),
            _ => continue,
        };
        let attempt = Attempt { at: packet.at, peer: packet.peer, port, quic };
        let to = |attempt: &Attempt| (attempt.peer, attempt.port, attempt.quic);
        if !attempts.iter().any(|other| to(other) == to(&attempt)) {
            attempts.push(attempt);
        }
    }
    attempts
}

/// Returns whether anything was received for an attempt before this time.
fn is_answered(seen: &[Seen], attempt: &Attempt, before: Duration) -> bool {
    seen.iter().filter(|packet| !packet.sent && packet.at < before).any(|packet| {
        match packet.what {
            What::Tcp { flow, .. } => {
                !attempt.quic && packet.peer == attempt.peer && flow.remote == attempt.port
            }
            What::Quic { flow, .. } => {
                attempt.quic && packet.peer == attempt.peer && flow.remote == attempt.port
            }
            What::Unreachable { address, port, .. } => {
                address == attempt.peer && port == attempt.port
            }
            _ => false,
        }
    })
}

/// Returns all connections, and the first byte of the response.
fn courses(seen: &[Seen]) -> (Courses, Option<First>) {
    let mut courses = Courses::new();
    let mut response = None;
    for packet in seen {
        let (flow, quic) = match packet.what {
            What::Tcp { flow, .. } => (flow, false),
            What::Quic { flow, .. } => (flow, true),
            _ => continue,
        };
        let course = courses.entry((packet.peer, flow, quic)).or_default();
        course.take(packet);
        if course.flights == Flights::Response && response.is_none() {
            response = Some(First { at: packet.at, six: packet.peer.is_ipv6(), quic });
        }
    }
    (courses, response)
}

/// The port of HTTP without TLS.
const PLAIN: u16 = 80;

impl Course {
    fn take(&mut self, packet: &Seen) {
        self.begun |= packet.sent
            && matches!(
                packet.what,
                What::Tcp { segment: Segment::Syn, .. } | What::Quic { form: Form::Initial, .. }
            );
        if !self.begun {
            return;
        }
        match packet.what {
            What::Tcp { segment: Segment::SynAck, .. } => self.accepted |= !packet.sent,
            What::Tcp { segment: Segment::Rst, .. } => self.reset_by_client |= packet.sent,
            What::Tcp { flow, segment: Segment::Data } => {
                self.asked |= packet.sent;
                self.flights = self.flights.after(packet.sent, flow.remote == PLAIN);
            }
            What::Quic { form, .. } => self.datagram(packet.sent, form),
            _ => {}
        }
    }

    fn datagram(&mut self, sent: bool, form: Form) {
        self.accepted |= !sent && matches!(form, Form::Handshake | Form::Short);
        // A client whose handshake is complete sends packets with short headers, and early data
        // with its first ones.
        if sent && matches!(form, Form::Short | Form::ZeroRtt) {
            self.asked = true;
            self.flights = self.flights.max(Flights::ClientAgain);
        }
        if !sent && form == Form::Short && self.flights == Flights::ClientAgain {
            self.flights = Flights::Response;
        }
    }
}

impl Flights {
    /// Returns the state after data from the client or the server.
    const fn after(self, sent: bool, plain: bool) -> Self {
        match (self, sent) {
            (Self::None, true) => Self::Client,
            (Self::Client, false) if plain => Self::Response,
            (Self::Client, false) => Self::Server,
            (Self::Server, true) => Self::ClientAgain,
            (Self::ClientAgain, false) => Self::Response,
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
