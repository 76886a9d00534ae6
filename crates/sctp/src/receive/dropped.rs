//! The dropped data of a message that will not be complete.

use crate::identifier::StreamId;

/// An abandoned message and its stored data.
#[derive(Debug)]
pub(crate) struct DroppedMessage {
    pub(crate) stream: StreamId,
    pub(crate) unordered: bool,
    /// As in [`crate::message::Message::number`].
    pub(crate) number: u32,
    /// Bytes of user data.
    pub(crate) bytes: usize,
    /// Chunks.
    pub(crate) chunks: usize,
    /// Messages whose own memory is to be released.
    pub(crate) messages: usize,
    /// Chunks that shared memory with packets.
    pub(crate) borrowed: usize,
    /// Whether a part of it was delivered.
    pub(crate) partial: bool,
}
