//! The messages of the Data Channel Establishment Protocol (RFC 8832 §5).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! | Type = 3      | Channel Type  |           Priority            |
//! +---------------+---------------+-------------------------------+
//! |                     Reliability Parameter                     |
//! +-------------------------------+-------------------------------+
//! |         Label Length          |        Protocol Length        |
//! +-------------------------------+-------------------------------+
//! \                     Label, then Protocol                      \
//! +---------------------------------------------------------------+
//! ```
//!
//! A DATA_CHANNEL_ACK is the byte 2 alone.

use alloc::string::String;
use bytes::{BufMut, Bytes, BytesMut};
use core::time::Duration;

use crate::message::MessageReliability;

/// DATA_CHANNEL_ACK (RFC 8832 §8.2.1).
const ACK: u8 = 0x02;

/// DATA_CHANNEL_OPEN (RFC 8832 §8.2.1).
const OPEN: u8 = 0x03;

/// The length of a DATA_CHANNEL_OPEN before its label.
const FIXED: usize = 12;

/// The bit of the channel type for unordered delivery.
const UNORDERED: u8 = 0x80;

/// The default priority of a channel: "below normal" would be 128, "high" 512 (RFC 8831 §6.4).
pub const NORMAL_PRIORITY: u16 = 256;

/// A DATA_CHANNEL_OPEN message: how both sides are to send on a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcepOpen {
    /// Whether messages are delivered in order.
    pub ordered: bool,
    /// When messages are abandoned. The wire format has lifetimes in milliseconds.
    pub reliability: MessageReliability,
    /// The priority relative to other channels, usually 256.
    pub priority: u16,
    /// The label, which need not be unique; at most 65,535 bytes.
    pub label: String,
    /// The subprotocol, registered or private; at most 65,535 bytes.
    pub protocol: String,
}

/// A message of DCEP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DcepMessage {
    /// A request to open a channel on the stream on which this was received.
    Open(DcepOpen),
    /// The channel is open.
    Ack,
}

impl DcepMessage {
    /// Parses a message with the payload protocol identifier 50. Returns `None` if it is of an
    /// unknown type, has the wrong length, or has names that are not UTF-8.
    #[must_use]
    pub fn parse(message: &[u8]) -> Option<Self> {
        match *message.first()? {
            ACK => (message.len() == 1).then_some(Self::Ack),
            OPEN => DcepOpen::parse(message).map(Self::Open),
            _ => None,
        }
    }

    /// Returns the encoded message.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Open(open) => open.to_bytes(),
            Self::Ack => Bytes::from_static(&[ACK]),
        }
    }
}

impl DcepOpen {
    fn parse(message: &[u8]) -> Option<Self> {
        let (fixed, name_bytes) = message.split_first_chunk::<FIXED>()?;
        let u16_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let parameter = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
        let reliability = match fixed[1] & !UNORDERED {
            0 => MessageReliability::Reliable,
            1 => MessageReliability::Retransmissions(u16::try_from(parameter).unwrap_or(u16::MAX)),
            2 => MessageReliability::Lifetime(Duration::from_millis(parameter.into())),
            _ => return None,
        };
        let (label, protocol) = name_bytes.split_at_checked(u16_at(8).into())?;
        if protocol.len() != usize::from(u16_at(10)) {
            return None;
        }
        let text = |bytes: &[u8]| core::str::from_utf8(bytes).ok().map(String::from);
        Some(Self {
            ordered: fixed[1] & UNORDERED == 0,
            reliability,
            priority: u16_at(2),
            label: text(label)?,
            protocol: text(protocol)?,
        })
    }

    /// Truncates names that are too long for the format; callers check user input before.
    fn to_bytes(&self) -> Bytes {
        let (kind, parameter) = match self.reliability {
            MessageReliability::Retransmissions(most) => (1, most.into()),
            MessageReliability::Lifetime(lifetime) => {
                (2, u32::try_from(lifetime.as_millis()).unwrap_or(u32::MAX))
            }
            // DCEP cannot express priorities between messages.
            MessageReliability::Reliable | MessageReliability::Priority(_) => (0, 0),
        };
        let (label, label_len) = truncated(&self.label);
        let (protocol, protocol_len) = truncated(&self.protocol);
        let mut message = BytesMut::with_capacity(FIXED + label.len() + protocol.len());
        message.put_u8(OPEN);
        message.put_u8(kind | if self.ordered { 0 } else { UNORDERED });
        message.put_u16(self.priority);
        message.put_u32(parameter);
        message.put_u16(label_len);
        message.put_u16(protocol_len);
        message.put_slice(label);
        message.put_slice(protocol);
        message.freeze()
    }
}

fn truncated(name: &str) -> (&[u8], u16) {
    let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
    (&name.as_bytes()[..length.into()], length)
}

#[cfg(test)]
mod tests {
    use super::{DcepMessage, DcepOpen};
    use crate::message::MessageReliability;
    use core::time::Duration;
    use proptest::prelude::*;

    /// An unordered channel "chat" with a lifetime of 3 s and the protocol "p", byte by byte.
    const CHAT: [u8; 17] =
        [0x03, 0x82, 0x01, 0x00, 0, 0, 0x0b, 0xb8, 0, 4, 0, 1, b'c', b'h', b'a', b't', b'p'];

    fn chat() -> DcepOpen {
        DcepOpen {
            ordered: false,
            reliability: MessageReliability::Lifetime(Duration::from_secs(3)),
            priority: 256,
            label: "chat".into(),
            protocol: "p".into(),
        }
    }

    //= rfc8832 §5.1, §5.2
    //# the forms of OPEN and ACK
    #[test]
    fn an_open_is_read_and_written() {
        assert_eq!(DcepMessage::parse(&CHAT), Some(DcepMessage::Open(chat())));
        assert_eq!(DcepMessage::Open(chat()).to_bytes(), CHAT[..]);
        assert_eq!(DcepMessage::parse(&[2]), Some(DcepMessage::Ack));
        assert_eq!(DcepMessage::Ack.to_bytes(), [2][..]);
    }

    //= rfc8832 §5.1
    //# label and protocol are UTF-8; others are rejected
    #[test]
    fn other_messages_are_not_parsed_as_dcep() {
        let with = |at: usize, byte: u8| {
            let mut bytes = CHAT;
            bytes[at] = byte;
            DcepMessage::parse(&bytes)
        };
        for (what, read) in [
            ("nothing", DcepMessage::parse(&[])),
            ("an unknown type", with(0, 1)),
            ("an unknown channel type", with(1, 3)),
            ("a label beyond the end", with(9, 6)),
            ("a protocol beyond the end", with(11, 2)),
            ("more than the names", with(11, 0)),
            ("a label that is not UTF-8", with(12, 0xff)),
            ("a part of the head", DcepMessage::parse(&CHAT[..11])),
            ("an acknowledgement with more", DcepMessage::parse(&[2, 0])),
        ] {
            assert_eq!(read, None, "{what}");
        }
    }

    fn reliability() -> impl Strategy<Value = MessageReliability> {
        prop_oneof![
            Just(MessageReliability::Reliable),
            any::<u16>().prop_map(MessageReliability::Retransmissions),
            any::<u32>()
                .prop_map(|ms| MessageReliability::Lifetime(Duration::from_millis(ms.into()))),
        ]
    }

    proptest! {
        #[test]
        fn written_messages_are_read_back(
            ordered: bool,
            reliability in reliability(),
            priority: u16,
            label in ".{0,40}",
            protocol in ".{0,40}",
        ) {
            let open = DcepMessage::Open(DcepOpen { ordered, reliability, priority, label, protocol });
            prop_assert_eq!(DcepMessage::parse(&open.to_bytes()), Some(open));
        }

        #[test]
        fn arbitrary_bytes_never_panic_in_dcep(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(message) = DcepMessage::parse(&bytes) {
                prop_assert_eq!(DcepMessage::parse(&message.to_bytes()), Some(message));
            }
        }
    }
}
