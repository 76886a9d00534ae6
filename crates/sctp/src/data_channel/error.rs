//! Why a call was refused.

use core::fmt;

use crate::error::Error;

/// Why a call on the channels of an association was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelError {
    /// There is no channel on this stream.
    NoChannel,
    /// The channel is closing, or the association has ended.
    NotOpen,
    /// There is a channel on this stream already, or its number is beyond those agreed on.
    BadStream,
    /// There are as many channels as there may be, or no stream is left.
    TooManyChannels,
    /// A label or protocol has more than 65,535 bytes.
    NameTooLong,
    /// The peer takes no message as large, or the send buffer never holds it.
    MessageTooLarge {
        /// The largest message, in bytes.
        limit: usize,
    },
    /// There is no room now; wait for [`super::ChannelEvent::Writable`].
    Full,
    /// The association refused for a reason of its own.
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
            Self::BadStream => f.write_str("the stream is in use, or beyond those agreed on"),
            Self::TooManyChannels => f.write_str("there are as many data channels as there may be"),
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
