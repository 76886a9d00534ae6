//! The name server: each record type is independently answered, delayed, refused or left
//! unanswered.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, Query, ResponseCode};
use hickory_proto::rr::rdata::svcb::{Alpn, IpHint, SVCB, SvcParamKey, SvcParamValue};
use hickory_proto::rr::rdata::{A, AAAA, HTTPS};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;

use crate::situation::live::{ClientsSetup, DelaySetup, DelayedTraffic, DnsAnswer, HttpsSetup};

/// The domain of the names under test.
pub(super) const DOMAIN: &str = "lab.test";
/// The first label of the alias target, below the name under test.
const ALIASED: &str = "alias";
/// The time to live of answers, in seconds.
const TIME_TO_LIVE: u32 = 60;

/// The configuration of the name server.
#[derive(Clone, Debug)]
pub(super) struct ZoneConfig {
    pub(super) setup: ClientsSetup,
    /// The addresses of every name under test, in order.
    pub(super) addresses: Vec<IpAddr>,
}

/// Answers queries until it is dropped.
pub(super) async fn serve(socket: UdpSocket, zone: ZoneConfig) {
    let (socket, zone) = (Arc::new(socket), Arc::new(zone));
    let mut buffer = [0; 2048];
    // Delayed answers end with the server.
    let mut waiting = tokio::task::JoinSet::new();
    loop {
        while waiting.try_join_next().is_some() {}
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        let Some((answer, late)) = zone.answer(&buffer[..length]) else { continue };
        let socket = socket.clone();
        waiting.spawn(async move { send(&socket, &answer, from, late).await });
    }
}

async fn send(socket: &UdpSocket, answer: &[u8], to: SocketAddr, late: Duration) {
    tokio::time::sleep(late).await;
    // If the client is gone, it does not need the answer.
    let _ = socket.send_to(answer, to).await;
}

impl DelaySetup {
    /// Returns the intended delay of answers of a type.
    pub(super) fn of_answer(self, record_type: RecordType) -> Duration {
        let is_late = match record_type {
            RecordType::A => self.what == DelayedTraffic::A,
            RecordType::AAAA => self.what == DelayedTraffic::Aaaa,
            RecordType::HTTPS => self.what == DelayedTraffic::Https,
            _ => false,
        };
        if is_late { self.by.0 } else { Duration::ZERO }
    }

    /// Returns the same as the client sees it, behind a link that delays every packet.
    pub(super) fn of_answer_at_client(self, record_type: RecordType) -> Duration {
        match self.what {
            DelayedTraffic::Everything => self.by.0,
            _ => self.of_answer(record_type),
        }
    }
}

impl ZoneConfig {
    /// Returns the answer to a query and its delay; `None` if it is to be left unanswered or is not
    /// a query.
    fn answer(&self, query: &[u8]) -> Option<(Vec<u8>, Duration)> {
        let query = Message::from_vec(query).ok()?;
        let [question] = query.queries.as_slice() else { return None };
        if query.metadata.message_type != MessageType::Query {
            return None;
        }
        let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
        answer.metadata.authoritative = true;
        answer.metadata.recursion_desired = query.metadata.recursion_desired;
        answer.metadata.recursion_available = true;
        answer.add_query(question.clone());
        let mut late = Duration::ZERO;
        if self.is_under_trial(question.name()) {
            let (answering, delay) = self.of_type(question.query_type());
            late = delay;
            match answering {
                DnsAnswer::Never => return None,
                DnsAnswer::ServerFailure => {
                    answer.metadata.response_code = ResponseCode::ServFail;
                }
                DnsAnswer::Refused => answer.metadata.response_code = ResponseCode::Refused,
                DnsAnswer::NoData => {}
                DnsAnswer::Records => {
                    answer.add_answers(self.records(question));
                }
            }
        } else {
            answer.metadata.response_code = ResponseCode::NXDomain;
        }
        Some((answer.to_vec().ok()?, late))
    }

    fn is_under_trial(&self, name: &Name) -> bool {
        let name = name.to_ascii().to_ascii_lowercase();
        name.trim_end_matches('.').strip_suffix(DOMAIN).is_some_and(|rest| rest.ends_with('.'))
    }

    /// Returns how queries of this type are answered, and the delay.
    fn of_type(&self, record_type: RecordType) -> (DnsAnswer, Duration) {
        let dns = &self.setup.dns;
        let answering = match record_type {
            RecordType::A => dns.a,
            RecordType::AAAA => dns.aaaa,
            RecordType::HTTPS => dns.https,
            _ => DnsAnswer::NoData,
        };
        (answering, self.setup.late.of_answer(record_type))
    }

    fn records(&self, question: &Query) -> Vec<Record> {
        let name = question.name();
        let record = |data| Record::from_rdata(name.clone(), TIME_TO_LIVE, data);
        let of_family = |address: &IpAddr| match (question.query_type(), *address) {
            (RecordType::A, IpAddr::V4(ip)) => Some(RData::A(A(ip))),
            (RecordType::AAAA, IpAddr::V6(ip)) => Some(RData::AAAA(AAAA(ip))),
            _ => None,
        };
        match (question.query_type(), &self.setup.dns.record) {
            (RecordType::HTTPS, Some(setup)) => {
                self.https(name, setup).map(RData::HTTPS).map(record).into_iter().collect()
            }
            _ => self.addresses.iter().filter_map(of_family).map(record).collect(),
        }
    }

    /// Returns the HTTPS record of a name, or the alias in its place.
    fn https(&self, name: &Name, setup: &HttpsSetup) -> Option<HTTPS> {
        let first = name.iter().next()?;
        if setup.alias && first != ALIASED.as_bytes() {
            let target = name.prepend_label(ALIASED).ok()?;
            return Some(HTTPS(SVCB::new(0, target, Vec::new())));
        }
        let mut parameters = Vec::new();
        if !setup.alpn.is_empty() {
            parameters.push((SvcParamKey::Alpn, SvcParamValue::Alpn(Alpn(setup.alpn.clone()))));
        }
        if setup.no_default_alpn {
            parameters.push((SvcParamKey::NoDefaultAlpn, SvcParamValue::NoDefaultAlpn));
        }
        if setup.hints {
            let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
            for address in &self.addresses {
                match address {
                    IpAddr::V4(ip) => ipv4.push(A(*ip)),
                    IpAddr::V6(ip) => ipv6.push(AAAA(*ip)),
                }
            }
            if !ipv4.is_empty() {
                parameters.push((SvcParamKey::Ipv4Hint, SvcParamValue::Ipv4Hint(IpHint(ipv4))));
            }
            if !ipv6.is_empty() {
                parameters.push((SvcParamKey::Ipv6Hint, SvcParamValue::Ipv6Hint(IpHint(ipv6))));
            }
        }
        Some(HTTPS(SVCB::new(1, Name::root(), parameters)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(keys: &str) -> ZoneConfig {
        let text = format!(
            "trials = 1\ngive_up = '1 s'\n[client]\ncommand = 'c {{url}}'\nversion = 'v'\n{keys}"
        );
        let addresses = ["2001:2:0:ffff::1", "198.19.0.1", "198.19.0.2"];
        ZoneConfig {
            setup: toml::from_str(&text).expect("a setup"),
            addresses: addresses.map(|text| text.parse().expect("an address")).into(),
        }
    }

    fn resolve(
        zone: &ZoneConfig,
        name: &str,
        record_type: RecordType,
    ) -> Option<(Message, Duration)> {
        let mut query = Message::query();
        query.add_query(Query::query(Name::from_ascii(name).unwrap(), record_type));
        let (answer, late) = zone.answer(&query.to_vec().unwrap())?;
        let answer = Message::from_vec(&answer).unwrap();
        assert_eq!(answer.metadata.id, query.metadata.id);
        Some((answer, late))
    }

    #[test]
    fn every_name_under_trial_has_the_addresses() {
        let zone = zone("");
        let count =
            |record_type| resolve(&zone, "T7.lab.test.", record_type).unwrap().0.answers.len();
        assert_eq!((count(RecordType::A), count(RecordType::AAAA)), (2, 1));
        assert_eq!((count(RecordType::HTTPS), count(RecordType::TXT)), (0, 0));
        for other in ["lab.test.", "clients2.google.com.", "evil-lab.test."] {
            let (answer, _) = resolve(&zone, other, RecordType::A).unwrap();
            assert_eq!(answer.metadata.response_code, ResponseCode::NXDomain, "{other}");
        }
    }

    #[test]
    fn one_type_is_late_or_fails_and_the_others_are_not() {
        let late = zone("[late]\nwhat = 'aaaa'\nby = '30 ms'");
        let by =
            |zone: &ZoneConfig, record_type| resolve(zone, "t.lab.test.", record_type).unwrap().1;
        assert_eq!(by(&late, RecordType::AAAA), Duration::from_millis(30));
        assert_eq!(by(&late, RecordType::A), Duration::ZERO);
        let silent = zone("[dns]\na = 'never'\naaaa = 'server-failure'");
        assert!(resolve(&silent, "t.lab.test.", RecordType::A).is_none());
        let (answer, _) = resolve(&silent, "t.lab.test.", RecordType::AAAA).unwrap();
        assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);
    }

    #[test]
    fn an_alias_leads_to_the_record() {
        let zone = zone(
            "[dns.record]\nalpn = ['h3', 'h2']\nno_default_alpn = true\nhints = true\nalias = true",
        );
        let first = |name: &str| {
            let (answer, _) = resolve(&zone, name, RecordType::HTTPS).unwrap();
            match answer.answers[0].data.clone() {
                RData::HTTPS(HTTPS(record)) => record,
                other => panic!("{other}"),
            }
        };
        let alias = first("t.lab.test.");
        assert_eq!(
            (alias.svc_priority, alias.target_name.to_ascii().as_str()),
            (0, "alias.t.lab.test.")
        );
        let record = first("alias.t.lab.test.");
        let keys: Vec<SvcParamKey> = record.svc_params.iter().map(|(key, _)| *key).collect();
        use SvcParamKey::{Alpn, Ipv4Hint, Ipv6Hint, NoDefaultAlpn};
        assert_eq!((record.svc_priority, keys), (1, vec![Alpn, NoDefaultAlpn, Ipv4Hint, Ipv6Hint]));
    }

    proptest::proptest! {
        #[test]
        fn no_query_makes_it_panic(bytes: Vec<u8>) {
            let _ = zone("").answer(&bytes);
        }
    }
}
