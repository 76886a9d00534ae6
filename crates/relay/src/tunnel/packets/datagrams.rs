//! Packets beside the streams of a transport, where a lost packet does not delay the others.
//!
//! Over QUIC they are datagrams (RFC 9221), which are protected like streams and not retransmitted. quinn sends
//! waiting datagrams before any stream, so packets are passed to it in turns, and between two turns streams are
//! served ([`Turns`]). Over SCTP they are unordered messages with a lifetime (RFC 7496), on a stream of their
//! own, which has the share of one stream.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use eyas::quinn::{Connection, SendDatagramError};
use eyas::sctp::protocol::identifier::StreamId;
use eyas::sctp::{SctpMessages, SctpStreams};
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep};

use super::interface::Attachment;
use crate::tunnel::paths::Paths;

/// The stream of messages: the last of those that `eyas` requests, beyond all that have channels.
const MESSAGES: StreamId = StreamId(1023);
/// How long sending the datagrams of a turn should take.
const TURN: Duration = Duration::from_millis(10);
/// The shortest and the longest pause for streams between two turns.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// The size of the first turn, in bytes.
const FIRST: usize = 16 * 1024;
/// The smallest and the largest turn, in bytes.
const MIN: usize = 4 * 1024;
const MAX: usize = 256 * 1024;
/// STREAM frames that are sent in a pause even if no connection has data, such as credit.
const FEW_FRAMES: u64 = 2;

/// How the datagrams and the streams of a connection take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// The size of the next turn of datagrams, in bytes.
    pub(super) bytes: usize,
    /// The pause for streams after it.
    pub(super) pause: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Self { bytes: FIRST, pause: PAUSES.0 }
    }
}

impl Turns {
    /// Adjusts the next turn after one of this size and duration, in whose pause this many STREAM frames were
    /// sent. If streams use their pause, it becomes as long as the turn.
    pub(super) fn after(&mut self, sent: usize, took: Duration, frames: u64) {
        if took > 2 * TURN {
            self.bytes = (self.bytes / 2).max(MIN);
        } else if took < TURN / 2 && sent >= self.bytes {
            self.bytes = (self.bytes * 2).min(MAX);
        }
        let are_busy = frames > FEW_FRAMES;
        self.pause = if are_busy { took.clamp(PAUSES.0, PAUSES.1) } else { PAUSES.0 };
    }
}

/// The datagrams or messages of a session's transport.
#[derive(Debug)]
pub(super) struct Datagrams {
    method: Option<Method>,
    /// Whether the other end has announced that it accepts them.
    are_accepted: AtomicBool,
}

/// How packets are sent beside streams.
#[derive(Debug)]
pub(super) enum Method {
    /// As QUIC datagrams.
    Quic(Connection),
    /// As SCTP messages.
    Sctp(Box<SctpMessages>),
}

/// A packet that is too long for a datagram.
pub(super) struct TooLong(pub(super) Bytes);

impl Datagrams {
    /// Returns those of this connection, if its transport supports them.
    pub(super) fn of(paths: Option<&Paths>) -> Self {
        let quic = || paths?.quic().filter(|quic| quic.max_datagram_size().is_some()).cloned();
        let sctp = || messages(paths?.sctp()?).map(Box::new);
        let method = quic().map(Method::Quic).or_else(|| sctp().map(Method::Sctp));
        Self { method, are_accepted: AtomicBool::new(false) }
    }

    /// Returns whether the transport supports them.
    pub(super) fn are_available(&self) -> bool {
        self.method.is_some()
    }

    /// Notes that the other end accepts them.
    pub(super) fn set_accepted(&self) {
        self.are_accepted.store(true, Relaxed);
    }

    /// Returns how to send packets, if the other end accepts datagrams or messages.
    pub(super) fn ready(&self) -> Option<&Method> {
        self.method.as_ref().filter(|_| self.are_accepted.load(Relaxed))
    }

    /// Passes received packets to the interface. Never returns, even if the session ends.
    pub(super) async fn receive(&self, attachment: &Attachment) {
        while let Some(packet) = self.next().await {
            attachment.receive(&packet);
            consume_budget().await;
        }
        std::future::pending().await
    }

    async fn next(&self) -> Option<Bytes> {
        match self.method.as_ref()? {
            Method::Quic(quic) => quic.read_datagram().await.ok(),
            Method::Sctp(messages) => messages.receive().await.ok()?,
        }
    }
}

/// Opens the messages of an association inside DTLS, which protects them; possible only once.
fn messages(streams: &SctpStreams) -> Option<SctpMessages> {
    let messages = streams.messages(MESSAGES).inspect_err(|why| {
        tracing::debug!(%why, "the packets of a tunnel use its channel");
    });
    messages.ok()
}

/// Sends a packet as a datagram.
///
/// # Errors
/// Returns the packet if it is too long.
pub(super) async fn send_datagram(quic: &Connection, packet: Bytes) -> Result<(), TooLong> {
    if quic.max_datagram_size().is_none_or(|limit| packet.len() > limit) {
        return Err(TooLong(packet));
    }
    match quic.send_datagram_wait(packet.clone()).await {
        // The path MTU may just have decreased.
        Err(SendDatagramError::TooLarge) => Err(TooLong(packet)),
        // The session notices otherwise that the connection is lost.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Waits until the datagrams of the turn that began at this time are sent, and then for the streams' turn.
/// `room` is the free space of the send buffer when it is empty.
pub(super) async fn yield_to_streams(
    quic: &Connection,
    began: Instant,
    sent: usize,
    room: usize,
    turns: &mut Turns,
) {
    while quic.datagram_send_buffer_space() < room && quic.close_reason().is_none() {
        sleep((began.elapsed() / 4).clamp(PAUSES.0, TURN)).await;
    }
    let (took, before) = (began.elapsed(), quic.stats().frame_tx.stream);
    if sent >= turns.bytes {
        sleep(turns.pause).await;
    }
    turns.after(sent, took, quic.stats().frame_tx.stream - before);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_take_about_the_same_time_on_every_link() {
        for rate in [10_000_u32, 1_000_000, 20_000_000] {
            let mut turns = Turns::default();
            for _ in 0..20 {
                let took = Duration::from_secs(turns.bytes as u64) / rate;
                turns.after(turns.bytes, took, 0);
            }
            let takes = Duration::from_secs(turns.bytes as u64) / rate;
            let is_settled = (TURN / 2..=2 * TURN).contains(&takes);
            assert!(is_settled || turns.bytes == MIN, "{rate} B/s: {takes:?}");
            assert_eq!(turns.pause, PAUSES.0);
        }
    }

    #[test]
    fn busy_streams_get_as_much_time_as_datagrams() {
        let mut turns = Turns::default();
        turns.after(FIRST, TURN, FEW_FRAMES + 1);
        assert_eq!(turns.pause, TURN);
        turns.after(FIRST, Duration::from_secs(1), FEW_FRAMES + 1);
        assert_eq!(turns.pause, PAUSES.1);
        turns.after(FIRST, TURN, FEW_FRAMES);
        assert_eq!(turns.pause, PAUSES.0);
    }

    #[test]
    fn a_turn_that_is_not_full_is_not_extended() {
        let mut turns = Turns::default();
        turns.after(100, Duration::ZERO, 0);
        assert_eq!(turns, Turns::default());
    }
}
