//! The Capsule Protocol (RFC 9297 §3): an incremental reader of the data stream of a request, and a
//! writer.

use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use crate::fault::StreamFault;
use crate::varint::{self, PartialVarint};

/// The type of a DATAGRAM capsule (RFC 9297 §3.5).
pub const DATAGRAM: u64 = 0x00;

/// A capsule of a type that the recipient knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capsule {
    /// Its type.
    pub kind: u64,
    /// Its value.
    pub value: Bytes,
}

/// Reads capsules, whatever parts they arrive in. Those of unknown types are discarded as they arrive, as
/// RFC 9297 §3.2 demands.
///
/// ```
/// use bytes::Bytes;
/// use eyas_h3::capsule::{self, CapsuleReader};
///
/// let mut reader = CapsuleReader::new(1500);
/// let mut input = Bytes::from_static(b"\x29\x02??\x00\x02hi");
/// let read = reader.read(&mut input, |kind| kind == capsule::DATAGRAM)?;
/// assert_eq!(read.map(|capsule| capsule.value), Some(Bytes::from_static(b"hi")));
/// assert!(reader.end().is_ok());
/// # Ok::<(), eyas_h3::fault::StreamFault>(())
/// ```
#[derive(Debug)]
pub struct CapsuleReader {
    max_value: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Type(PartialVarint),
    Length(u64, PartialVarint),
    Value { kind: u64, left: usize, kept: BytesMut },
    Skip { left: u64 },
}

const START: State = State::Type(PartialVarint::EMPTY);

impl CapsuleReader {
    /// Creates a reader that keeps values of at most `max_value` bytes.
    #[must_use]
    pub const fn new(max_value: usize) -> Self {
        Self { max_value, state: START }
    }

    /// Takes bytes off `input` until a capsule is complete whose type `is_known`; returns `None` when the
    /// input is used up.
    ///
    /// # Errors
    /// [`StreamFault::Capsule`] if a capsule of a known type is longer than the largest value. The
    /// message counts as malformed, and the request has to be aborted (RFC 9297 §3.3).
    pub fn read(
        &mut self,
        input: &mut Bytes,
        is_known: impl Fn(u64) -> bool,
    ) -> Result<Option<Capsule>, StreamFault> {
        loop {
            match &mut self.state {
                State::Type(partial) => {
                    let Some(kind) = partial.read(input) else { return Ok(None) };
                    self.state = State::Length(kind, PartialVarint::EMPTY);
                }
                &mut State::Length(kind, ref mut partial) => {
                    let Some(length) = partial.read(input) else { return Ok(None) };
                    self.state = self.value(kind, length, is_known(kind))?;
                }
                State::Skip { left } => {
                    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                    *left -= length as u64;
                    let _ = input.split_to(length);
                    if *left > 0 {
                        return Ok(None);
                    }
                    self.state = START;
                }
                State::Value { kind, left, kept } => {
                    let part = input.split_to(input.len().min(*left));
                    *left -= part.len();
                    let (kind, is_whole) = (*kind, *left == 0);
                    if is_whole && kept.is_empty() {
                        self.state = START;
                        return Ok(Some(Capsule { kind, value: part }));
                    }
                    kept.extend_from_slice(&part);
                    if !is_whole {
                        return Ok(None);
                    }
                    let value = core::mem::take(kept).freeze();
                    self.state = START;
                    return Ok(Some(Capsule { kind, value }));
                }
            }
        }
    }

    fn value(&self, kind: u64, length: u64, is_known: bool) -> Result<State, StreamFault> {
        if !is_known {
            return Ok(State::Skip { left: length });
        }
        let left = usize::try_from(length).ok().filter(|&length| length <= self.max_value);
        let left = left.ok_or(StreamFault::Capsule)?;
        Ok(State::Value { kind, left, kept: BytesMut::new() })
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// [`StreamFault::Capsule`] within a capsule (RFC 9297 §3.3).
    pub fn end(&self) -> Result<(), StreamFault> {
        match &self.state {
            State::Type(partial) if partial.is_empty() => Ok(()),
            State::Type(_) | State::Length(..) | State::Value { .. } | State::Skip { .. } => {
                Err(StreamFault::Capsule)
            }
        }
    }
}

/// Appends what a capsule with a value of `length` bytes begins with.
pub fn write_header(kind: u64, length: u64, out: &mut Vec<u8>) {
    varint::write(kind, out);
    varint::write(length, out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX_VALUE: usize = 16;

    fn read_all(bytes: &[u8], cut: usize) -> (Vec<Capsule>, Result<(), StreamFault>) {
        let mut reader = CapsuleReader::new(MAX_VALUE);
        let mut read = Vec::new();
        for part in bytes.chunks(cut.max(1)) {
            let mut part = Bytes::copy_from_slice(part);
            loop {
                match reader.read(&mut part, |kind| kind < 8) {
                    Ok(Some(capsule)) => read.push(capsule),
                    Ok(None) => break,
                    Err(fault) => return (read, Err(fault)),
                }
            }
        }
        (read, reader.end())
    }

    #[test]
    fn unknown_capsules_are_skipped_and_known_ones_are_bounded() {
        let capsule = |value: &'static [u8]| Capsule { kind: 0, value: Bytes::from_static(value) };
        for (bytes, expected, end) in [
            (&b"\x00\x00\x00\x01a"[..], vec![capsule(b""), capsule(b"a")], Ok(())),
            (b"\x21\x03xxx\x00\x01a", vec![capsule(b"a")], Ok(())),
            (b"\x21\x00\x00\x01a", vec![capsule(b"a")], Ok(())),
            (b"\x00\x11", vec![], Err(StreamFault::Capsule)),
            (b"\x21\x02x", vec![], Err(StreamFault::Capsule)),
            (b"\x00", vec![], Err(StreamFault::Capsule)),
            (b"\x40", vec![], Err(StreamFault::Capsule)),
        ] {
            for cut in 1..=bytes.len() {
                assert_eq!(read_all(bytes, cut), (expected.clone(), end), "{bytes:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_read_does_not_depend_on_the_parts(
            bytes in proptest::collection::vec(prop_oneof![0..12_u8, any::<u8>()], 0..64),
            cut in 1..64_usize,
        ) {
            let whole = read_all(&bytes, bytes.len());
            prop_assert_eq!(&whole, &read_all(&bytes, cut));
            prop_assert_eq!(&whole, &read_all(&bytes, 1));
            prop_assert!(whole.0.iter().all(|capsule| capsule.value.len() <= MAX_VALUE));
        }
    }
}
