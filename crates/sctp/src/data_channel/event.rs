//! Events of channels.

use bytes::Bytes;

use super::payload::MessageKind;
use crate::identifier::StreamId;
use crate::io;

/// The outputs of [`super::DataChannels::poll_output`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataChannelOutput {
    /// An output of the endpoint: packets to send, events that do not concern channels, and finally
    /// the time of the next call.
    Endpoint(io::Output),
    /// An event of a channel.
    Channel(ChannelEvent),
}

/// An event of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelEvent {
    /// The channel is open: the peer has confirmed it, or opened it itself.
    Opened {
        /// The stream of the channel.
        id: StreamId,
        /// Whether the peer opened it.
        by_peer: bool,
    },
    /// A message arrived.
    Message {
        /// The stream of the channel.
        id: StreamId,
        /// Whether it is text or binary.
        kind: MessageKind,
        /// The whole message.
        data: Bytes,
    },
    /// The buffered amount has fallen to the threshold (`bufferedamountlow`).
    BufferedAmountLow {
        /// The stream of the channel.
        id: StreamId,
    },
    /// There is space for messages again, after [`super::ChannelError::Full`].
    Writable,
    /// The peer closes the channel, or violated its rules: nothing more can be sent, but waiting
    /// messages still are.
    Closing {
        /// The stream of the channel.
        id: StreamId,
    },
    /// The channel is closed. Its stream may now be reused for another channel.
    Closed {
        /// The stream of the channel.
        id: StreamId,
    },
}
