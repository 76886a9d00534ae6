//! The first flight of a TLS client (RFC 8446 §4.1.2, §5.1; RFC 5246 §7.4.1.2), as far as it must be parsed
//! to know whether it may be sent to several servers.
//!
//! A ClientHello only asks for an answer, so it is safe to send twice. It is not when followed by early data
//! (RFC 8446 §4.2.10), which may carry a request: preventing replays is up to the sender (RFC 8446 §8).

/// The limit on a ClientHello with its record headers, in bytes. With post-quantum keys it has about 2 KiB;
/// no client in use sends more than this.
pub(crate) const MAX_CLIENT_HELLO: usize = 16 * 1024;

/// The kind of a client's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstFlight {
    /// The beginning of a ClientHello, or nothing yet.
    Partial,
    /// A whole ClientHello and nothing else.
    ClientHello,
    /// A ClientHello that announces early data, or is followed by other data.
    EarlyData,
    /// Something else.
    Other,
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const EARLY_DATA: u16 = 42;
const RECORD_HEAD: usize = 5;
const MAX_RECORD: usize = 1 << 14;

/// Returns the kind of a client's first bytes.
pub fn first_flight(bytes: &[u8]) -> FirstFlight {
    if bytes.len() > MAX_CLIENT_HELLO {
        return FirstFlight::Other;
    }
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        match record(rest) {
            HelloRecord::Other => return FirstFlight::Other,
            HelloRecord::Partial => return FirstFlight::Partial,
            HelloRecord::Whole(fragment, after) => {
                message.extend_from_slice(fragment);
                rest = after;
            }
        }
        if message[0] != CLIENT_HELLO {
            return FirstFlight::Other;
        }
        let Some(&[_, a, b, c]) = message.get(..4) else { continue };
        let length = 4 + u32::from_be_bytes([0, a, b, c]) as usize;
        if length > MAX_CLIENT_HELLO {
            return FirstFlight::Other;
        }
        if message.len() >= length {
            break match announces_early_data(&message[4..length]) {
                None => FirstFlight::Other,
                Some(true) => FirstFlight::EarlyData,
                Some(false) if message.len() > length || !rest.is_empty() => FirstFlight::EarlyData,
                Some(false) => FirstFlight::ClientHello,
            };
        }
    }
}

enum HelloRecord<'a> {
    Partial,
    Other,
    /// Its contents, which are not empty, and the data after it.
    Whole(&'a [u8], &'a [u8]),
}

fn record(bytes: &[u8]) -> HelloRecord<'_> {
    let may_be = |at: usize, is: fn(u8) -> bool| bytes.get(at).is_none_or(|byte| is(*byte));
    if !may_be(0, |byte| byte == HANDSHAKE) || !may_be(1, |byte| byte == 3) {
        return HelloRecord::Other;
    }
    let Some(&[.., high, low]) = bytes.get(..RECORD_HEAD) else { return HelloRecord::Partial };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length == 0 || length > MAX_RECORD {
        return HelloRecord::Other;
    }
    match bytes[RECORD_HEAD..].split_at_checked(length) {
        Some((fragment, after)) => HelloRecord::Whole(fragment, after),
        None => HelloRecord::Partial,
    }
}

/// Returns whether a ClientHello has the extension `early_data`, or `None` if it is malformed.
fn announces_early_data(mut hello: &[u8]) -> Option<bool> {
    const VERSION_AND_RANDOM: usize = 34;
    hello = hello.get(VERSION_AND_RANDOM..)?;
    let session = usize::from(*hello.first()?);
    hello = hello.get(1 + session..)?;
    let (suites, rest) = with_length(hello)?;
    if suites.is_empty() || !suites.len().is_multiple_of(2) {
        return None;
    }
    let compressions = usize::from(*rest.first()?);
    hello = rest.get(1 + compressions..)?;
    if hello.is_empty() {
        // As TLS 1.2 allows.
        return Some(false);
    }
    let (mut extensions, rest) = with_length(hello)?;
    if !rest.is_empty() {
        return None;
    }
    let mut early = false;
    while !extensions.is_empty() {
        let (kind, rest) = extensions.split_first_chunk::<2>()?;
        early |= u16::from_be_bytes(*kind) == EARLY_DATA;
        extensions = with_length(rest)?.1;
    }
    Some(early)
}

/// Splits off a vector with a length of two bytes, and returns it and the rest.
fn with_length(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A ClientHello with these extensions, each without content, in records of this size.
    fn hello(extensions: &[u16], record: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        body.extend([0, 2, 0x13, 0x01]);
        body.extend([1, 0]);
        body.extend(u16::try_from(extensions.len() * 4).unwrap().to_be_bytes());
        for kind in extensions {
            body.extend(kind.to_be_bytes());
            body.extend([0, 0]);
        }
        let mut message = vec![CLIENT_HELLO];
        message.extend(&u32::try_from(body.len()).unwrap().to_be_bytes()[1..]);
        message.extend(body);
        let mut flight = Vec::new();
        for fragment in message.chunks(record) {
            flight.extend([HANDSHAKE, 3, 1]);
            flight.extend(u16::try_from(fragment.len()).unwrap().to_be_bytes());
            flight.extend(fragment);
        }
        flight
    }

    #[test]
    fn a_client_hello_is_recognised_however_it_is_split() {
        for record in [1, 3, 7, 64, 1000] {
            assert_eq!(first_flight(&hello(&[0, 10, 43], record)), FirstFlight::ClientHello);
        }
    }

    //= hostile proxy
    //# a first flight that is not safe to send twice
    //= bound: `MAX_CLIENT_HELLO`
    #[test]
    fn early_data_is_detected() {
        assert_eq!(first_flight(&hello(&[0, 42, 43], 1000)), FirstFlight::EarlyData);
        let followed = [hello(&[0], 1000), vec![23, 3, 3, 0, 1, 0]].concat();
        assert_eq!(first_flight(&followed), FirstFlight::EarlyData);
    }

    #[test]
    fn other_protocols_are_recognised_by_their_first_bytes() {
        for bytes in [&b"GET / HTTP/1.1"[..], b"SSH-2.0-x", &[22, 2], &[22, 3, 1, 0, 0], &[21]] {
            assert_eq!(first_flight(bytes), FirstFlight::Other, "{bytes:?}");
        }
        assert_eq!(first_flight(&[22, 3, 1, 0, 4, 2]), FirstFlight::Partial);
        assert_eq!(first_flight(&[22, 3, 1, 0, 4, 2, 0, 0, 0]), FirstFlight::Other);
        assert_eq!(first_flight(&[]), FirstFlight::Partial);
    }

    proptest! {
        #[test]
        fn every_prefix_of_a_hello_may_become_one(
            extensions in prop::collection::vec(0..100_u16, 0..20), record in 1..200_usize,
        ) {
            let flight = hello(&extensions, record);
            for end in 0..flight.len() {
                prop_assert_eq!(first_flight(&flight[..end]), FirstFlight::Partial, "{}", end);
            }
            let expected = match extensions.contains(&EARLY_DATA) {
                true => FirstFlight::EarlyData,
                false => FirstFlight::ClientHello,
            };
            prop_assert_eq!(first_flight(&flight), expected);
        }

        #[test]
        fn a_flight_rejected_early_stays_rejected(bytes: Vec<u8>, as_hello: bool, end in 0..64_usize) {
            let bytes = match as_hello {
                true => [&[22, 3, 1, 0, 60, 1, 0, 0, 56][..], &bytes].concat(),
                false => bytes,
            };
            let end = end.min(bytes.len());
            if first_flight(&bytes[..end]) == FirstFlight::Other {
                prop_assert_eq!(first_flight(&bytes), FirstFlight::Other);
            }
        }
    }
}
