//! The payload protocol identifiers of messages (RFC 8831 §8), and empty messages, which SCTP
//! cannot carry (§6.6).

use bytes::Bytes;

use crate::identifier::Ppid;

/// The payload protocol identifiers of WebRTC (RFC 8831 §8).
pub mod ppid {
    use crate::identifier::Ppid;

    /// A DCEP message.
    pub const DCEP: Ppid = Ppid(50);
    /// A text message, or its last part.
    pub const STRING: Ppid = Ppid(51);
    /// A part of a binary message other than the last one (deprecated).
    pub const BINARY_PARTIAL: Ppid = Ppid(52);
    /// A binary message, or its last part.
    pub const BINARY: Ppid = Ppid(53);
    /// A part of a text message other than the last one (deprecated).
    pub const STRING_PARTIAL: Ppid = Ppid(54);
    /// An empty text message.
    pub const STRING_EMPTY: Ppid = Ppid(56);
    /// An empty binary message.
    pub const BINARY_EMPTY: Ppid = Ppid(57);
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// Text. It is not checked to be valid UTF-8.
    Text,
    /// Bytes.
    Binary,
}

impl MessageKind {
    /// Returns a message as SCTP carries it: an empty one is a zero byte.
    pub(super) fn to_wire(self, data: Bytes) -> (Ppid, Bytes) {
        let zero = Bytes::from_static(&[0]);
        match (self, data.is_empty()) {
            (Self::Text, false) => (ppid::STRING, data),
            (Self::Text, true) => (ppid::STRING_EMPTY, zero),
            (Self::Binary, false) => (ppid::BINARY, data),
            (Self::Binary, true) => (ppid::BINARY_EMPTY, zero),
        }
    }
}

/// The type of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ChannelPayload {
    /// A DCEP message.
    Dcep,
    /// A user message, or its last part.
    Whole(MessageKind),
    /// A part of a user message, split in the deprecated way.
    Part(MessageKind),
    /// An empty user message: the payload is ignored.
    Empty(MessageKind),
}

impl ChannelPayload {
    /// Returns the type for an identifier; `None` if it is not one of WebRTC's.
    pub(super) const fn from_ppid(identifier: Ppid) -> Option<Self> {
        Some(match identifier {
            ppid::DCEP => Self::Dcep,
            ppid::STRING => Self::Whole(MessageKind::Text),
            ppid::BINARY_PARTIAL => Self::Part(MessageKind::Binary),
            ppid::BINARY => Self::Whole(MessageKind::Binary),
            ppid::STRING_PARTIAL => Self::Part(MessageKind::Text),
            ppid::STRING_EMPTY => Self::Empty(MessageKind::Text),
            ppid::BINARY_EMPTY => Self::Empty(MessageKind::Binary),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ChannelPayload, MessageKind, ppid};
    use crate::identifier::Ppid;

    //= rfc8831 §6.6
    //# PPIDs 51, 53, 56, 57; an empty message is one zero byte
    #[test]
    fn an_empty_message_is_a_zero_byte_with_an_identifier_of_its_own() {
        for (kind, full, empty) in [
            (MessageKind::Text, ppid::STRING, ppid::STRING_EMPTY),
            (MessageKind::Binary, ppid::BINARY, ppid::BINARY_EMPTY),
        ] {
            assert_eq!(kind.to_wire("ab".into()), (full, "ab".into()));
            assert_eq!(kind.to_wire("".into()), (empty, vec![0].into()));
            assert_eq!(ChannelPayload::from_ppid(full), Some(ChannelPayload::Whole(kind)));
            assert_eq!(ChannelPayload::from_ppid(empty), Some(ChannelPayload::Empty(kind)));
        }
        assert_eq!(ChannelPayload::from_ppid(Ppid(55)), None);
        assert_eq!(ChannelPayload::from_ppid(Ppid(0)), None);
    }
}
