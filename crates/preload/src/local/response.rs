//! What a call comes to.

use super::{VERSION, i32_at, put, u32_at};

/// Bytes of a response before its data: everything of a received message but the message, so that one
/// system call reads it all.
pub const RESPONSE: usize = 256;
/// Room for a peer's name.
pub const MAX_PEER: usize = 32;
/// Room for control messages.
pub const MAX_CONTROL: usize = RESPONSE - HEADER - MAX_PEER;

/// Bytes of the numbers.
const HEADER: usize = 32;

/// What the library is to do to the descriptor, for only who has the program's end can.
pub mod mark {
    /// Take a token out: there is nothing to read any more.
    pub const TAKE_IN: u32 = 1;
    /// Put a filler in: nothing can be sent any more.
    pub const FILL_OUT: u32 = 2;
}

/// All of a response but its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// What the call returns, or an errno below 0.
    pub result: i32,
    /// Some of [`mark`].
    pub marks: u32,
    /// `msg_flags` of a received message.
    pub flags: i32,
    /// Bytes of data that follow.
    pub data: u32,
    peer_length: u32,
    control_length: u32,
    peer: [u8; MAX_PEER],
    control: [u8; MAX_CONTROL],
}

impl Response {
    /// One that says only this.
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

    /// With a name; one that is too long is cut.
    #[must_use]
    pub fn with_peer(mut self, peer: &[u8]) -> Self {
        let length = peer.len().min(MAX_PEER);
        put(&mut self.peer, 0, &peer[..length]);
        self.peer_length = length as u32;
        self
    }

    /// With control messages; more than there is room for are left out.
    #[must_use]
    pub fn with_control(mut self, control: &[u8]) -> Self {
        if control.len() <= MAX_CONTROL {
            put(&mut self.control, 0, control);
            self.control_length = control.len() as u32;
        }
        self
    }

    /// The name in it.
    #[must_use]
    pub fn peer(&self) -> &[u8] {
        self.peer.get(..self.peer_length as usize).unwrap_or_default()
    }

    /// The control messages in it.
    #[must_use]
    pub fn control(&self) -> &[u8] {
        self.control.get(..self.control_length as usize).unwrap_or_default()
    }

    /// The response as it is sent, before its data.
    #[must_use]
    pub fn encode(&self) -> [u8; RESPONSE] {
        let mut bytes = [0; RESPONSE];
        put(&mut bytes, 0, &VERSION.to_ne_bytes());
        put(&mut bytes, 4, &self.result.to_ne_bytes());
        put(&mut bytes, 8, &self.marks.to_ne_bytes());
        put(&mut bytes, 12, &self.flags.to_ne_bytes());
        put(&mut bytes, 16, &self.data.to_ne_bytes());
        put(&mut bytes, 20, &self.peer_length.to_ne_bytes());
        put(&mut bytes, 24, &self.control_length.to_ne_bytes());
        put(&mut bytes, HEADER, &self.peer);
        put(&mut bytes, HEADER + MAX_PEER, &self.control);
        bytes
    }

    /// Reads a response. None: it is of another version, or none.
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
