//! Determines whether the machine kept up: how much later than intended the name server's answers
//! were sent.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hickory_proto::rr::RecordType;

use super::packet::{Content, PacketInfo};

/// Returns the lateness of the latest answer in milliseconds; `late` returns the intended delay of
/// an answer of a type. Answers are matched with queries in the order of both.
pub(super) fn behind(packets: &[PacketInfo], late: impl Fn(RecordType) -> Duration) -> Option<f64> {
    let mut sent: BTreeMap<(&str, u16), VecDeque<Duration>> = BTreeMap::new();
    let mut worst: Option<f64> = None;
    for packet in packets {
        let Content::Dns(dns) = &packet.content else { continue };
        let queries = sent.entry((&dns.name, dns.record_type.into())).or_default();
        if !dns.is_answer {
            queries.push_back(packet.at);
        } else if let Some(query) = queries.pop_front() {
            let elapsed = packet.at.as_secs_f64() - query.as_secs_f64();
            let over = (elapsed - late(dns.record_type).as_secs_f64()) * 1e3;
            worst = Some(worst.map_or(over, |worst| worst.max(over)));
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::super::packet::Dns;
    use super::*;

    fn dns(at: u64, is_answer: bool, record_type: RecordType) -> PacketInfo {
        let name = "t1.lab.test".to_owned();
        let content = Content::Dns(Dns { is_answer, name, record_type, code: 0, records: 1 });
        let peer = std::net::Ipv4Addr::LOCALHOST.into();
        PacketInfo { at: Duration::from_millis(at), sent: !is_answer, peer, length: 60, content }
    }

    #[test]
    fn only_late_answers_count_as_behind() {
        let (a, aaaa) = (RecordType::A, RecordType::AAAA);
        let late =
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
        let worst = behind(&packets, late).expect("answers");
        assert!((worst - 5.0).abs() < 1e-6, "{worst}");
        assert_eq!(behind(&packets[..2], late), None);
        // An answer without a query is ignored.
        assert_eq!(behind(&packets[4..5], late), None);
    }
}
