//! The result of a call.

use super::{VERSION, i32_at, u32_at, write_at};

/// The size of a response before its data: everything of a received message except its content, so
/// that it can be read with one system call.
pub const RESPONSE: usize = 256;
/// The maximum size of a peer's name.
pub const MAX_PEER: usize = 32;
/// The maximum size of control messages.
pub const MAX_CONTROL: usize = RESPONSE - HEADER - MAX_PEER;

/// The size of the numeric fields.
const HEADER: usize = 32;

/// What the library must do to the descriptor, because it is possible only at the program's end of
/// the pair.
pub mod mark {
    /// Add a filler: nothing can be sent any more.
    pub const ADD_FILLER: u32 = 1;
    /// Write no more messages to the descriptor, and make its buffer small again, before a filler
    /// is added.
    pub const STOP_WRITING: u32 = 2;

    const BUFFER_SHIFT: u32 = 2;
    const BUFFER_UNIT: usize = 4096;
    const BUFFER_UNITS: u32 = 0xfff;
    const TOKEN_SHIFT: u32 = 14;

    /// Returns the mark to give the descriptor a buffer of this size, rounded down, and to write
    /// messages to it.
    #[must_use]
    pub const fn of_buffer(bytes: usize) -> u32 {
        let units = bytes / BUFFER_UNIT;
        let most = BUFFER_UNITS as usize;
        (if units < most { units as u32 } else { BUFFER_UNITS }) << BUFFER_SHIFT
    }

    /// Returns the size of the buffer; 0 if it does not change.
    #[must_use]
    pub const fn buffer(marks: u32) -> usize {
        (marks >> BUFFER_SHIFT & BUFFER_UNITS) as usize * BUFFER_UNIT
    }

    /// Returns the mark to remove this number of tokens: something has been read, and possibly
    /// there is nothing left.
    #[must_use]
    pub const fn of_tokens(count: u32) -> u32 {
        count << TOKEN_SHIFT
    }

    /// Returns the number of tokens to remove.
    #[must_use]
    pub const fn tokens(marks: u32) -> u32 {
        marks >> TOKEN_SHIFT
    }
}

/// A response without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The return value of the call, or a negative errno.
    pub result: i32,
    /// A combination of [`mark`] bits.
    pub marks: u32,
    /// `msg_flags` of a received message.
    pub flags: i32,
    /// The number of bytes of data that follow.
    pub data: u32,
    peer_length: u32,
    control_length: u32,
    peer: [u8; MAX_PEER],
    control: [u8; MAX_CONTROL],
}

impl Response {
    /// Creates a response with only this result.
    #[must_use]
    pub const fn new(result: i32) -> Self {
        Self {
            result,
            marks: 0,
            flags: 0,
            data: 0,
            peer_length: 0,
            control_length: 0,
            peer: [0; MAX_PEER],
            control: [0; MAX_CONTROL],
        }
    }

    /// Adds a name, truncated if it is too long.
    #[must_use]
    pub fn with_peer(mut self, peer: &[u8]) -> Self {
        let length = peer.len().min(MAX_PEER);
        write_at(&mut self.peer, 0, &peer[..length]);
        self.peer_length = length as u32;
        self
    }

    /// Adds control messages, omitting those that do not fit.
    #[must_use]
    pub fn with_control(mut self, control: &[u8]) -> Self {
        if control.len() <= MAX_CONTROL {
            write_at(&mut self.control, 0, control);
            self.control_length = control.len() as u32;
        }
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn peer(&self) -> &[u8] {
        self.peer.get(..self.peer_length as usize).unwrap_or_default()
    }

    /// Returns the control messages.
    #[must_use]
    pub fn control(&self) -> &[u8] {
        self.control.get(..self.control_length as usize).unwrap_or_default()
    }

    /// Returns the encoded response, without its data.
    #[must_use]
    pub fn encode(&self) -> [u8; RESPONSE] {
        let mut bytes = [0; RESPONSE];
        write_at(&mut bytes, 0, &VERSION.to_ne_bytes());
        write_at(&mut bytes, 4, &self.result.to_ne_bytes());
        write_at(&mut bytes, 8, &self.marks.to_ne_bytes());
        write_at(&mut bytes, 12, &self.flags.to_ne_bytes());
        write_at(&mut bytes, 16, &self.data.to_ne_bytes());
        write_at(&mut bytes, 20, &self.peer_length.to_ne_bytes());
        write_at(&mut bytes, 24, &self.control_length.to_ne_bytes());
        write_at(&mut bytes, HEADER, &self.peer);
        write_at(&mut bytes, HEADER + MAX_PEER, &self.control);
        bytes
    }

    /// Parses a response; `None` if it is of another version or not a response.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != RESPONSE || u32_at(bytes, 0)? != VERSION {
            return None;
        }
        let response = Self {
            result: i32_at(bytes, 4)?,
            marks: u32_at(bytes, 8)?,
            flags: i32_at(bytes, 12)?,
            data: u32_at(bytes, 16)?,
            peer_length: u32_at(bytes, 20)?,
            control_length: u32_at(bytes, 24)?,
            peer: *bytes.get(HEADER..)?.first_chunk()?,
            control: *bytes.get(HEADER + MAX_PEER..)?.first_chunk()?,
        };
        let fits = response.peer_length as usize <= MAX_PEER
            && response.control_length as usize <= MAX_CONTROL;
        fits.then_some(response)
    }
}
