//! DNS answers with service records: the repair of answers for the DNS library preserves their length, is
//! idempotent, and makes every well-formed record parseable.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use hickory_proto::op::Message;
use libfuzzer_sys::fuzz_target;

mod reach;
#[path = "../../crates/eyas/src/resolver/service_parameters.rs"]
mod service_parameters;

use reach::Reach;
use service_parameters::repair;

static REACH: Reach<5> = Reach::new([
    "well-formed records are parsed",
    "a non-text identifier is replaced",
    "a repaired answer is parsed",
    "a malformed value is refused",
    "a truncated message is left unchanged",
]);

/// The maximum octets of a value, and of an answer.
const MAX_VALUE: usize = 200;
const MAX_ANSWER: usize = 60_000;

/// A well-formed record, unless it has an odd value.
#[derive(Arbitrary, Debug)]
struct Service {
    is_https: bool,
    mandatory: Vec<u16>,
    identifiers: Vec<Vec<u8>>,
    no_default_alpn: bool,
    port: Option<u16>,
    v4: Vec<[u8; 4]>,
    ech: Option<Vec<u8>>,
    v6: Vec<[u8; 16]>,
    unknown: BTreeMap<u16, Vec<u8>>,
    /// A value for one of the keys from 0 to 6.
    odd: Option<(u8, Vec<u8>)>,
}

impl Service {
    fn parameters(&self) -> BTreeMap<u16, Vec<u8>> {
        let mut keys: Vec<u16> = self.mandatory.iter().copied().take(20).collect();
        keys.sort_unstable();
        keys.dedup();
        let identifiers = self.identifiers.iter().filter(|id| !id.is_empty()).take(20);
        let identifiers = identifiers.flat_map(|id| {
            let id = &id[..id.len().min(MAX_VALUE)];
            [&[id.len() as u8], id].concat()
        });
        let mut parameters: BTreeMap<u16, Vec<u8>> = BTreeMap::from([
            (0, keys.iter().flat_map(|key| key.to_be_bytes()).collect()),
            (1, identifiers.collect()),
            (4, self.v4.iter().take(20).flatten().copied().collect()),
            (6, self.v6.iter().take(20).flatten().copied().collect()),
        ]);
        parameters.retain(|_, value| !value.is_empty());
        parameters.extend(self.no_default_alpn.then(|| (2, Vec::new())));
        parameters.extend(self.port.map(|port| (3, port.to_be_bytes().to_vec())));
        parameters.extend(self.ech.clone().map(|ech| (5, ech)));
        let unknown = self.unknown.iter().filter(|(key, _)| **key > 6).take(20);
        parameters.extend(unknown.map(|(key, value)| (*key, value.clone())));
        parameters.extend(self.odd.clone().map(|(key, value)| (u16::from(key % 7), value)));
        parameters
    }

    /// Returns the record in wire format (RFC 1035 §4.1.3, RFC 9460 §2.2).
    fn record(&self) -> Vec<u8> {
        let mut data = vec![0, 1, 0];
        for (key, value) in self.parameters() {
            let value = &value[..value.len().min(20 * MAX_VALUE)];
            data.extend(key.to_be_bytes());
            data.extend((value.len() as u16).to_be_bytes());
            data.extend(value);
        }
        let mut record = vec![0xc0, 12, 0, if self.is_https { 65 } else { 64 }];
        record.extend([0, 1, 0, 0, 0, 60]);
        record.extend((data.len() as u16).to_be_bytes());
        [record, data].concat()
    }
}

/// Returns the answer with these records to a question about `a.test`.
fn answer(services: &[Service]) -> Vec<u8> {
    let mut message = vec![0, 7, 0x81, 0x80, 0, 1, 0, services.len() as u8, 0, 0, 0, 0];
    message.extend(b"\x01a\x04test\0\0\x41\0\x01");
    message.extend(services.iter().flat_map(Service::record));
    message
}

fuzz_target!(|input: (Vec<Service>, Option<(u16, u8)>, Option<u16>)| {
    REACH.begin();
    let (mut services, damage, cut) = input;
    services.truncate(10);
    let mut message = answer(&services);
    if message.len() > MAX_ANSWER {
        return;
    }
    if let Some((at, bits)) = damage {
        let at = usize::from(at) % message.len();
        message[at] ^= bits;
    }
    if let Some(length) = cut {
        message.truncate(usize::from(length));
    }
    let mut repaired = message.clone();
    let is_whole = repair(&mut repaired).is_some();
    assert_eq!(repaired.len(), message.len());
    let mut twice = repaired.clone();
    repair(&mut twice);
    assert_eq!(twice, repaired);
    let (before, after) =
        (Message::from_vec(&message).is_ok(), Message::from_vec(&repaired).is_ok());
    if damage.is_none() && cut.is_none() && services.iter().all(|service| service.odd.is_none()) {
        assert!(is_whole && after, "{repaired:?}");
        if !services.is_empty() {
            REACH.hit("well-formed records are parsed");
        }
        if repaired != message {
            REACH.hit("a non-text identifier is replaced");
        }
    }
    match (before, after) {
        (false, true) => REACH.hit("a repaired answer is parsed"),
        (true, false) => REACH.hit("a malformed value is refused"),
        _ if !is_whole => REACH.hit("a truncated message is left unchanged"),
        _ => {}
    }
});
