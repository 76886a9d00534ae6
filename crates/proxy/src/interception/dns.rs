//! DNS queries of programs, answered with addresses that represent names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use eyas::race::dns::{DnsFailure, DnsRecords, RecordType};
use eyas::race::target::TargetHost;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, PTR};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType as Kind};

/// How long a program may keep an answer, in seconds. A name keeps its addresses for longer.
const TIME_TO_LIVE: u32 = 60;
/// The UDP payload size that is announced (RFC 9715 §3.1).
const UDP_PAYLOAD: u16 = 1400;
/// The UDP payload size of a client that announces none (RFC 1035 §4.2.1), and the smallest (RFC 6891 §6.2.3).
const SMALLEST_PAYLOAD: usize = 512;

/// How to handle a message.
#[derive(Debug)]
pub enum IncomingMessage {
    /// Look up the name of this question, and answer it.
    Question(Box<AddressQuestion>),
    /// Pass this question on, and answer it as it is answered.
    Forward(Box<ForwardedQuestion>),
    /// Find the name that this address represents, and answer with that; pass the question on if there is none.
    Reverse(IpAddr, Box<ForwardedQuestion>),
    /// Send this answer.
    Answer(Vec<u8>),
    /// Ignore it, since it is not a query.
    Ignored,
}

/// A question about a name.
#[derive(Debug)]
pub struct AddressQuestion {
    message: Message,
    kind: Kind,
    name: String,
}

/// A question that is not about addresses.
#[derive(Debug)]
pub struct ForwardedQuestion(Message);

/// What is known about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameExistence {
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
pub fn read(bytes: &[u8]) -> IncomingMessage {
    let Ok(message) = Message::from_vec(bytes) else { return IncomingMessage::Ignored };
    if message.metadata.message_type != MessageType::Query {
        return IncomingMessage::Ignored;
    }
    let [query] = &message.queries[..] else {
        return answer(&message, ResponseCode::FormErr, None);
    };
    if message.metadata.op_code != OpCode::Query || query.query_class() != DNSClass::IN {
        return answer(&message, ResponseCode::NotImp, None);
    }
    let kind = query.query_type();
    match kind {
        Kind::A | Kind::AAAA | Kind::HTTPS | Kind::SVCB => {}
        // Neither a transfer nor one message (RFC 5936 §2, RFC 8945 §4.2).
        Kind::AXFR | Kind::IXFR | Kind::OPT | Kind::TSIG => {
            return answer(&message, ResponseCode::NotImp, None);
        }
        Kind::PTR => {
            let address = reversed(query.name());
            let forwarded = Box::new(ForwardedQuestion(message));
            return match address {
                Some(address) => IncomingMessage::Reverse(address, forwarded),
                None => IncomingMessage::Forward(forwarded),
            };
        }
        _ => return IncomingMessage::Forward(Box::new(ForwardedQuestion(message))),
    }
    match TargetHost::parse(query.name().to_ascii().trim_end_matches('.')) {
        Ok(host) if host.is_localhost() => {
            let own = (Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
            answer(&message, ResponseCode::NoError, record_data(kind, own))
        }
        Ok(TargetHost::Name(name)) => {
            IncomingMessage::Question(Box::new(AddressQuestion { kind, name, message }))
        }
        Ok(TargetHost::Literal(..)) | Err(_) => answer(&message, ResponseCode::NXDomain, None),
    }
}

impl AddressQuestion {
    /// Returns the name in lower case, without a trailing dot.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the answer, by what is known about the name.
    pub fn answer(&self, known: NameExistence) -> Option<Vec<u8>> {
        let (code, data) = match known {
            NameExistence::Addresses(v4, v6) => {
                (ResponseCode::NoError, record_data(self.kind, (v4, v6)))
            }
            NameExistence::NoAddress => (ResponseCode::NoError, None),
            NameExistence::NoSuchName => (ResponseCode::NXDomain, None),
            NameExistence::Unknown => (ResponseCode::ServFail, None),
        };
        response(&self.message, code, data)
    }
}

impl ForwardedQuestion {
    /// Returns the query to pass on.
    pub fn query(&self) -> Option<Vec<u8>> {
        self.0.to_vec().ok()
    }

    /// Returns the answer to the program from the answer to the query, or a failure if there is none.
    pub fn answer(&self, answer: Option<&[u8]>) -> Option<Vec<u8>> {
        let Some(answer) = answer else { return response(&self.0, ResponseCode::ServFail, None) };
        let Ok(mut message) = Message::from_vec(answer) else {
            // It is of types that only the program understands.
            return Some([&self.0.metadata.id.to_be_bytes(), answer.get(2..)?].concat());
        };
        message.metadata.id = self.0.metadata.id;
        message.metadata.recursion_available = true;
        // As the program wrote it: some compare it octet by octet.
        message.queries.clone_from(&self.0.queries);
        // Addresses of other hosts would lead past their names, by which the proxy connects.
        message.additionals.retain(|one| !matches!(one.data, RData::A(_) | RData::AAAA(_)));
        message.edns = self.0.edns.as_ref().map(|asked| {
            let mut edns = own_edns();
            edns.set_dnssec_ok(asked.flags().dnssec_ok);
            edns
        });
        message.to_vec().ok()
    }

    /// Returns the answer for an address that represents this name.
    pub fn answer_name(&self, name: &str) -> Option<Vec<u8>> {
        let name = Name::from_ascii(format!("{name}.")).ok()?;
        response(&self.0, ResponseCode::NoError, Some(RData::PTR(PTR(name))))
    }

    /// Returns the answer if there is nobody to ask.
    pub fn refuse(&self) -> Option<Vec<u8>> {
        response(&self.0, ResponseCode::NotImp, None)
    }
}

/// Returns the answer to this query as it fits into a datagram for the program: if it is too long, only its head, so
/// that the program asks over TCP (RFC 2181 §9).
pub fn fitted(query: &[u8], answer: Vec<u8>) -> Vec<u8> {
    let Ok(asked) = Message::from_vec(query) else { return answer };
    let announced = asked.edns.as_ref().map_or(0, |edns| usize::from(edns.max_payload()));
    if answer.len() <= announced.max(SMALLEST_PAYLOAD) {
        return answer;
    }
    let Some(head) = answer.first_chunk::<4>() else { return answer };
    let mut short = Message::response(asked.metadata.id, OpCode::Query);
    short.add_queries(asked.queries.iter().cloned());
    if asked.edns.is_some() {
        short.set_edns(own_edns());
    }
    let Ok(mut short) = short.to_vec() else { return answer };
    // The same flags, and the one for truncation.
    short[2..4].copy_from_slice(&[head[2] | 0x02, head[3]]);
    short
}

/// Returns the address that a name below `in-addr.arpa` or `ip6.arpa` is about, if it is a whole one.
fn reversed(name: &Name) -> Option<IpAddr> {
    let network = name.parse_arpa_name().ok()?;
    (network.prefix_len() == network.max_prefix_len()).then(|| network.addr())
}

fn own_edns() -> Edns {
    let mut edns = Edns::new();
    edns.set_max_payload(UDP_PAYLOAD);
    edns
}

fn record_data(kind: Kind, (v4, v6): (Ipv4Addr, Ipv6Addr)) -> Option<RData> {
    match kind {
        Kind::A => Some(RData::A(A(v4))),
        Kind::AAAA => Some(RData::AAAA(AAAA(v6))),
        _ => None,
    }
}

fn answer(to: &Message, code: ResponseCode, data: Option<RData>) -> IncomingMessage {
    response(to, code, data).map_or(IncomingMessage::Ignored, IncomingMessage::Answer)
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
        response.set_edns(own_edns());
    }
    response.to_vec().ok()
}

/// Returns whether the answer for one family has addresses, or why that is unknown.
pub(super) fn has_addresses(records: Result<DnsRecords, DnsFailure>) -> Result<bool, DnsFailure> {
    match records {
        Ok(DnsRecords::A(some)) => Ok(!some.is_empty()),
        Ok(DnsRecords::Aaaa(some)) => Ok(!some.is_empty()),
        Ok(DnsRecords::Https(_)) | Err(DnsFailure::NoData) => Ok(false),
        Err(why) => Err(why),
    }
}

/// The record types to query.
pub(super) const FAMILIES: [RecordType; 2] = [RecordType::Aaaa, RecordType::A];

#[cfg(test)]
mod tests {
    use hickory_proto::op::Query;
    use hickory_proto::rr::rdata::{MX, TXT};

    use super::*;

    const KNOWN: NameExistence =
        NameExistence::Addresses(Ipv4Addr::new(198, 19, 1, 0), Ipv6Addr::LOCALHOST);

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

    fn question(name: &str, kind: Kind) -> Box<AddressQuestion> {
        match read(&query(name, kind)) {
            IncomingMessage::Question(question) => question,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_answered_from_its_known_addresses() {
        let v4 = question("A.example.", Kind::A);
        assert_eq!(v4.name(), "a.example");
        let answer =
            |question: &AddressQuestion, known| read_answer(&question.answer(known).expect("fits"));
        let address = RData::A(A(Ipv4Addr::new(198, 19, 1, 0)));
        assert_eq!(answer(&v4, KNOWN), (ResponseCode::NoError, vec![address]));
        let v6 = question("a.example.", Kind::AAAA);
        let address = RData::AAAA(AAAA(Ipv6Addr::LOCALHOST));
        assert_eq!(answer(&v6, KNOWN), (ResponseCode::NoError, vec![address]));
        let https = question("a.example.", Kind::HTTPS);
        assert_eq!(answer(&https, KNOWN), (ResponseCode::NoError, vec![]));
        assert_eq!(answer(&v4, NameExistence::NoAddress), (ResponseCode::NoError, vec![]));
        assert_eq!(answer(&v4, NameExistence::NoSuchName), (ResponseCode::NXDomain, vec![]));
        assert_eq!(answer(&v4, NameExistence::Unknown), (ResponseCode::ServFail, vec![]));
    }

    #[test]
    fn other_queries_are_answered_at_once() {
        let answer = |name, kind| match read(&query(name, kind)) {
            IncomingMessage::Answer(answer) => read_answer(&answer),
            other => panic!("{other:?}"),
        };
        let own = RData::A(A(Ipv4Addr::LOCALHOST));
        assert_eq!(answer("localhost.", Kind::A), (ResponseCode::NoError, vec![own]));
        assert_eq!(answer("example.", Kind::AXFR), (ResponseCode::NotImp, vec![]));
        assert!(matches!(read(&[7; 40]), IncomingMessage::Ignored));
        let mut response = query("a.example.", Kind::A);
        response[2] |= 0x80;
        assert!(matches!(read(&response), IncomingMessage::Ignored), "a response is not answered");
    }

    fn forwarded(name: &str, kind: Kind) -> Box<ForwardedQuestion> {
        match read(&query(name, kind)) {
            IncomingMessage::Forward(forwarded) => forwarded,
            other => panic!("{other:?}"),
        }
    }

    /// An answer of a name server to this question.
    fn answered(asked: &ForwardedQuestion, data: Vec<RData>) -> Vec<u8> {
        let mut answer = Message::response(99, OpCode::Query);
        let query = &asked.0.queries[0];
        answer.add_query(query.clone());
        let record = |data| Record::from_rdata(query.name().clone(), 60, data);
        answer.add_answers(data.into_iter().map(record));
        answer.add_additional(record(RData::A(A(Ipv4Addr::new(192, 0, 2, 1)))));
        answer.to_vec().expect("a message")
    }

    #[test]
    fn other_types_are_passed_on() {
        use Kind::{ANY, CAA, CNAME, DS, MX as Mx, NAPTR, NS, SOA, SRV, SSHFP, TLSA, TXT as Txt};
        for kind in [ANY, CAA, CNAME, DS, Mx, NAPTR, NS, SOA, SRV, SSHFP, TLSA, Txt] {
            let asked = forwarded("Example.", kind);
            let passed_on = Message::from_vec(&asked.query().expect("a query")).expect("a query");
            assert_eq!(passed_on.queries, asked.0.queries, "{kind}");
        }
        let asked = forwarded("Example.", Kind::MX);
        let data = RData::MX(MX::new(10, Name::from_ascii("mail.example.").expect("a name")));
        let answer = asked.answer(Some(&answered(&asked, vec![data.clone()]))).expect("fits");
        assert_eq!(read_answer(&answer), (ResponseCode::NoError, vec![data]));
        let message = Message::from_vec(&answer).expect("a message");
        assert_eq!(message.additionals, [], "its address would lead past its name");
        let failed = asked.answer(None).expect("fits");
        assert_eq!(read_answer(&failed), (ResponseCode::ServFail, vec![]));
        let unknown = [&[0, 99, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0][..], &[0xff; 9]].concat();
        let answer = asked.answer(Some(&unknown)).expect("fits");
        assert_eq!((&answer[..2], &answer[2..]), (&[0, 7][..], &unknown[2..]));
    }

    #[test]
    fn an_address_is_looked_up_by_its_reverse_name() {
        for (name, address) in [
            ("5.1.19.198.in-addr.arpa.", "198.19.1.5"),
            (
                "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.0.0.3.7.1.6.9.7.5.6.d.f.ip6.arpa.",
                "fd65:7961:7300:1::1",
            ),
        ] {
            let IncomingMessage::Reverse(found, asked) = read(&query(name, Kind::PTR)) else {
                panic!("{name}");
            };
            assert_eq!(found, address.parse::<IpAddr>().expect("an address"));
            let answer = asked.answer_name("a.example").expect("fits");
            let name = Name::from_ascii("a.example.").expect("a name");
            assert_eq!(read_answer(&answer), (ResponseCode::NoError, vec![RData::PTR(PTR(name))]));
        }
        for other in ["19.198.in-addr.arpa.", "_http._tcp.example.", "x.in-addr.arpa."] {
            assert!(
                matches!(read(&query(other, Kind::PTR)), IncomingMessage::Forward(_)),
                "{other}"
            );
        }
    }

    #[test]
    fn a_long_answer_is_cut_for_a_datagram() {
        let asked = forwarded("example.", Kind::TXT);
        let text = |number: usize| RData::TXT(TXT::new(vec![format!("{number:0>200}")]));
        let answer = answered(&asked, (0..10).map(text).collect());
        let answer = asked.answer(Some(&answer)).expect("fits TCP");
        assert!(answer.len() > 2000);
        let with_size = |size: u16| {
            let mut query = asked.0.clone();
            query.edns = (size > 0).then(|| {
                let mut edns = Edns::new();
                edns.set_max_payload(size);
                edns
            });
            query.to_vec().expect("a query")
        };
        for size in [0, 512, 1232] {
            let short = fitted(&with_size(size), answer.clone());
            let message = Message::from_vec(&short).expect("a message");
            assert!(message.metadata.truncation && message.answers.is_empty() && short.len() < 512);
            assert_eq!((message.metadata.id, message.edns.is_some()), (7, size > 0));
            assert_eq!(message.queries, asked.0.queries);
        }
        assert_eq!(fitted(&with_size(4096), answer.clone()), answer);
    }
}
