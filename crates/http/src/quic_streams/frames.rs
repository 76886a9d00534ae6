//! Passes on the frames of a stream one at a time (RFC 9114 §7.1).
//!
//! The h3 crate keeps every frame except `DATA` in memory before it parses it, and a peer may
//! announce 2^62 bytes. It also reads once per frame and keeps what it does not need yet, so that a
//! peer which fills its packets with one-byte frames grows the buffer a thousandfold; it takes an
//! empty `DATA` frame for the end of a message; and it panics on, or accepts as complete, a `DATA`
//! frame that is cut off by the end of the stream. So this parses the stream: it limits lengths,
//! passes on at most the head of one frame or a part of its payload at a time, skips empty `DATA`
//! frames, and knows whether the end of the stream is the end of a frame.

use bytes::{Buf, Bytes};

/// The maximum size of a frame that is buffered whole, except for a message's head.
pub(super) const FRAME_SLACK: u64 = 64 * 1024;

/// The maximum length of a unidirectional stream other than the control stream (the QPACK streams,
/// which carry little without a dynamic table).
const SIDE_STREAM_BYTES: u64 = 1024 * 1024;

/// The maximum length of a frame header: two variable-length integers (RFC 9000 §16).
const HEADER_BYTES: usize = 16;

const CONTROL_STREAM: u64 = 0x00;
const DATA_FRAME: u64 = 0x00;
/// RFC 9114 §7.2.6.
const GOAWAY_FRAME: u64 = 0x07;

/// A violation in the frames of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// A frame or a stream exceeds the limit of what is buffered.
    #[error("a frame or stream of the peer exceeds the limit")]
    TooLong,
    /// The stream ended within a `DATA` frame.
    #[error("the stream ended in the middle of a DATA frame")]
    Truncated,
}

/// Parses one stream.
#[derive(Debug)]
pub(super) struct Frames {
    limit: u64,
    state: State,
    head: Head,
    /// The payload of a GOAWAY on the control stream, while it is read.
    goaway: Option<Head>,
    /// Whether this is the control stream.
    is_control: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    StreamType,
    FrameHead,
    Payload { left: u64, is_data: bool },
    SideStream { left: u64 },
}

impl Frames {
    /// Creates a filter for a request stream.
    pub(super) const fn request(limit: u64) -> Self {
        Self::new(limit, State::FrameHead)
    }

    /// Creates a filter for a unidirectional stream.
    pub(super) const fn unidirectional(limit: u64) -> Self {
        Self::new(limit, State::StreamType)
    }

    const fn new(limit: u64, state: State) -> Self {
        Self { limit, state, head: Head::NEW, goaway: None, is_control: false }
    }

    /// Returns the identifier in a GOAWAY, once, after it was passed on as a whole.
    pub(super) fn take_goaway(&mut self) -> Option<u64> {
        let is_whole = !matches!(self.state, State::Payload { .. });
        let payload = self.goaway.take_if(|_| is_whole)?;
        varint(payload.bytes()).map(|(id, _)| id)
    }

    /// Reads the next item from `input`; `None` when it is exhausted.
    pub(super) fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, FrameError> {
        while !input.is_empty() {
            match self.state {
                State::Payload { left, is_data } => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                    self.state = match left - length as u64 {
                        0 => State::FrameHead,
                        left => State::Payload { left, is_data },
                    };
                    let part = input.split_to(length);
                    if let Some(goaway) = &mut self.goaway {
                        part.iter().for_each(|byte| goaway.push(*byte));
                    }
                    return Ok(Some(part));
                }
                State::SideStream { left } => {
                    let left = left.checked_sub(input.len() as u64).ok_or(FrameError::TooLong)?;
                    self.state = State::SideStream { left };
                    return Ok(Some(std::mem::take(input)));
                }
                State::StreamType => {
                    self.head.push(input.get_u8());
                    if let Some((kind, _)) = varint(self.head.bytes()) {
                        self.is_control = kind == CONTROL_STREAM;
                        self.state = match kind {
                            CONTROL_STREAM => State::FrameHead,
                            _ => State::SideStream { left: SIDE_STREAM_BYTES },
                        };
                        return Ok(Some(self.head.take()));
                    }
                }
                State::FrameHead => {
                    self.head.push(input.get_u8());
                    if let Some(head) = self.frame()? {
                        return Ok(Some(head));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the header of a frame, if it is complete and the frame is to be passed on.
    fn frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some((kind, rest)) = varint(self.head.bytes()) else { return Ok(None) };
        let Some((length, _)) = varint(rest) else { return Ok(None) };
        let head = self.head.take();
        let is_data = kind == DATA_FRAME;
        if !is_data && length > self.limit {
            return Err(FrameError::TooLong);
        }
        if length > 0 {
            self.state = State::Payload { left: length, is_data };
            self.goaway = (self.is_control && kind == GOAWAY_FRAME).then_some(Head::NEW);
        }
        Ok((length > 0 || !is_data).then_some(head))
    }

    /// Returns how much is left of the payload of a `DATA` frame: it continues what was passed on last.
    pub(super) const fn data_left(&self) -> u64 {
        match self.state {
            State::Payload { left, is_data: true } => left,
            _ => 0,
        }
    }

    /// Returns what remains to be passed on when the stream ends here.
    pub(super) fn end(&mut self) -> Result<Option<Bytes>, FrameError> {
        if let State::Payload { is_data: true, .. } = self.state {
            return Err(FrameError::Truncated);
        }
        let rest = self.head.take();
        Ok((!rest.is_empty()).then_some(rest))
    }
}

/// An incomplete frame header.
#[derive(Debug)]
struct Head {
    bytes: [u8; HEADER_BYTES],
    length: usize,
}

impl Head {
    const NEW: Self = Self { bytes: [0; HEADER_BYTES], length: 0 };

    /// Adds a byte. Two integers of eight bytes each are complete before the buffer is full.
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn take(&mut self) -> Bytes {
        let taken = Bytes::copy_from_slice(self.bytes());
        self.length = 0;
        taken
    }
}

/// Parses a variable-length integer (RFC 9000 §16) and returns what follows it, if it is complete.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, _) = bytes.split_first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = number.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    let bits = 8 * number.len() - 2;
    Some((value & ((1 << bits) - 1), rest))
}

// With a path, because the fuzz target includes this file by itself.
#[cfg(test)]
#[path = "frames/tests.rs"]
mod tests;
