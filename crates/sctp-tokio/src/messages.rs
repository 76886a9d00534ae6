//! Messages beside the byte streams of an association, for data that is useless once it is late.

use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::{Message, MessageReliability, SendInfo};

use super::{SctpAssociation, SctpError};

/// Messages on one stream of an association: unordered, each with a lifetime (RFC 7496). One that is
/// lost holds up neither other messages nor byte streams. Inside DTLS they are protected like all that
/// the association carries, so they come from its peer alone, each at most once. Dropped, it discards
/// what still arrives.
#[derive(Debug)]
pub struct SctpMessages {
    association: SctpAssociation,
    stream: StreamId,
}

impl SctpMessages {
    /// Sends and receives messages on a stream that was opened for them.
    pub(super) fn new(association: SctpAssociation, stream: StreamId) -> Self {
        Self { association, stream }
    }

    /// Sends a message, and waits for space in the send buffer. It is given up if it has not
    /// arrived within its lifetime, and retransmitted before that if it was lost. It must be
    /// shorter than the peer's partial delivery point (RFC 6458 §8.1.21), a quarter of its receive
    /// buffer by default. Cancel-safe: a message is accepted whole or not at all.
    ///
    /// # Errors
    /// If the association cannot send the message, now or ever.
    pub async fn send(&self, message: &[u8], lifetime: Duration) -> Result<(), SctpError> {
        if message.is_empty() {
            return Err(Misuse::EmptyMessage.into());
        }
        let reliability = MessageReliability::Lifetime(lifetime);
        let info =
            SendInfo { stream: self.stream, unordered: true, reliability, ..SendInfo::default() };
        self.association.send(&info, Bytes::copy_from_slice(message)).await
    }

    /// Waits for the next message. Returns `None` once the peer has finished. Cancel-safe.
    ///
    /// # Errors
    /// If the association was lost.
    pub async fn receive(&self) -> Result<Option<Bytes>, SctpError> {
        while let Some(message) = self.association.receive_on(self.stream).await? {
            // A message so large that it is delivered in parts is not one of ours.
            if message.begins && message.ends {
                return Ok(Some(contents(message)));
            }
            tokio::task::consume_budget().await;
        }
        Ok(None)
    }

    /// Waits until at most this number of bytes of its messages are waiting to be sent, or the
    /// association is over. Cancel-safe.
    pub async fn unsent_below(&self, most: usize) {
        self.association.unsent_below(self.stream, most).await;
    }
}

impl Drop for SctpMessages {
    fn drop(&mut self) {
        self.association.discard_stream(self.stream);
    }
}

fn contents(message: Message) -> Bytes {
    match message.data.as_slice() {
        [whole] => whole.clone(),
        parts => parts.concat().into(),
    }
}
