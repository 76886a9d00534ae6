//! Protected messages beside the byte streams of an association, for data that is useless once it
//! is late.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `protection` | messages under keys that TLS exports; pure | RFC 8446 §7.5, RFC 8439 |
//! | `window` | which messages have arrived; pure | RFC 4303 §3.4.3 |

mod protection;
#[cfg(test)]
mod tests;
mod window;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::{Message, Reliability, SendInfo};

pub(super) use protection::Keys;
use protection::{Opener, Sealer};

use super::{SctpAssociation, SctpError};

/// Messages on one stream of an association with TLS: unordered, each with a lifetime (RFC 7496),
/// and protected under keys that the TLS session of stream 0 exports. So they come from its peer
/// alone, each at most once. One that is lost holds up neither other messages nor byte streams.
/// Dropped, it discards what still arrives.
#[derive(Debug)]
pub struct SctpMessages {
    association: SctpAssociation,
    stream: StreamId,
    sealer: Mutex<Sealer>,
    opener: Mutex<Opener>,
}

impl SctpMessages {
    /// Sends and receives messages on a stream that was opened for them.
    pub(super) fn new(association: SctpAssociation, stream: StreamId, keys: Keys) -> Self {
        let (sealer, opener) = keys.split(stream.0);
        let (sealer, opener) = (Mutex::new(sealer), Mutex::new(opener));
        Self { association, stream, sealer, opener }
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
        let reliability = Reliability::Lifetime(lifetime);
        let info =
            SendInfo { stream: self.stream, unordered: true, reliability, ..SendInfo::default() };
        let sealed = lock(&self.sealer).seal(message).ok_or(SctpError::Closed)?;
        self.association.send(&info, sealed).await
    }

    /// Waits for the next message. Returns `None` once the peer has finished. What the peer did not
    /// send, or has arrived before, is dropped. Cancel-safe.
    ///
    /// # Errors
    /// If the association was lost.
    pub async fn receive(&self) -> Result<Option<Bytes>, SctpError> {
        while let Some(message) = self.association.receive_on(self.stream).await? {
            // A message so large that it is delivered in parts is not one of ours.
            if message.begins && message.ends {
                let opened = lock(&self.opener).open(contents(&message));
                if opened.is_some() {
                    return Ok(opened);
                }
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

fn contents(message: &Message) -> Vec<u8> {
    message.data.as_slice().concat()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
