//! Queries and responses (RFC 1035 §4). Pure.
//!
//! Only what a question needs is decoded, wherever it stands: servers exist that put the answer behind their OPT
//! record, count records wrongly, or send records that nobody can parse beside the ones that were wanted.

#[cfg(feature = "encrypted-dns")]
use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, Query};
use hickory_proto::rr::rdata::CNAME;
#[cfg(feature = "encrypted-dns")]
use hickory_proto::rr::rdata::opt::EdnsOption;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};

use super::super::service_parameters::repair;

/// The UDP payload size that is announced: what passes every path unfragmented (RFC 9715 §3.1, Appendix A).
const UDP_PAYLOAD: u16 = 1232;
/// The option that makes queries longer (RFC 7830), and the multiple of octets that they have then.
#[cfg(feature = "encrypted-dns")]
const PADDING: u16 = 12;
#[cfg(feature = "encrypted-dns")]
const BLOCK: usize = 128;
/// The number of octets before the questions (RFC 1035 §4.1.1).
const HEADER: usize = 12;
/// The maximum number of aliases (CNAME records) followed for one name, in one message or several.
pub(super) const MAX_ALIASES: usize = 16;
/// A time to live with the most significant bit set is zero (RFC 2181 §8).
const MAX_TTL: u32 = 0x7fff_ffff;

/// Response codes (RFC 6895 §2.3).
pub(super) mod code {
    pub(crate) const NO_ERROR: u16 = 0;
    pub(crate) const FORMAT_ERROR: u16 = 1;
    pub(crate) const SERVER_FAILURE: u16 = 2;
    pub(crate) const NO_SUCH_NAME: u16 = 3;
    pub(crate) const NOT_IMPLEMENTED: u16 = 4;
    pub(crate) const BAD_VERSION: u16 = 16;
}

/// A question, with the bits of a query that influence its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DnsQuestion {
    pub(super) name: Name,
    pub(super) kind: RecordType,
    pub(super) class: DNSClass,
    /// The client wants to know whether the server has validated the answer (RFC 6840 §5.7).
    pub(super) authentic_data: bool,
    /// The server need not validate (RFC 4035 §3.2.2).
    pub(super) checking_disabled: bool,
    /// Signatures are wanted (RFC 3225).
    pub(super) dnssec_ok: bool,
}

impl DnsQuestion {
    /// Returns a question about an absolute name.
    pub(super) fn new(mut name: Name, kind: RecordType) -> Self {
        name.set_fqdn(true);
        let class = DNSClass::IN;
        let (authentic_data, checking_disabled, dnssec_ok) = (false, false, false);
        Self { name, kind, class, authentic_data, checking_disabled, dnssec_ok }
    }

    /// Returns the only question of a query of somebody else.
    pub(super) fn from_message(message: &Message) -> Option<Self> {
        let [query] = &message.queries[..] else { return None };
        Some(Self {
            class: query.query_class(),
            authentic_data: message.metadata.authentic_data,
            checking_disabled: message.metadata.checking_disabled,
            dnssec_ok: message.edns.as_ref().is_some_and(|edns| edns.flags().dnssec_ok),
            ..Self::new(query.name().clone(), query.query_type())
        })
    }

    /// Returns a query with an identifier that cannot be guessed, and its octets.
    pub(super) fn query(&self, edns: bool) -> Option<(u16, Vec<u8>)> {
        let message = self.message(edns);
        Some((message.metadata.id, message.to_vec().ok()?))
    }

    /// Returns the same for an encrypted transport, whose length does not tell the name: "Clients SHOULD pad queries to
    /// the closest multiple of 128 octets" (RFC 8467 §4.1).
    #[cfg(feature = "encrypted-dns")]
    pub(super) fn padded_query(&self, edns: bool) -> Option<(u16, Vec<u8>)> {
        let mut message = self.message(edns);
        let Some(edns) = &mut message.edns else { return self.query(false) };
        edns.options_mut().insert(EdnsOption::Unknown(PADDING, Vec::new()));
        let missing = message.to_vec().ok()?.len().wrapping_neg() % BLOCK;
        let edns = message.edns.as_mut()?;
        edns.options_mut().remove(PADDING.into());
        edns.options_mut().insert(EdnsOption::Unknown(PADDING, vec![0; missing]));
        Some((message.metadata.id, message.to_vec().ok()?))
    }

    fn message(&self, edns: bool) -> Message {
        let mut message = Message::query();
        message.metadata.recursion_desired = true;
        message.metadata.authentic_data = self.authentic_data;
        message.metadata.checking_disabled = self.checking_disabled;
        let mut query = Query::query(self.name.clone(), self.kind);
        query.set_query_class(self.class);
        message.add_query(query);
        if edns {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_PAYLOAD).set_version(0).set_dnssec_ok(self.dnssec_ok);
            message.set_edns(edns);
        }
        message
    }
}

/// A response to a question of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DnsResponse {
    pub(super) octets: Vec<u8>,
    /// With the upper bits of the OPT record (RFC 6891 §6.1.3).
    pub(super) code: u16,
    pub(super) is_truncated: bool,
    /// Whether the server claims to have validated the answer.
    pub(super) is_authentic: bool,
    /// Whether there is an OPT record: the server knows EDNS.
    pub(super) has_edns: bool,
    /// Whether nobody on the path can have changed it: it came from a server that has proved who it is.
    pub(super) is_protected: bool,
    /// For how long it was kept by others since the server made it.
    pub(super) age: Duration,
    is_authoritative: bool,
    offers_recursion: bool,
    entries: Vec<RecordPosition>,
    /// Whether all announced records were found.
    is_complete: bool,
}

/// The position of a record in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordPosition {
    at: usize,
    kind: RecordType,
}

/// Records that make a name an alias, with their targets.
type AliasRecords = Vec<(Record, Name)>;

/// What a response says about a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ResponseContent {
    /// Records of the type, at the name or at what it is an alias for.
    Records(Vec<Record>, Duration),
    /// The name is an alias; the records of its target are not there.
    Alias(Name, Duration),
    /// There are none; with the time for which that holds, if it is known (RFC 2308 §5).
    Nothing(Option<Duration>),
    /// What was wanted is there and cannot be parsed.
    Malformed,
}

impl DnsResponse {
    /// Reads a message; `None` if it is no response to this query.
    pub(super) fn read(mut octets: Vec<u8>, id: u16, question: &DnsQuestion) -> Option<Self> {
        let head = octets.first_chunk::<HEADER>()?;
        let field = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let (flags, questions) = (field(2), field(4));
        let records = usize::from(field(6)) + usize::from(field(8)) + usize::from(field(10));
        let is_response_to_query = flags & 0xf800 == 0x8000;
        if field(0) != id || !is_response_to_query {
            return None;
        }
        let mut code = flags & 0xf;
        let mut at = HEADER;
        match questions {
            // Servers that do not understand a query may return its header alone (RFC 6891 §7).
            0 if !matches!(code, code::NO_ERROR | code::NO_SUCH_NAME) => {}
            1 => {
                let mut decoder = BinDecoder::new(&octets).clone(u16::try_from(at).ok()?);
                let asked = Query::read(&mut decoder).ok()?;
                let is_the_same = asked.name() == &question.name
                    && asked.query_type() == question.kind
                    && asked.query_class() == question.class;
                if !is_the_same {
                    return None;
                }
                at = decoder.index();
            }
            _ => return None,
        }
        repair(&mut octets);
        let (entries, opt, is_complete) = entries(&octets, at, records);
        let opt_flags = opt.map(|opt| octets.get(opt).copied().unwrap_or_default());
        code |= u16::from(opt_flags.unwrap_or_default()) << 4;
        Some(Self {
            code,
            is_truncated: flags & 0x0200 != 0,
            is_authentic: flags & 0x0020 != 0,
            has_edns: opt.is_some(),
            is_protected: false,
            age: Duration::ZERO,
            is_authoritative: flags & 0x0400 != 0,
            offers_recursion: flags & 0x0080 != 0,
            entries,
            is_complete,
            octets,
        })
    }

    /// Returns whether the server has not looked for an answer: it is no authority, offers no recursion, and returns
    /// nothing, or a referral to other servers.
    pub(super) fn is_lame(&self, question: &DnsQuestion) -> bool {
        let is_answer = |entry: &RecordPosition| {
            [question.kind, RecordType::CNAME, RecordType::SOA].contains(&entry.kind)
        };
        self.code == code::NO_ERROR
            && !self.is_authoritative
            && !self.offers_recursion
            && !self.entries.iter().any(is_answer)
    }

    /// Returns what the response says about the name of the question.
    pub(super) fn content(&self, question: &DnsQuestion) -> ResponseContent {
        let Some((mut wanted, mut aliases)) = self.wanted(question) else {
            return ResponseContent::Malformed;
        };
        let mut owner = question.name.clone();
        let mut ttl = MAX_TTL;
        for _ in 0..=MAX_ALIASES {
            let found = wanted.iter().any(|record| record.name == owner);
            if found {
                wanted.retain(|record| record.name == owner);
                let ttl = wanted.iter().map(time_to_live).fold(ttl, Ord::min);
                return ResponseContent::Records(wanted, self.remaining(ttl));
            }
            let Some(at) = aliases.iter().position(|(alias, _)| alias.name == owner) else { break };
            let (alias, target) = aliases.swap_remove(at);
            ttl = ttl.min(time_to_live(&alias));
            owner = target;
        }
        let negative = self.negative_ttl().map(|negative| self.remaining(negative.min(ttl)));
        let has_moved = owner != question.name;
        match self.code {
            code::NO_ERROR if !self.is_complete && !self.is_truncated => ResponseContent::Malformed,
            code::NO_ERROR if has_moved && negative.is_none() => {
                ResponseContent::Alias(owner, self.remaining(ttl))
            }
            _ => ResponseContent::Nothing(negative),
        }
    }

    /// Returns the addresses of a name, in whatever section they are.
    #[cfg(feature = "encrypted-dns")]
    pub(super) fn addresses(&self, owner: &Name) -> Vec<IpAddr> {
        let of_type =
            |entry: &&RecordPosition| [RecordType::A, RecordType::AAAA].contains(&entry.kind);
        let records = self.entries.iter().filter(of_type).filter_map(|entry| self.decode(*entry));
        let of_owner = records.filter(|record| record.name == *owner);
        let address = |record: Record| match record.data {
            RData::A(v4) => Some(v4.0.into()),
            RData::AAAA(v6) => Some(v6.0.into()),
            _ => None,
        };
        of_owner.filter_map(address).take(MAX_ALIASES).collect()
    }

    /// Returns whether there are records of the wanted type.
    pub(super) fn has_records(&self, question: &DnsQuestion) -> bool {
        matches!(self.content(question), ResponseContent::Records(..))
    }

    /// Decodes the records of the wanted type, and the aliases with their targets. A malformed record makes all
    /// records of service bindings unusable (RFC 9460 §2.2); other types lose nothing by it.
    fn wanted(&self, question: &DnsQuestion) -> Option<(Vec<Record>, AliasRecords)> {
        let (mut wanted, mut aliases) = (Vec::new(), Vec::new());
        let mut is_any_malformed = false;
        for entry in &self.entries {
            if entry.kind != question.kind && entry.kind != RecordType::CNAME {
                continue;
            }
            let Some(record) = self.decode(*entry) else {
                is_any_malformed = true;
                continue;
            };
            if record.dns_class != question.class {
                continue;
            }
            match &record.data {
                RData::CNAME(CNAME(target)) if question.kind != RecordType::CNAME => {
                    let target = target.clone();
                    aliases.push((record, target));
                }
                _ => wanted.push(record),
            }
        }
        let is_binding = matches!(question.kind, RecordType::HTTPS | RecordType::SVCB);
        let has_nothing = wanted.is_empty() && aliases.is_empty();
        (!is_any_malformed || !(is_binding || has_nothing)).then_some((wanted, aliases))
    }

    fn decode(&self, entry: RecordPosition) -> Option<Record> {
        let at = u16::try_from(entry.at).ok()?;
        let record = Record::read(&mut BinDecoder::new(&self.octets).clone(at)).ok()?;
        // No data is a prerequisite of an update (RFC 2136 §2.4), and no answer.
        (!matches!(record.data, RData::Update0(_))).then_some(record)
    }

    /// Returns how long this time to live is from now on.
    fn remaining(&self, ttl: u32) -> Duration {
        Duration::from_secs(ttl.into()).saturating_sub(self.age)
    }

    /// The SOA record says how long the absence holds (RFC 2308 §5).
    fn negative_ttl(&self) -> Option<u32> {
        let entry = self.entries.iter().find(|entry| entry.kind == RecordType::SOA)?;
        let record = self.decode(*entry)?;
        match &record.data {
            RData::SOA(soa) => Some(time_to_live(&record).min(soa.minimum)),
            _ => None,
        }
    }
}

fn time_to_live(record: &Record) -> u32 {
    if record.ttl > MAX_TTL { 0 } else { record.ttl }
}

/// Returns the records from here on, the position of the upper bits of the response code in the OPT record, and
/// whether as many as announced were there.
fn entries(
    octets: &[u8],
    mut at: usize,
    announced: usize,
) -> (Vec<RecordPosition>, Option<usize>, bool) {
    let (mut entries, mut opt) = (Vec::new(), None);
    for _ in 0..announced {
        // A server that counts records that it has left out ends between two records.
        if at == octets.len() && !entries.is_empty() {
            return (entries, opt, true);
        }
        let Some((entry, fields, end)) = entry(octets, at) else { return (entries, opt, false) };
        if entry.kind == RecordType::OPT {
            opt = Some(fields + 4);
        } else {
            entries.push(entry);
        }
        at = end;
    }
    (entries, opt, true)
}

/// Returns a record, where its fields after the name start, and where it ends.
fn entry(octets: &[u8], at: usize) -> Option<(RecordPosition, usize, usize)> {
    let mut decoder = BinDecoder::new(octets).clone(u16::try_from(at).ok()?);
    Name::read(&mut decoder).ok()?;
    let fields = decoder.index();
    let u16_at = |at: usize| octets.get(at..at + 2)?.first_chunk().copied().map(u16::from_be_bytes);
    let (kind, len) = (u16_at(fields)?, u16_at(fields + 8)?);
    let end = fields + 10 + usize::from(len);
    (end <= octets.len()).then_some((
        RecordPosition { at, kind: RecordType::from(kind) },
        fields,
        end,
    ))
}
