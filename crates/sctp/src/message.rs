//! A user message and what goes with it (RFC 6458 §5.3).

use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

use crate::identifier::{PathId, Ppid, StreamId};
use crate::serial::Tsn;

/// How a message is to be sent: `SCTP_SNDINFO` and `SCTP_PRINFO` of RFC 6458 §5.3.4 and §5.3.7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendInfo {
    /// On which stream.
    pub stream: StreamId,
    /// The application's own identifier.
    pub ppid: Ppid,
    /// Whether it may overtake the messages of its stream.
    pub unordered: bool,
    /// Whether the peer is asked to acknowledge at once (RFC 7053).
    pub sack_immediately: bool,
    /// When to give up on it.
    pub reliability: Reliability,
    /// The path to prefer while it is active, instead of the primary one.
    pub path: Option<PathId>,
    /// What the caller gets back when the message could not be sent.
    pub context: u32,
}

/// When a message is given up (RFC 3758, RFC 7496).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reliability {
    /// Never.
    #[default]
    Reliable,
    /// When it has not been acknowledged this long after it was handed in (RFC 7496 §4.1, timed).
    Lifetime(Duration),
    /// When it has been retransmitted this often (RFC 7496 §4.1, limited retransmissions).
    Retransmissions(u16),
    /// When the send buffer is full and a message of higher priority wants in; a lower number is a
    /// higher priority (RFC 7496 §4.2).
    Priority(u32),
}

/// A message, or a part of one, as it came in: `SCTP_RCVINFO` of RFC 6458 §5.3.5 and the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// On which stream.
    pub stream: StreamId,
    /// The application's own identifier.
    pub ppid: Ppid,
    /// Whether it could overtake the messages of its stream.
    pub unordered: bool,
    /// The number of the message within its stream (SSN or MID); of no meaning if unordered
    /// without interleaving.
    pub number: u32,
    /// The TSN of its first chunk in this part.
    pub tsn: Tsn,
    /// Whether this is the first part of the message.
    pub begins: bool,
    /// Whether the message ends here; more parts follow otherwise (partial delivery).
    pub ends: bool,
    /// The data, in pieces as they came; shares memory with the packets.
    pub data: Vec<Bytes>,
}

impl Message {
    /// Bytes of data in this part.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.iter().map(Bytes::len).sum()
    }

    /// Whether there is no data. No message on the wire is empty, but the last part of one may be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.iter().all(Bytes::is_empty)
    }

    /// The data in one piece; copies only if it came in several.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        if self.data.len() == 1 { self.data.remove(0) } else { self.data.concat().into() }
    }
}
