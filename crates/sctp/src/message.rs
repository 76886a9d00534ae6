//! User messages and their parameters (RFC 6458 §5.3).

use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

use crate::identifier::{PathId, Ppid, StreamId};
use crate::serial::Tsn;
use crate::wire::PACKET_HEADER;
use crate::wire::chunk::{DATA_HEADER, I_DATA_HEADER};

/// The parameters of an outgoing message: `SCTP_SNDINFO` and `SCTP_PRINFO` of RFC 6458 §5.3.4 and
/// §5.3.7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendInfo {
    /// The stream.
    pub stream: StreamId,
    /// The payload protocol identifier of the application.
    pub ppid: Ppid,
    /// Whether it is sent unordered.
    pub unordered: bool,
    /// Whether the peer is asked to acknowledge at once (RFC 7053).
    pub sack_immediately: bool,
    /// When to abandon the message.
    pub reliability: MessageReliability,
    /// The path to use while it is active, instead of the primary one.
    pub path: Option<PathId>,
    /// A value that is returned if the message could not be delivered.
    pub context: u32,
}

/// When a message is abandoned (RFC 3758, RFC 7496).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageReliability {
    /// Never.
    #[default]
    Reliable,
    /// When it has not been acknowledged for this long after it was sent (RFC 3758 §4.1, timed).
    Lifetime(Duration),
    /// After this number of retransmissions (RFC 7496 §3.1, limited retransmissions).
    Retransmissions(u16),
    /// When the send buffer is full and a message of higher priority is sent; lower values are
    /// higher priorities (RFC 7496 §3.2).
    Priority(u32),
}

/// Returns the largest message, in bytes of user data, that an SCTP packet of `packet` bytes with its
/// common header carries whole, in DATA or, with `interleaving`, in I-DATA. Of a larger one the rest
/// begins another packet: messages that exceed it by little fill every second packet only with
/// crumbs. A path knows it from its MTU: [`crate::endpoint::PathStatus::largest_message`].
///
/// ```
/// use eyas_sctp::message::largest_in_packet;
///
/// // 1,500 bytes less the header of IPv4.
/// assert_eq!(largest_in_packet(1480, false), 1452);
/// assert_eq!(largest_in_packet(1480, true), 1448);
/// ```
#[must_use]
pub const fn largest_in_packet(packet: usize, interleaving: bool) -> usize {
    let header = if interleaving { I_DATA_HEADER } else { DATA_HEADER };
    // Chunks are padded to multiples of four bytes.
    (packet & !3).saturating_sub(PACKET_HEADER + header)
}

/// A received message, or a part of one: `SCTP_RCVINFO` of RFC 6458 §5.3.5 and the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The stream.
    pub stream: StreamId,
    /// The payload protocol identifier of the application.
    pub ppid: Ppid,
    /// Whether it was sent unordered.
    pub unordered: bool,
    /// The number of the message within its stream (SSN or MID); meaningless for unordered messages
    /// without interleaving.
    pub number: u32,
    /// The TSN of its first chunk in this part.
    pub tsn: Tsn,
    /// Whether this is the first part of the message.
    pub begins: bool,
    /// Whether this is the last part of the message; otherwise more parts follow (partial
    /// delivery).
    pub ends: bool,
    /// The data, in the pieces in which it arrived; shares memory with the packets.
    pub data: MessagePieces,
}

impl Message {
    /// Returns the number of bytes in this part.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Returns whether there is no data. No message on the wire is empty, but the last part of one
    /// may be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the data in one piece; copies only if it arrived in several.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.data.into_bytes()
    }
}

/// Data in the pieces in which it arrived. A single piece, the usual case for small messages, needs
/// no further allocation.
#[derive(Clone, Debug)]
pub enum MessagePieces {
    /// The data arrived in one chunk.
    One(Bytes),
    /// The data arrived in several chunks, or there is none.
    Many(Vec<Bytes>),
}

impl MessagePieces {
    /// Returns the number of bytes in all pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().iter().map(Bytes::len).sum()
    }

    /// Returns whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_slice().iter().all(Bytes::is_empty)
    }

    /// Returns the pieces in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Bytes] {
        match self {
            Self::One(piece) => core::slice::from_ref(piece),
            Self::Many(pieces) => pieces,
        }
    }

    /// Returns an iterator over the pieces in order.
    pub fn iter(&self) -> core::slice::Iter<'_, Bytes> {
        self.as_slice().iter()
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        match self {
            Self::One(first) => *self = Self::Many(alloc::vec![core::mem::take(first), piece]),
            Self::Many(pieces) => pieces.push(piece),
        }
    }

    /// Returns the data in one piece; copies only if it arrived in several.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::One(piece) => piece,
            Self::Many(mut pieces) if pieces.len() == 1 => pieces.remove(0),
            Self::Many(pieces) => pieces.concat().into(),
        }
    }
}

impl Default for MessagePieces {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl From<Bytes> for MessagePieces {
    fn from(piece: Bytes) -> Self {
        Self::One(piece)
    }
}

impl From<Vec<Bytes>> for MessagePieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self::Many(pieces)
    }
}

impl<'a> IntoIterator for &'a MessagePieces {
    type Item = &'a Bytes;
    type IntoIter = core::slice::Iter<'a, Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Equal if the bytes are the same, however they are cut.
impl PartialEq for MessagePieces {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().flatten().eq(other.iter().flatten())
    }
}

impl Eq for MessagePieces {}

#[cfg(test)]
mod tests {
    use super::MessagePieces;
    use bytes::Bytes;

    #[test]
    fn pieces_are_equal_however_they_are_cut() {
        let mut cut = MessagePieces::from(Bytes::from_static(b"ab"));
        cut.push(Bytes::from_static(b"c"));
        assert_eq!(cut, MessagePieces::from(Bytes::from_static(b"abc")));
        assert_ne!(cut, MessagePieces::from(Bytes::from_static(b"abd")));
        assert_eq!(cut.into_bytes(), "abc");
        assert!(MessagePieces::default().is_empty());
    }
}
