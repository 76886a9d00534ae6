//! Packets beside streams: one that is lost holds up no other.
//!
//! Over QUIC they are datagrams (RFC 9221), which QUIC protects as it protects streams; one that is lost is not sent
//! again. quinn sends whatever datagrams wait before any stream, so packets are handed in by turns, and between two
//! turns streams are served ([`Turns`]). Over SCTP they are unordered messages with a lifetime (RFC 7496), on a
//! stream of their own, which has the share of one stream.

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

/// The stream of messages: beyond all that carry channels, and the last of those that `eyas` asks for.
const MESSAGES: StreamId = StreamId(1023);
/// How long the datagrams of a turn are to take until they have left.
const TURN: Duration = Duration::from_millis(10);
/// The shortest time that streams are given between two turns, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// Bytes of a turn: at first, at least, and at most.
const FIRST: usize = 16 * 1024;
const LEAST: usize = 4 * 1024;
const MOST: usize = 256 * 1024;
/// STREAM frames that leave in a pause even if no connection has anything to send, such as credit.
const FEW_FRAMES: u64 = 2;

/// How the datagrams and the streams of a connection take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// Bytes of the next turn of datagrams.
    pub(super) bytes: usize,
    /// How long streams are served after it.
    pub(super) pause: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Self { bytes: FIRST, pause: PAUSES.0 }
    }
}

impl Turns {
    /// A turn of that many bytes took so long, and in the pause after it so many STREAM frames left. Streams that
    /// use their pause get as long a one as the datagrams had.
    pub(super) fn after(&mut self, sent: usize, took: Duration, frames: u64) {
        if took > 2 * TURN {
            self.bytes = (self.bytes / 2).max(LEAST);
        } else if took < TURN / 2 && sent >= self.bytes {
            self.bytes = (self.bytes * 2).min(MOST);
        }
        let are_busy = frames > FEW_FRAMES;
        self.pause = if are_busy { took.clamp(PAUSES.0, PAUSES.1) } else { PAUSES.0 };
    }
}

/// What the transport of a session carries beside streams, if packets are to use it.
#[derive(Debug)]
pub(super) struct Datagrams {
    by: Option<By>,
    /// The other end has said that it takes packets by them.
    are_taken: AtomicBool,
}

/// What packets are sent by.
#[derive(Debug)]
pub(super) enum By {
    /// QUIC datagrams.
    Quic(Connection),
    /// SCTP messages.
    Sctp(Box<SctpMessages>),
}

/// What became of a packet that was to be a datagram.
pub(super) enum Handed {
    /// It is one.
    In,
    /// It is for the channel.
    Back(Bytes),
}

impl Datagrams {
    /// None where the transport has nothing but streams, or an end does without.
    pub(super) fn of(paths: Option<&Paths>) -> Self {
        let quic = || paths?.quic().filter(|quic| quic.max_datagram_size().is_some()).cloned();
        let sctp = || messages(paths?.sctp()?).map(Box::new);
        let by = quic().map(By::Quic).or_else(|| sctp().map(By::Sctp));
        Self { by, are_taken: AtomicBool::new(false) }
    }

    /// Whether this end takes packets by them.
    pub(super) fn are_there(&self) -> bool {
        self.by.is_some()
    }

    /// The other end takes packets by them.
    pub(super) fn take(&self) {
        self.are_taken.store(true, Relaxed);
    }

    /// What to send packets by.
    pub(super) fn ready(&self) -> Option<&By> {
        self.by.as_ref().filter(|_| self.are_taken.load(Relaxed))
    }

    /// Gives the interface what comes. It does not end by itself: the session does.
    pub(super) async fn receive(&self, with: &Attachment) {
        while let Some(packet) = self.next().await {
            with.receive(&packet);
            consume_budget().await;
        }
        std::future::pending().await
    }

    async fn next(&self) -> Option<Bytes> {
        match self.by.as_ref()? {
            By::Quic(quic) => quic.read_datagram().await.ok(),
            By::Sctp(messages) => messages.receive().await.ok()?,
        }
    }
}

/// The messages of an association that carries a session, which has them once.
fn messages(streams: &SctpStreams) -> Option<SctpMessages> {
    let messages = streams.messages(MESSAGES).inspect_err(|why| {
        tracing::debug!(%why, "packets of a tunnel go through its channel");
    });
    messages.ok()
}

/// Sends a packet as a datagram, unless it is too long for one.
pub(super) async fn hand_in(quic: &Connection, packet: Bytes) -> Handed {
    if quic.max_datagram_size().is_none_or(|most| packet.len() > most) {
        return Handed::Back(packet);
    }
    match quic.send_datagram_wait(packet.clone()).await {
        Ok(()) => Handed::In,
        // The path may have become narrower just now.
        Err(SendDatagramError::TooLarge) => Handed::Back(packet),
        // Of a connection that is lost the session hears otherwise.
        Err(_) => Handed::In,
    }
}

/// Waits until the datagrams that were handed in at this time have left, of which there is room for `room` bytes
/// where none waits, and then until streams have had their turn.
pub(super) async fn give_way(
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
    fn a_turn_takes_about_as_long_on_every_link() {
        for rate in [10_000_u32, 1_000_000, 20_000_000] {
            let mut turns = Turns::default();
            for _ in 0..20 {
                let took = Duration::from_secs(turns.bytes as u64) / rate;
                turns.after(turns.bytes, took, 0);
            }
            let takes = Duration::from_secs(turns.bytes as u64) / rate;
            let is_settled = (TURN / 2..=2 * TURN).contains(&takes);
            assert!(is_settled || turns.bytes == LEAST, "{rate} B/s: {takes:?}");
            assert_eq!(turns.pause, PAUSES.0);
        }
    }

    #[test]
    fn streams_that_are_busy_have_as_long_a_turn() {
        let mut turns = Turns::default();
        turns.after(FIRST, TURN, FEW_FRAMES + 1);
        assert_eq!(turns.pause, TURN);
        turns.after(FIRST, Duration::from_secs(1), FEW_FRAMES + 1);
        assert_eq!(turns.pause, PAUSES.1);
        turns.after(FIRST, TURN, FEW_FRAMES);
        assert_eq!(turns.pause, PAUSES.0);
    }

    #[test]
    fn little_to_send_makes_no_turn_longer() {
        let mut turns = Turns::default();
        turns.after(100, Duration::ZERO, 0);
        assert_eq!(turns, Turns::default());
    }
}
