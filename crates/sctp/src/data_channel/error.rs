//! Errors of calls.

use core::fmt;

use crate::error::Error;

/// Why a call on the channels of an association failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelError {
    /// There is no channel on this stream.
    NoChannel,
    /// The channel is closing, or the association has ended.
    NotOpen,
    /// There is already a channel on this stream, or its number exceeds the negotiated ones.
    BadStream,
    /// The maximum number of channels is reached, or no stream is left.
    TooManyChannels,
    /// A label or protocol has more than 65,535 bytes.
    NameTooLong,
    /// The message exceeds the peer's maximum or the size of the send buffer.
    MessageTooLarge {
        /// The maximum message size, in bytes.
        limit: usize,
    },
    /// There is no space now; wait for [`super::ChannelEvent::Writable`].
    Full,
    /// An error of the association.
    Association(Error),
}

impl From<Error> for ChannelError {
    fn from(error: Error) -> Self {
        match error {
            Error::Full => Self::Full,
            Error::MessageTooLarge { limit } => Self::MessageTooLarge { limit },
            Error::NoAssociation | Error::WrongState => Self::NotOpen,
            Error::NoSuchStream => Self::BadStream,
            other => Self::Association(other),
        }
    }
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChannel => f.write_str("there is no data channel on this stream"),
            Self::NotOpen => f.write_str("the data channel or its association is closing"),
            Self::BadStream => f.write_str("the stream is in use, or exceeds the negotiated ones"),
            Self::TooManyChannels => f.write_str("the maximum number of data channels is reached"),
            Self::NameTooLong => f.write_str("a label or protocol has more than 65,535 bytes"),
            Self::MessageTooLarge { limit } => {
                write!(f, "the message is larger than the {limit} bytes that can be sent")
            }
            Self::Full => f.write_str("the send buffer is full; wait until it is writable"),
            Self::Association(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ChannelError {}
