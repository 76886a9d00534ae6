//! What middleboxes read of a TCP segment (RFC 9293 §3.1).

use crate::packet::{Packet, protocol};

/// Bytes of a header without options.
const MIN_HEADER: usize = 20;
/// The SYN flag, in the byte at offset 13.
pub(super) const SYN: u8 = 0x02;

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpSegment<'a> {
    pub(super) sequence: u32,
    pub(super) flags: u8,
    pub(super) data: &'a [u8],
}

impl<'a> TcpSegment<'a> {
    pub(super) fn from_packet(packet: &'a Packet) -> Option<Self> {
        let bytes = &packet.payload[..];
        if packet.protocol != protocol::TCP || bytes.len() < MIN_HEADER {
            return None;
        }
        let sequence = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
        let data = bytes.get(usize::from(bytes[12] >> 4) * 4..).unwrap_or(&[]);
        Some(Self { sequence, flags: bytes[13], data })
    }
}
