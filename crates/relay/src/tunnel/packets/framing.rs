//! Packets in a stream of bytes: the length of each, in two bytes and network byte order, and the packet.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// Bytes before each packet.
pub const LENGTH: usize = 2;

/// What stands in the place of a packet: the end that sends it takes packets beside the channel, too, as QUIC
/// datagrams or SCTP messages. No packet of IP begins like this (RFC 791 §3.1, RFC 8200 §3).
pub const TAKES_DATAGRAMS: [u8; 1] = [0];

/// Puts a packet behind what is in the buffer; one that is longer than any packet of IP is left out.
pub fn put(packet: &[u8], into: &mut BytesMut) {
    if let Ok(length) = u16::try_from(packet.len()) {
        into.put_u16(length);
        into.put_slice(packet);
    }
}

/// Takes the first packet out of the buffer, once it is whole. It may be anything, and empty.
pub fn take(from: &mut BytesMut) -> Option<Bytes> {
    let length = usize::from(from.get(..LENGTH)?.get_u16());
    if from.len() < LENGTH + length {
        return None;
    }
    from.advance(LENGTH);
    Some(from.split_to(length).freeze())
}
