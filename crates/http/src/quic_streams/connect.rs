//! Rewrites CONNECT requests as RFC 9114 §4.4 requires: without `:scheme` and `:path`, which h3
//! adds to every request.

use bytes::{BufMut as _, Bytes, BytesMut};

/// The type of a HEADERS frame (RFC 9114 §7.2.2).
const HEADERS: u8 = 0x01;

/// The start of a field section that does not use the dynamic table (RFC 9204 §4.5.1): from the
/// static table (RFC 9204 §A), `:method: CONNECT`, `:scheme: https` and the name `:authority`.
const SECTION_START: [u8; 5] = [0, 0, 0xc0 | 15, 0xc0 | 23, 0x50];
/// The number of its bytes that remain.
const KEPT_BYTES: usize = 3;
/// `:path: /`, which follows the authority.
const PATH: u8 = 0xc0 | 1;

/// Returns the frame without scheme and path, as a proxy requires it, if it is the head of a
/// CONNECT; any other frame unchanged. A CONNECT for another protocol (RFC 9220) keeps its path.
pub(super) fn without_scheme_and_path(frame: Bytes) -> Bytes {
    rewritten(&frame).unwrap_or(frame)
}

fn rewritten(frame: &[u8]) -> Option<Bytes> {
    let (&HEADERS, rest) = frame.split_first()? else { return None };
    let (length, section) = varint(rest)?;
    if length != section.len() as u64 {
        return None;
    }
    let authority = section.strip_prefix(&SECTION_START)?;
    let end = string_length(authority)?;
    let (authority, rest) = authority.split_at_checked(end)?;
    let fields = rest.strip_prefix(&[PATH])?;
    let length = KEPT_BYTES + 1 + authority.len() + fields.len();
    let mut frame = BytesMut::with_capacity(9 + length);
    frame.put_u8(HEADERS);
    // Variable-length integers need not be minimal (RFC 9000 §16).
    frame.put_u64((0b11 << 62) | length as u64);
    frame.put_slice(&SECTION_START[..KEPT_BYTES]);
    frame.put_u8(SECTION_START[4]);
    frame.put_slice(authority);
    frame.put_slice(fields);
    Some(frame.freeze())
}

/// Parses a variable-length integer (RFC 9000 §16), and returns what follows it.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = number.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte));
    let bits = 8 * number.len() - 2;
    Some((value & ((1 << bits) - 1), rest))
}

/// Returns the size of a string literal including its length, which has a 7-bit prefix (RFC 7541
/// §5.1, §5.2).
fn string_length(bytes: &[u8]) -> Option<usize> {
    const MAX_PREFIX: u8 = 0x7f;
    let first = bytes.first()? & MAX_PREFIX;
    if first < MAX_PREFIX {
        return Some(1 + usize::from(first));
    }
    let mut length = usize::from(MAX_PREFIX);
    for (at, byte) in bytes.iter().enumerate().skip(1).take(3) {
        length += usize::from(byte & MAX_PREFIX) << (7 * (at - 1));
        if byte & !MAX_PREFIX == 0 {
            return Some(at + 1 + length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(authority: &[u8], rest: &[u8]) -> Vec<u8> {
        let section = [&SECTION_START[..], authority, rest].concat();
        let length = u16::try_from(section.len()).expect("short") | 0x4000;
        [&[HEADERS][..], &length.to_be_bytes(), &section].concat()
    }

    #[test]
    fn a_connect_request_loses_its_scheme_and_path() {
        let long = [&[0x7f, 0x49][..], &[b'a'; 200]].concat();
        for authority in [&b"\x05a:443"[..], b"\x83abc", &long] {
            let rewritten_frame = without_scheme_and_path(frame(authority, b"\xc1\x51rest").into());
            let (length, section) = varint(&rewritten_frame[1..]).expect("a length");
            assert_eq!(length, section.len() as u64);
            assert_eq!(section, [&[0, 0, 0xcf, 0x50], authority, b"\x51rest"].concat());
        }
    }

    #[test]
    fn other_frames_are_unchanged() {
        for other in [
            &b""[..],
            b"\x01",
            b"\x01\x05\0\0\xd1\xd7\x50",
            &frame(b"\x05a:443", b"\x51\x04/udp"),
            &frame(b"\x05a:4", b""),
        ] {
            assert_eq!(&without_scheme_and_path(Bytes::copy_from_slice(other))[..], other);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_frames_never_panic(bytes: Vec<u8>, authority: Vec<u8>) {
            without_scheme_and_path(bytes.into());
            without_scheme_and_path(frame(&authority, b"").into());
        }
    }
}
