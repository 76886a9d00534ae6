//! DNS queries of programs, answered with addresses that represent names.

use std::net::{Ipv4Addr, Ipv6Addr};

use eyas::race::dns::{DnsFailure, RecordType, Records};
use eyas::race::target::Host;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{DNSClass, RData, Record, RecordType as Kind};

/// How long a program may keep an answer, in seconds. A name keeps its addresses for longer.
const TIME_TO_LIVE: u32 = 60;
/// The UDP payload size that is announced (RFC 9715 §3.1).
const UDP_PAYLOAD: u16 = 1400;

/// How to handle a message.
#[derive(Debug)]
pub enum Incoming {
    /// Look up the name of this question, and answer it.
    Question(Box<Question>),
    /// Send this answer.
    Answer(Vec<u8>),
    /// Ignore it, since it is not a query.
    Ignored,
}

/// A question about a name.
#[derive(Debug)]
pub struct Question {
    message: Message,
    kind: Kind,
    name: String,
}

/// What is known about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// It has addresses, and is represented by these.
    Addresses(Ipv4Addr, Ipv6Addr),
    /// It has none.
    NoAddress,
    /// DNS does not know it.
    NoSuchName,
    /// DNS does not answer.
    Unknown,
}

/// Parses a message.
pub fn read(bytes: &[u8]) -> Incoming {
    let Ok(message) = Message::from_vec(bytes) else { return Incoming::Ignored };
    if message.metadata.message_type != MessageType::Query {
        return Incoming::Ignored;
    }
    let [query] = &message.queries[..] else {
        return answer(&message, ResponseCode::FormErr, None);
    };
    if message.metadata.op_code != OpCode::Query || query.query_class() != DNSClass::IN {
        return answer(&message, ResponseCode::NotImp, None);
    }
    let kind = query.query_type();
    if !matches!(kind, Kind::A | Kind::AAAA | Kind::HTTPS | Kind::SVCB) {
        return answer(&message, ResponseCode::NotImp, None);
    }
    match Host::parse(query.name().to_ascii().trim_end_matches('.')) {
        Ok(host) if host.is_localhost() => {
            let own = (Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
            answer(&message, ResponseCode::NoError, record_data(kind, own))
        }
        Ok(Host::Name(name)) => Incoming::Question(Box::new(Question { kind, name, message })),
        Ok(Host::Literal(..)) | Err(_) => answer(&message, ResponseCode::NXDomain, None),
    }
}

impl Question {
    /// Returns the name in lower case, without a trailing dot.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the answer, by what is known about the name.
    pub fn answer(&self, known: Existence) -> Option<Vec<u8>> {
        let (code, data) = match known {
            Existence::Addresses(v4, v6) => {
                (ResponseCode::NoError, record_data(self.kind, (v4, v6)))
            }
            Existence::NoAddress => (ResponseCode::NoError, None),
            Existence::NoSuchName => (ResponseCode::NXDomain, None),
            Existence::Unknown => (ResponseCode::ServFail, None),
        };
        response(&self.message, code, data)
    }
}

fn record_data(kind: Kind, (v4, v6): (Ipv4Addr, Ipv6Addr)) -> Option<RData> {
    match kind {
        Kind::A => Some(RData::A(A(v4))),
        Kind::AAAA => Some(RData::AAAA(AAAA(v6))),
        _ => None,
    }
}

fn answer(to: &Message, code: ResponseCode, data: Option<RData>) -> Incoming {
    response(to, code, data).map_or(Incoming::Ignored, Incoming::Answer)
}

fn response(to: &Message, code: ResponseCode, data: Option<RData>) -> Option<Vec<u8>> {
    let mut response = Message::response(to.metadata.id, to.metadata.op_code);
    response.metadata.recursion_desired = to.metadata.recursion_desired;
    response.metadata.recursion_available = true;
    response.metadata.response_code = code;
    response.add_queries(to.queries.iter().cloned());
    if let (Some(data), [query]) = (data, &to.queries[..]) {
        response.add_answer(Record::from_rdata(query.name().clone(), TIME_TO_LIVE, data));
    }
    if to.edns.is_some() {
        let mut edns = Edns::new();
        edns.set_max_payload(UDP_PAYLOAD);
        response.set_edns(edns);
    }
    response.to_vec().ok()
}

/// Returns whether the answer for one family has addresses, or why that is unknown.
pub(super) fn has_addresses(records: Result<Records, DnsFailure>) -> Result<bool, DnsFailure> {
    match records {
        Ok(Records::A(some)) => Ok(!some.is_empty()),
        Ok(Records::Aaaa(some)) => Ok(!some.is_empty()),
        Ok(Records::Https(_)) | Err(DnsFailure::NoData) => Ok(false),
        Err(why) => Err(why),
    }
}

/// The record types to query.
pub(super) const FAMILIES: [RecordType; 2] = [RecordType::Aaaa, RecordType::A];

#[cfg(test)]
mod tests {
    use hickory_proto::op::Query;
    use hickory_proto::rr::Name;

    use super::*;

    const KNOWN: Existence =
        Existence::Addresses(Ipv4Addr::new(198, 19, 1, 0), Ipv6Addr::LOCALHOST);

    fn query(name: &str, kind: Kind) -> Vec<u8> {
        let mut message = Message::query();
        message.metadata.id = 7;
        message.add_query(Query::query(Name::from_ascii(name).expect("a name"), kind));
        message.set_edns(Edns::new());
        message.to_vec().expect("a message")
    }

    fn read_answer(bytes: &[u8]) -> (ResponseCode, Vec<RData>) {
        let message = Message::from_vec(bytes).expect("a message");
        assert_eq!(
            (message.metadata.id, message.metadata.message_type),
            (7, MessageType::Response)
        );
        assert!(message.edns.is_some() && message.queries.len() == 1);
        (
            message.metadata.response_code,
            message.answers.iter().map(|one| one.data.clone()).collect(),
        )
    }

    fn question(name: &str, kind: Kind) -> Box<Question> {
        match read(&query(name, kind)) {
            Incoming::Question(question) => question,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_answered_from_its_known_addresses() {
        let v4 = question("A.example.", Kind::A);
        assert_eq!(v4.name(), "a.example");
        let answer =
            |question: &Question, known| read_answer(&question.answer(known).expect("fits"));
        let address = RData::A(A(Ipv4Addr::new(198, 19, 1, 0)));
        assert_eq!(answer(&v4, KNOWN), (ResponseCode::NoError, vec![address]));
        let v6 = question("a.example.", Kind::AAAA);
        let address = RData::AAAA(AAAA(Ipv6Addr::LOCALHOST));
        assert_eq!(answer(&v6, KNOWN), (ResponseCode::NoError, vec![address]));
        let https = question("a.example.", Kind::HTTPS);
        assert_eq!(answer(&https, KNOWN), (ResponseCode::NoError, vec![]));
        assert_eq!(answer(&v4, Existence::NoAddress), (ResponseCode::NoError, vec![]));
        assert_eq!(answer(&v4, Existence::NoSuchName), (ResponseCode::NXDomain, vec![]));
        assert_eq!(answer(&v4, Existence::Unknown), (ResponseCode::ServFail, vec![]));
    }

    #[test]
    fn other_queries_are_answered_at_once() {
        let answer = |name, kind| match read(&query(name, kind)) {
            Incoming::Answer(answer) => read_answer(&answer),
            other => panic!("{other:?}"),
        };
        let own = RData::A(A(Ipv4Addr::LOCALHOST));
        assert_eq!(answer("localhost.", Kind::A), (ResponseCode::NoError, vec![own]));
        assert_eq!(answer("example.", Kind::MX), (ResponseCode::NotImp, vec![]));
        assert!(matches!(read(&[7; 40]), Incoming::Ignored));
        let mut response = query("a.example.", Kind::A);
        response[2] |= 0x80;
        assert!(matches!(read(&response), Incoming::Ignored), "a response is not answered");
    }
}
