//! Misuse by the local caller (RFC 9114 asks it of senders): the only kind of error that a call returns
//! because of its arguments.

use core::fmt;

/// Why a call failed. Nothing has changed and nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// A head, content or trailers where the order of a message (RFC 9114 §4.1) does not allow them.
    OutOfOrder,
    /// More or less content than Content-Length announces, or content where there must be none.
    ContentLength {
        /// What was announced, in bytes.
        announced: u64,
        /// What would have been sent.
        sent: u64,
    },
    /// The field section is larger than the peer accepts (RFC 9114 §4.2.2).
    FieldSectionTooLarge {
        /// Its size as RFC 9114 counts it, in bytes.
        size: u64,
        /// The peer's SETTINGS_MAX_FIELD_SECTION_SIZE.
        limit: u64,
    },
    /// A message that the peer would find malformed.
    Malformed(crate::message::MessageFault),
    /// The peer has said that it takes no further requests (RFC 9114 §5.2): use another connection.
    GoingAway,
    /// The connection has ended.
    Closed,
    /// There is no such stream, or it has ended.
    NoSuchStream,
    /// Only the other role can do this.
    OtherRole,
    /// The peer has not offered this extension in its SETTINGS.
    NotNegotiated,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfOrder => f.write_str("a message is a head, then content, then trailers"),
            Self::ContentLength { announced, sent } => {
                write!(f, "Content-Length announces {announced} bytes, not {sent}")
            }
            Self::FieldSectionTooLarge { size, limit } => {
                write!(f, "the fields have {size} bytes, and the peer accepts {limit}")
            }
            Self::Malformed(fault) => write!(f, "the message is malformed: {fault}"),
            Self::GoingAway => f.write_str("the peer takes no more requests on this connection"),
            Self::Closed => f.write_str("the connection has ended"),
            Self::NoSuchStream => f.write_str("there is no such stream, or it has ended"),
            Self::OtherRole => f.write_str("only the other end of the connection can do this"),
            Self::NotNegotiated => f.write_str("the peer has not offered this extension"),
        }
    }
}

impl core::error::Error for Misuse {}
