//! Control messages (`cmsghdr`) of 64-bit machines, and the structs in those of SCTP
//! (RFC 6458 §5.3).

use super::layout::{array, i32_at, put_i32, put_u16, put_u32, u16_at, u32_at, write_field};

/// The size of a `cmsghdr`: its length, level and type.
pub const HEADER: usize = 16;

/// The alignment of control messages.
const ALIGNMENT: usize = 8;

/// The size of the largest struct in a received control message.
pub const LARGEST: usize = 32;

/// A control message as passed by the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlMessage<'a> {
    /// `cmsg_level`.
    pub level: i32,
    /// `cmsg_type`.
    pub kind: i32,
    /// The contents.
    pub data: &'a [u8],
}

/// A `cmsghdr` whose length is smaller than its own size or exceeds the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedControl;

/// An iterator over control messages.
#[derive(Clone, Debug)]
pub struct ControlMessages<'a> {
    rest: &'a [u8],
}

impl<'a> ControlMessages<'a> {
    /// Returns the control messages in `msg_control`.
    #[must_use]
    pub fn new(control: &'a [u8]) -> Self {
        Self { rest: control }
    }
}

impl<'a> Iterator for ControlMessages<'a> {
    type Item = Result<ControlMessage<'a>, MalformedControl>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.len() < HEADER {
            return None;
        }
        let bytes = self.rest;
        let length = u64::from_ne_bytes(array(bytes, 0));
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(data) = bytes.get(HEADER..length) else {
            self.rest = &[];
            return Some(Err(MalformedControl));
        };
        self.rest = bytes.get(padded(length)..).unwrap_or_default();
        Some(Ok(ControlMessage { level: i32_at(bytes, 8), kind: i32_at(bytes, 12), data }))
    }
}

/// Returns the length rounded up to a multiple of 8.
#[must_use]
pub const fn padded(length: usize) -> usize {
    length.div_ceil(ALIGNMENT) * ALIGNMENT
}

/// Returns the header of a control message, which the struct follows. The whole message has
/// [`padded`]`(HEADER + length)` bytes.
#[must_use]
pub fn header(level: i32, kind: i32, length: usize) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    write_field(&mut bytes, 0, &((HEADER + length) as u64).to_ne_bytes());
    put_i32(&mut bytes, 8, level);
    put_i32(&mut bytes, 12, kind);
    bytes
}

/// `struct sctp_sndrcvinfo` (RFC 6458 §5.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SndRcvInfo {
    /// `sinfo_stream`.
    pub stream: u16,
    /// `sinfo_ssn`.
    pub ssn: u16,
    /// `sinfo_flags`.
    pub flags: u16,
    /// `sinfo_ppid`, in the byte order of the program.
    pub ppid: u32,
    /// `sinfo_context`.
    pub context: u32,
    /// `sinfo_timetolive`, in milliseconds; with another policy, the value of that policy.
    pub time_to_live: u32,
    /// `sinfo_tsn`.
    pub tsn: u32,
    /// `sinfo_cumtsn`.
    pub cumulative_tsn: u32,
    /// `sinfo_assoc_id`.
    pub association: i32,
}

impl SndRcvInfo {
    /// The size in bytes.
    pub const LENGTH: usize = 32;

    /// Parses the struct.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        Self {
            stream: u16_at(bytes, 0),
            ssn: u16_at(bytes, 2),
            flags: u16_at(bytes, 4),
            ppid: u32_at(bytes, 8),
            context: u32_at(bytes, 12),
            time_to_live: u32_at(bytes, 16),
            tsn: u32_at(bytes, 20),
            cumulative_tsn: u32_at(bytes, 24),
            association: i32_at(bytes, 28),
        }
    }

    /// Returns the encoded struct.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        put_u16(&mut bytes, 0, self.stream);
        put_u16(&mut bytes, 2, self.ssn);
        put_u16(&mut bytes, 4, self.flags);
        put_u32(&mut bytes, 8, self.ppid);
        put_u32(&mut bytes, 12, self.context);
        put_u32(&mut bytes, 16, self.time_to_live);
        put_u32(&mut bytes, 20, self.tsn);
        put_u32(&mut bytes, 24, self.cumulative_tsn);
        put_i32(&mut bytes, 28, self.association);
        bytes
    }
}

/// `struct sctp_sndinfo` (RFC 6458 §5.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SndInfo {
    /// `snd_sid`.
    pub stream: u16,
    /// `snd_flags`.
    pub flags: u16,
    /// `snd_ppid`, in the byte order of the program.
    pub ppid: u32,
    /// `snd_context`.
    pub context: u32,
    /// `snd_assoc_id`.
    pub association: i32,
}

impl SndInfo {
    /// The size in bytes.
    pub const LENGTH: usize = 16;

    /// Parses the struct.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        Self {
            stream: u16_at(bytes, 0),
            flags: u16_at(bytes, 2),
            ppid: u32_at(bytes, 4),
            context: u32_at(bytes, 8),
            association: i32_at(bytes, 12),
        }
    }

    /// Returns the encoded struct.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        put_u16(&mut bytes, 0, self.stream);
        put_u16(&mut bytes, 2, self.flags);
        put_u32(&mut bytes, 4, self.ppid);
        put_u32(&mut bytes, 8, self.context);
        put_i32(&mut bytes, 12, self.association);
        bytes
    }
}

/// `struct sctp_rcvinfo` (RFC 6458 §5.3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcvInfo {
    /// `rcv_sid`.
    pub stream: u16,
    /// `rcv_ssn`.
    pub ssn: u16,
    /// `rcv_flags`.
    pub flags: u16,
    /// `rcv_ppid`, in the byte order of the peer.
    pub ppid: u32,
    /// `rcv_tsn`.
    pub tsn: u32,
    /// `rcv_cumtsn`.
    pub cumulative_tsn: u32,
    /// `rcv_context`.
    pub context: u32,
    /// `rcv_assoc_id`.
    pub association: i32,
}

impl RcvInfo {
    /// The size in bytes.
    pub const LENGTH: usize = 28;

    /// Returns the encoded struct.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        put_u16(&mut bytes, 0, self.stream);
        put_u16(&mut bytes, 2, self.ssn);
        put_u16(&mut bytes, 4, self.flags);
        put_u32(&mut bytes, 8, self.ppid);
        put_u32(&mut bytes, 12, self.tsn);
        put_u32(&mut bytes, 16, self.cumulative_tsn);
        put_u32(&mut bytes, 20, self.context);
        put_i32(&mut bytes, 24, self.association);
        bytes
    }

    /// Parses the struct.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        Self {
            stream: u16_at(bytes, 0),
            ssn: u16_at(bytes, 2),
            flags: u16_at(bytes, 4),
            ppid: u32_at(bytes, 8),
            tsn: u32_at(bytes, 12),
            cumulative_tsn: u32_at(bytes, 16),
            context: u32_at(bytes, 20),
            association: i32_at(bytes, 24),
        }
    }
}

/// `struct sctp_nxtinfo` (RFC 6458 §5.3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NxtInfo {
    /// `nxt_sid`.
    pub stream: u16,
    /// `nxt_flags`.
    pub flags: u16,
    /// `nxt_ppid`, in the byte order of the peer.
    pub ppid: u32,
    /// `nxt_length`.
    pub length: u32,
    /// `nxt_assoc_id`.
    pub association: i32,
}

impl NxtInfo {
    /// The size in bytes.
    pub const LENGTH: usize = 16;

    /// Returns the encoded struct.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        put_u16(&mut bytes, 0, self.stream);
        put_u16(&mut bytes, 2, self.flags);
        put_u32(&mut bytes, 4, self.ppid);
        put_u32(&mut bytes, 8, self.length);
        put_i32(&mut bytes, 12, self.association);
        bytes
    }
}
