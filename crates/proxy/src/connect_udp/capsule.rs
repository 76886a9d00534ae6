//! Datagrams in a byte stream: the capsule protocol (RFC 9297 §3) with UDP payloads (RFC 9298 §5).
//!
//! ```text
//! +-------+--------+---------+------------------+
//! | type  | length | context |     payload      |
//! +-------+--------+---------+------------------+
//! | 1 - 8 | 1 - 8  |  1 - 8  | 65,527 at most   |
//! +-------+--------+---------+------------------+
//! ```
//!
//! The three numbers are variable-length integers (RFC 9000 §16). Everything but the payload of a datagram
//! with context 0 is skipped, however long it is.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use thiserror::Error;

/// The length of the longest UDP payload (RFC 9298 §5).
pub const MAX_PAYLOAD: usize = 65_527;

/// The type of DATAGRAM capsules (RFC 9297 §3.5).
const DATAGRAM: u64 = 0;
/// The context of UDP payloads (RFC 9298 §4).
const UDP_PAYLOADS: u64 = 0;

/// Why a stream of capsules is invalid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CapsuleFault {
    /// A datagram ends before its context.
    #[error("a datagram capsule ends before its context ID")]
    NoContext,
    /// A payload is longer than UDP allows (RFC 9298 §5).
    #[error("a datagram has more than {MAX_PAYLOAD} bytes")]
    TooLong,
}

/// Reads capsules, however the stream is split. It buffers at most one datagram and the data of the last call.
#[derive(Debug, Default)]
pub struct CapsuleReader {
    unread: BytesMut,
    stage: CapsuleStage,
}

/// The next element of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CapsuleStage {
    /// Type and length.
    #[default]
    Head,
    /// The context of a datagram, which has this many bytes left.
    Context(u64),
    /// The payload of a datagram.
    Payload(usize),
    /// The remaining bytes of an unknown capsule.
    Skipped(u64),
    /// None: the stream is invalid.
    Broken(CapsuleFault),
}

impl CapsuleReader {
    /// Adds bytes of the stream, for [`Self::datagram`].
    pub fn receive(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// Returns the next payload, if it is complete.
    ///
    /// # Errors
    /// If the stream is invalid. All further calls fail, too.
    pub fn datagram(&mut self) -> Result<Option<Bytes>, CapsuleFault> {
        loop {
            let next = match self.stage {
                CapsuleStage::Head => self.head(),
                CapsuleStage::Context(length) => self.context(length),
                CapsuleStage::Payload(length) => {
                    if self.unread.len() < length {
                        return Ok(None);
                    }
                    self.stage = CapsuleStage::Head;
                    return Ok(Some(self.unread.split_to(length).freeze()));
                }
                CapsuleStage::Skipped(length) => self.skip(length),
                CapsuleStage::Broken(fault) => {
                    self.unread.clear();
                    return Err(fault);
                }
            };
            match next {
                Some(stage) => self.stage = stage,
                None => return Ok(None),
            }
        }
    }

    /// Returns whether the stream may end here, which is not allowed within a capsule (RFC 9297 §3.3).
    pub fn is_at_boundary(&self) -> bool {
        self.stage == CapsuleStage::Head && self.unread.is_empty()
    }

    fn head(&mut self) -> Option<CapsuleStage> {
        let (kind, after_kind) = varint(&self.unread)?;
        let (length, after_length) = varint(&self.unread[after_kind..])?;
        self.unread.advance(after_kind + after_length);
        Some(match kind {
            DATAGRAM => CapsuleStage::Context(length),
            _ => CapsuleStage::Skipped(length),
        })
    }

    fn context(&mut self, length: u64) -> Option<CapsuleStage> {
        let Some((context, after)) = varint(&self.unread) else {
            let is_cut = self.unread.len() as u64 >= length;
            return is_cut.then_some(CapsuleStage::Broken(CapsuleFault::NoContext));
        };
        let Some(length) = length.checked_sub(after as u64) else {
            return Some(CapsuleStage::Broken(CapsuleFault::NoContext));
        };
        self.unread.advance(after);
        Some(match (context, usize::try_from(length)) {
            (UDP_PAYLOADS, Ok(length @ ..=MAX_PAYLOAD)) => CapsuleStage::Payload(length),
            (UDP_PAYLOADS, _) => CapsuleStage::Broken(CapsuleFault::TooLong),
            // RFC 9298 §5: a datagram with an unknown context is dropped.
            _ => CapsuleStage::Skipped(length),
        })
    }

    fn skip(&mut self, length: u64) -> Option<CapsuleStage> {
        let here =
            usize::try_from(length).map_or(self.unread.len(), |it| it.min(self.unread.len()));
        self.unread.advance(here);
        match length - here as u64 {
            0 => Some(CapsuleStage::Head),
            left => {
                self.stage = CapsuleStage::Skipped(left);
                None
            }
        }
    }
}

/// Writes a payload as a capsule. A payload of more than [`MAX_PAYLOAD`] bytes is left out.
pub fn write(out: &mut BytesMut, payload: &[u8]) {
    if payload.len() > MAX_PAYLOAD {
        return;
    }
    put_varint(out, DATAGRAM);
    put_varint(out, payload.len() as u64 + 1);
    put_varint(out, UDP_PAYLOADS);
    out.put_slice(payload);
}

/// Returns the UDP payload of an HTTP Datagram outside of the stream, if it has one.
pub fn payload(datagram: &Bytes) -> Option<Bytes> {
    let (context, length) = varint(datagram)?;
    let payload = datagram.slice(length..);
    (context == UDP_PAYLOADS && payload.len() <= MAX_PAYLOAD).then_some(payload)
}

/// Reads a variable-length integer (RFC 9000 §16), and returns it and its length, if it is complete.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let length = 1 << (bytes.first()? >> 6);
    let value = bytes.get(..length)?.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte));
    Some((value & (u64::MAX >> (66 - 8 * length)), length))
}

/// Writes an integer below 2^30 in the shortest form.
fn put_varint(out: &mut BytesMut, value: u64) {
    match value {
        ..0x40 => out.put_u8(value as u8),
        0x40..0x4000 => out.put_u16(value as u16 | 0x4000),
        _ => out.put_u32(value as u32 | 0x8000_0000),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns all payloads, the fault after them, and whether the stream may end there.
    fn read(bytes: &[u8], cut: usize) -> (Vec<Bytes>, Option<CapsuleFault>, bool) {
        let (mut capsules, mut payloads) = (CapsuleReader::default(), Vec::new());
        for piece in bytes.chunks(cut.max(1)) {
            capsules.receive(piece);
            loop {
                match capsules.datagram() {
                    Ok(Some(payload)) => payloads.push(payload),
                    Ok(None) => break,
                    Err(fault) => return (payloads, Some(fault), false),
                }
            }
        }
        (payloads, None, capsules.is_at_boundary())
    }

    fn written(payload: &[u8]) -> Vec<u8> {
        let mut out = BytesMut::new();
        write(&mut out, payload);
        out.to_vec()
    }

    //= rfc9297 §3.5
    //# a capsule of type 0 is one datagram with context 0
    #[test]
    fn a_datagram_is_a_capsule_of_type_0_with_context_0() {
        assert_eq!(written(b"hello"), b"\0\x06\0hello");
        assert_eq!(written(b""), b"\0\x01\0");
        assert_eq!(written(&[7; 63])[..4], [0, 0x40, 64, 0]);
        assert_eq!(written(&[7; 20_000])[..6], [0, 0x80, 0, 0x4e, 0x21, 0]);
        assert_eq!(written(&[7; MAX_PAYLOAD + 1]), b"");
    }

    //= rfc9298 §4, §5
    //# context 0 alone; datagrams of others are dropped
    #[test]
    fn a_datagram_by_itself_begins_with_its_context() {
        for (datagram, expected) in [
            (&b"\0hello"[..], Some(&b"hello"[..])),
            (b"\x40\0", Some(b"")),
            (b"\x02hello", None),
            (b"\x40", None),
            (b"", None),
        ] {
            let payload = payload(&Bytes::from_static(datagram));
            assert_eq!(payload.as_deref(), expected, "{datagram:?}");
        }
    }

    //= rfc9297 §3.2
    //# integers of capsules may be longer than necessary
    #[test]
    fn numbers_may_be_longer_than_necessary() {
        let long = b"\x40\0\x80\0\0\x0a\xc0\0\0\0\0\0\0\0xy";
        assert_eq!(read(long, 99), (vec![Bytes::from_static(b"xy")], None, true));
    }

    //= rfc9297 §3.2, §3.3
    //# capsules of unknown types are skipped without a buffer
    #[test]
    fn unknown_capsules_are_skipped() {
        let bytes = [&b"\x40\xff\x03abc"[..], &written(b"x"), b"\0\x04\x02abc", &written(b"y")];
        let payloads = vec![Bytes::from_static(b"x"), Bytes::from_static(b"y")];
        assert_eq!(read(&bytes.concat(), 99), (payloads, None, true));
        // A capsule of 2^62 - 1 bytes is skipped as it arrives, and never buffered.
        let mut capsules = CapsuleReader::default();
        capsules.receive(b"\x17\xff\xff\xff\xff\xff\xff\xff\xff");
        for _ in 0..1000 {
            capsules.receive(&[0; 1000]);
            assert_eq!(capsules.datagram(), Ok(None));
            assert!(capsules.unread.is_empty());
        }
    }

    //= rfc9297 §3.1, §3.3
    //# a malformed capsule ends the stream
    //= rfc9298 §5
    //# UDP payloads have at most 65527 bytes; more ends the stream
    #[test]
    fn malformed_capsules_end_the_stream() {
        for (bytes, fault) in [
            (&b"\0\0"[..], CapsuleFault::NoContext),
            (b"\0\x01\x40\0", CapsuleFault::NoContext),
            (b"\0\x80\0\xff\xf9\0", CapsuleFault::TooLong),
            (b"\0\xff\xff\xff\xff\xff\xff\xff\xff\0", CapsuleFault::TooLong),
        ] {
            let more = [bytes, &written(b"x")].concat();
            assert_eq!(read(&more, 99), (Vec::new(), Some(fault), false), "{bytes:?}");
        }
        let longest = written(&[1; MAX_PAYLOAD]);
        assert_eq!(read(&longest, 1000).0[0].len(), MAX_PAYLOAD);
        assert_eq!(read(b"\0\x06\0hell", 99), (Vec::new(), None, false), "it is incomplete");
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            payloads in vec(vec(any::<u8>(), 0..300), 0..20),
            kind in 1_u8..64,
            skipped in vec(any::<u8>(), 0..60),
            cut in 1_usize..700,
        ) {
            let mut bytes = Vec::new();
            for payload in &payloads {
                bytes.extend([kind, skipped.len() as u8]);
                bytes.extend(&skipped);
                bytes.extend(written(payload));
            }
            let (read, fault, is_at_boundary) = read(&bytes, cut);
            prop_assert_eq!(fault, None);
            prop_assert!(is_at_boundary);
            prop_assert_eq!(read, payloads);
        }

        #[test]
        fn splitting_the_input_changes_nothing(bytes: Vec<u8>, cut in 1_usize..20) {
            prop_assert_eq!(read(&bytes, cut), read(&bytes, bytes.len()));
        }
    }
}
