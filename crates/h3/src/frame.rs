//! Frames (RFC 9114 §7.1): an incremental reader that knows no rules, and a writer.

use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use crate::frame_type::FrameType;
use crate::varint::{self, PartialVarint};

/// The longest payload of a frame of an unknown type that is skipped, in bytes. An endpoint should track
/// what features such as unknown frames cost it, and limit it (RFC 9114 §10.5).
pub const MAX_IGNORED_FRAME: u64 = 64 * 1024;

/// What a [`FrameReader`] does with the payload of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Its parts are passed on as they arrive, as slices of the input.
    Parts,
    /// It is kept until it is whole. The caller has checked its length.
    Whole,
    /// It is discarded as it arrives.
    Skip,
}

/// What a [`FrameReader`] has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameRead {
    /// A part of the payload of a frame, never empty; a slice of the input.
    Part(Bytes),
    /// The whole payload of a frame; a slice of the input if it arrived at once.
    Whole(FrameType, Bytes),
}

/// Reads the frames of one stream, whatever parts it arrives in.
#[derive(Debug, Default)]
pub struct FrameReader {
    state: State,
}

#[derive(Debug)]
enum State {
    Type(PartialVarint),
    Length(FrameType, PartialVarint),
    Parts { left: u64 },
    Whole { frame: FrameType, left: usize, kept: BytesMut },
    Skip { left: u64 },
}

impl Default for State {
    fn default() -> Self {
        Self::Type(PartialVarint::default())
    }
}

impl FrameReader {
    /// Takes bytes off `input` until something is read, and returns `None` when the input is used up.
    /// `admit` decides about each frame by its type and the length of its payload in bytes, once.
    ///
    /// # Errors
    /// What `admit` returns. The reader cannot be used after that.
    pub fn read<E>(
        &mut self,
        input: &mut Bytes,
        mut admit: impl FnMut(FrameType, u64) -> Result<Treatment, E>,
    ) -> Result<Option<FrameRead>, E> {
        loop {
            match &mut self.state {
                State::Type(partial) => {
                    let Some(value) = partial.read(input) else { return Ok(None) };
                    let frame = FrameType::from_value(value);
                    self.state = State::Length(frame, PartialVarint::default());
                }
                &mut State::Length(frame, ref mut partial) => {
                    let Some(length) = partial.read(input) else { return Ok(None) };
                    let treatment = admit(frame, length)?;
                    self.state = State::payload(frame, length, treatment);
                }
                State::Parts { left: 0 } | State::Skip { left: 0 } => {
                    self.state = State::default();
                }
                State::Whole { left: 0, .. } => return Ok(self.end_whole()),
                _ if input.is_empty() => return Ok(None),
                State::Parts { left } => {
                    return Ok(Some(FrameRead::Part(split(input, left))));
                }
                State::Skip { left } => {
                    split(input, left);
                }
                State::Whole { frame, left, kept } if kept.is_empty() && input.len() >= *left => {
                    let read = FrameRead::Whole(*frame, input.split_to(*left));
                    self.state = State::default();
                    return Ok(Some(read));
                }
                State::Whole { left, kept, .. } => {
                    let part = input.split_to(input.len().min(*left));
                    *left -= part.len();
                    kept.extend_from_slice(&part);
                }
            }
        }
    }

    fn end_whole(&mut self) -> Option<FrameRead> {
        match core::mem::take(&mut self.state) {
            State::Whole { frame, kept, .. } => Some(FrameRead::Whole(frame, kept.freeze())),
            _ => None,
        }
    }

    /// Returns how much is left of a frame that is passed on in parts, in bytes.
    #[must_use]
    pub const fn part_left(&self) -> u64 {
        match &self.state {
            State::Parts { left } => *left,
            _ => 0,
        }
    }

    /// Returns whether the stream may end here: not within a frame.
    #[must_use]
    pub const fn is_at_boundary(&self) -> bool {
        match &self.state {
            State::Type(partial) => partial.is_empty(),
            State::Parts { left } | State::Skip { left } => *left == 0,
            State::Length(..) | State::Whole { .. } => false,
        }
    }
}

impl State {
    fn payload(frame: FrameType, length: u64, treatment: Treatment) -> Self {
        match treatment {
            Treatment::Parts => Self::Parts { left: length },
            Treatment::Skip => Self::Skip { left: length },
            Treatment::Whole => {
                let left = usize::try_from(length).unwrap_or(usize::MAX);
                Self::Whole { frame, left, kept: BytesMut::new() }
            }
        }
    }
}

/// Takes at most `left` bytes off `input`.
fn split(input: &mut Bytes, left: &mut u64) -> Bytes {
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
    *left -= length as u64;
    input.split_to(length)
}

/// The beginning of a frame: its type and the length of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    bytes: [u8; Self::MAX_BYTES],
    length: u8,
}

impl FrameHeader {
    /// The longest header, in bytes.
    pub const MAX_BYTES: usize = 2 * varint::MAX_BYTES;

    /// Returns the header of a frame with a payload of `length` bytes.
    #[must_use]
    pub fn new(frame: FrameType, length: u64) -> Self {
        let mut header = Self { bytes: [0; Self::MAX_BYTES], length: 0 };
        for value in [frame.value(), length] {
            let (encoded, size) = varint::encode(value);
            let start = usize::from(header.length);
            let shortest = &encoded[varint::MAX_BYTES - size..];
            header.bytes[start..start + size].copy_from_slice(shortest);
            header.length += size as u8;
        }
        header
    }
}

impl AsRef<[u8]> for FrameHeader {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Appends a whole frame.
pub fn write(frame: FrameType, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(FrameHeader::new(frame, payload.len() as u64).as_ref());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads frames: DATA in parts, which are joined, reserved ones skipped, others whole.
    fn read(stream: &[u8], cut: usize) -> (Vec<FrameRead>, bool) {
        let mut reader = FrameReader::default();
        let mut all: Vec<FrameRead> = Vec::new();
        for part in stream.chunks(cut.max(1)) {
            let mut part = Bytes::copy_from_slice(part);
            let admit = |frame, length| match frame {
                FrameType::Data => Ok(Treatment::Parts),
                FrameType::Reserved(_) => Ok(Treatment::Skip),
                _ if length > 100 => Err(()),
                _ => Ok(Treatment::Whole),
            };
            loop {
                match (reader.read(&mut part, admit), all.last_mut()) {
                    (Err(()), _) => return (all, false),
                    (Ok(None), _) => break assert!(part.is_empty()),
                    (Ok(Some(FrameRead::Part(more))), Some(FrameRead::Part(data))) => {
                        *data = [&data[..], &more].concat().into();
                    }
                    (Ok(Some(read)), _) => all.push(read),
                }
            }
        }
        (all, reader.is_at_boundary())
    }

    proptest! {
        #[test]
        fn what_is_read_does_not_depend_on_the_parts(
            stream in proptest::collection::vec(prop_oneof![0..6_u8, Just(0x21), any::<u8>()], 0..64),
            cut in 1..64_usize,
        ) {
            let whole = read(&stream, stream.len());
            prop_assert_eq!(&whole, &read(&stream, cut));
            prop_assert_eq!(&whole, &read(&stream, 1));
        }
    }

    #[test]
    fn a_header_is_written_in_its_shortest_form() {
        assert_eq!(FrameHeader::new(FrameType::Data, 5).as_ref(), b"\x00\x05");
        let longest = FrameHeader::new(FrameType::Reserved(varint::MAX), varint::MAX);
        assert_eq!(longest.as_ref(), [0xff; FrameHeader::MAX_BYTES]);
    }
}
