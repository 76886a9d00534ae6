//! Repairs service parameters on which the DNS library and RFC 9460 disagree, before the library
//! parses them.
//!
//! An ALPN protocol identifier may be any octets (§7.1.1). The library stores text, and treats a
//! whole message as malformed, with all its valid records, if one identifier is not UTF-8.
//! Identifiers that are not text are not supported here anyway, so their octets are replaced.
//! Conversely, the library accepts some malformed values for which a client must reject all records
//! of the answer (§2.2): those are changed into something that it rejects.

/// Record types that carry service parameters: SVCB and HTTPS.
const SERVICE_BINDINGS: [u16; 2] = [64, 65];

/// `SvcParamKey` numbers (§14.3.2).
const MANDATORY: u16 = 0;
const ALPN: u16 = 1;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const IPV6_HINT: u16 = 6;

/// The number of octets before the questions (RFC 1035 §4.1.1).
const HEADER: usize = 12;

/// Replaces the octets of an identifier that is not text. No registered identifier contains it.
const REPLACEMENT: u8 = 0x7f;

/// Replaces the octets of ALPN identifiers that are not text, and makes malformed values evident.
/// The part of a message after a parse error is left to the library.
pub(super) fn repair(message: &mut [u8]) -> Option<()> {
    let count = |at: usize| Some(usize::from(u16_at(message, at)?));
    let (questions, records) = (count(4)?, count(6)? + count(8)? + count(10)?);
    let mut at = HEADER;
    for _ in 0..questions {
        at = after_name(message, at)? + 4;
    }
    for _ in 0..records {
        let fields = after_name(message, at)?;
        let (record_type, len) = (u16_at(message, fields)?, u16_at(message, fields + 8)?);
        let data = fields + 10;
        at = data + usize::from(len);
        let data = message.get_mut(data..at)?;
        if SERVICE_BINDINGS.contains(&record_type) {
            repair_parameters(data)?;
        }
    }
    Some(())
}

/// Repairs the data of one record: priority, target and parameters (RFC 9460 §2.2).
fn repair_parameters(data: &mut [u8]) -> Option<()> {
    let is_alias = u16_at(data, 0)? == 0;
    let mut at = after_name(data, 2)?;
    while at < data.len() {
        let (key, len) = (u16_at(data, at)?, u16_at(data, at + 2)?);
        let value = at + 4;
        let end = value + usize::from(len);
        if key == ALPN {
            repair_identifiers(data.get_mut(value..end)?)?;
        }
        // Parameters of an alias are ignored (§2.4.2).
        if !is_alias && !is_well_formed(key, data.get(value..end)?) {
            // A length that exceeds every message.
            data.get_mut(at + 2..value)?.fill(0xff);
        }
        at = end;
    }
    Some(())
}

/// Returns whether a value has the format of its key (§7, §8), as far as the library does not check
/// it.
fn is_well_formed(key: u16, value: &[u8]) -> bool {
    match key {
        MANDATORY => value.chunks_exact(2).is_sorted_by(|key, next| key < next),
        ALPN => !has_empty_identifier(value),
        PORT => value.len() == 2,
        IPV4_HINT | IPV6_HINT => !value.is_empty(),
        _ => true,
    }
}

/// Returns whether an identifier is empty, which §7.1.1 forbids.
fn has_empty_identifier(mut value: &[u8]) -> bool {
    while let Some((len, rest)) = value.split_first() {
        if *len == 0 {
            return true;
        }
        value = rest.get(usize::from(*len)..).unwrap_or_default();
    }
    false
}

/// Repairs identifiers, each of which follows its length.
fn repair_identifiers(mut value: &mut [u8]) -> Option<()> {
    while let Some((len, rest)) = value.split_first_mut() {
        let (identifier, rest) = rest.split_at_mut_checked(usize::from(*len))?;
        if std::str::from_utf8(identifier).is_err() {
            identifier.iter_mut().filter(|octet| !octet.is_ascii()).for_each(|octet| {
                *octet = REPLACEMENT;
            });
        }
        value = rest;
    }
    Some(())
}

/// Returns the end of a name that starts here: after its root or its pointer (RFC 1035 §4.1.4).
fn after_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match message.get(at)? {
            0 => return Some(at + 1),
            len @ 1..64 => at += 1 + usize::from(*len),
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
}

fn u16_at(message: &[u8], at: usize) -> Option<u16> {
    message.get(at..at + 2)?.first_chunk().copied().map(u16::from_be_bytes)
}
