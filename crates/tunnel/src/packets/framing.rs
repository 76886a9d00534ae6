//! Packets in a byte stream: the length of each, in two bytes and network byte order, and the packet.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The length of the field before each packet.
pub const LENGTH: usize = 2;

/// Sent in the place of a packet by an end that also accepts packets as QUIC datagrams or SCTP messages. No IP
/// packet begins like this (RFC 791 §3.1, RFC 8200 §3).
pub const TAKES_DATAGRAMS: [u8; 1] = [0];

/// Appends a packet to the buffer. One that is longer than any IP packet is left out.
pub fn append_packet(packet: &[u8], into: &mut BytesMut) {
    if let Ok(length) = u16::try_from(packet.len()) {
        into.put_u16(length);
        into.put_slice(packet);
    }
}

/// Removes the first packet from the buffer, if it is complete. It is not validated, and may be empty.
pub fn remove_packet(from: &mut BytesMut) -> Option<Bytes> {
    let length = usize::from(from.get(..LENGTH)?.get_u16());
    if from.len() < LENGTH + length {
        return None;
    }
    from.advance(LENGTH);
    Some(from.split_to(length).freeze())
}
