//! What the user of channels is told.

use bytes::Bytes;

use super::payload::Kind;
use crate::identifier::StreamId;
use crate::io;

/// What [`super::DataChannels::poll_output`] gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// What the endpoint gave: packets to send, events that are not about channels, and at last the
    /// time at which to call again.
    Endpoint(io::Output),
    /// Something happened to a channel.
    Channel(ChannelEvent),
}

/// Something happened to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelEvent {
    /// It is open: the peer said so, or opened it itself.
    Opened {
        /// Its stream.
        id: StreamId,
        /// Whether the peer opened it.
        by_peer: bool,
    },
    /// A message came.
    Message {
        /// The channel's stream.
        id: StreamId,
        /// Whether it is a text.
        kind: Kind,
        /// All of it.
        data: Bytes,
    },
    /// What waits to be sent has fallen to the threshold (`bufferedamountlow`).
    BufferedAmountLow {
        /// The channel's stream.
        id: StreamId,
    },
    /// There is room for messages again, after one was refused with [`super::ChannelError::Full`].
    Writable,
    /// The peer closes it, or broke its rules: no more can be sent, what waits still goes.
    Closing {
        /// The channel's stream.
        id: StreamId,
    },
    /// It is closed. Its stream may be given to another channel from now on.
    Closed {
        /// The channel's stream.
        id: StreamId,
    },
}
