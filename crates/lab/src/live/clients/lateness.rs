//! Determines whether the machine kept up: how much later than intended the name server's answers
//! were sent.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hickory_proto::rr::RecordType;

use super::packet::{PacketContent, PacketInfo};

/// Returns the lateness of the latest answer in milliseconds; `intended_delay` returns the intended delay of
/// an answer of a type. Answers are matched with queries in the order of both.
pub(super) fn max_lateness(
    packets: &[PacketInfo],
    intended_delay: impl Fn(RecordType) -> Duration,
) -> Option<f64> {
    let mut sent: BTreeMap<(&str, u16), VecDeque<Duration>> = BTreeMap::new();
    let mut worst: Option<f64> = None;
    for packet in packets {
        let PacketContent::Dns(dns) = &packet.content else { continue };
        let queries = sent.entry((&dns.name, dns.record_type.into())).or_default();
        if !dns.is_answer {
            queries.push_back(packet.at);
        } else if let Some(query) = queries.pop_front() {
            let elapsed = packet.at.as_secs_f64() - query.as_secs_f64();
            let excess = (elapsed - intended_delay(dns.record_type).as_secs_f64()) * 1e3;
            worst = Some(worst.map_or(excess, |worst| worst.max(excess)));
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::super::packet::DnsMessage;
    use super::*;

    fn dns(at: u64, is_answer: bool, record_type: RecordType) -> PacketInfo {
        let name = "t1.lab.test".to_owned();
        let content =
            PacketContent::Dns(DnsMessage { is_answer, name, record_type, code: 0, records: 1 });
        let peer = std::net::Ipv4Addr::LOCALHOST.into();
        PacketInfo { at: Duration::from_millis(at), sent: !is_answer, peer, length: 60, content }
    }

    #[test]
    fn only_answers_after_their_intended_delay_are_late() {
        let (a, aaaa) = (RecordType::A, RecordType::AAAA);
        let intended_delay =
            |of: RecordType| Duration::from_millis(if of == RecordType::AAAA { 400 } else { 0 });
        let packets = [
            dns(0, false, a),
            dns(1, false, aaaa),
            dns(3, true, a),
            // The same query again, from another part of the same process.
            dns(10, false, aaaa),
            dns(402, true, aaaa),
            dns(415, true, aaaa),
        ];
        let worst = max_lateness(&packets, intended_delay).expect("answers");
        assert!((worst - 5.0).abs() < 1e-6, "{worst}");
        assert_eq!(max_lateness(&packets[..2], intended_delay), None);
        // An answer without a query is ignored.
        assert_eq!(max_lateness(&packets[4..5], intended_delay), None);
    }
}
