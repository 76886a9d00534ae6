//! Packets beside the streams of a transport, where a lost packet does not delay the others.
//!
//! Over QUIC they are datagrams (RFC 9221), which are protected like streams and not retransmitted. quinn sends
//! waiting datagrams before any stream, so packets are passed to it in turns, and between two turns streams are
//! served ([`SendingTurns`]). Over SCTP they are unordered messages with a lifetime (RFC 7496), on a stream of their
//! own, which has the share of one stream.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use eyas::SctpStreams;
use eyas::quinn::{Connection, SendDatagramError};
use eyas_sctp_tokio::SctpMessages;
use eyas_sctp_tokio::protocol::identifier::StreamId;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep};

use super::interface::InterfaceAttachment;
use crate::paths::ConnectionPaths;

/// The stream of messages: the last of those that `eyas` requests, beyond all that have channels.
const MESSAGES: StreamId = StreamId(1023);
/// How long sending the datagrams of a turn should take.
const TURN: Duration = Duration::from_millis(10);
/// The shortest and the longest pause for streams between two turns.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));
/// The size of the first turn, in bytes.
const FIRST: usize = 16 * 1024;
/// The smallest turn, which is one packet or two, and the largest one, in bytes.
const MIN: usize = 1024;
const MAX: usize = 256 * 1024;
/// What streams may send at least in each pause, in bytes: two packets. On a path that is full, that takes
/// as long as acknowledgments and pacing require.
const CHANCE: f64 = 3000.0;

/// How the datagrams and the streams of a connection take turns. A turn that finds no packets waiting is continued
/// with the next ones: even if they arrive one by one, they could fill the path and leave nothing to the streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SendingTurns {
    /// The size of a turn of datagrams, in bytes.
    bytes: usize,
    /// What was sent in this turn, in bytes, and how long that took.
    sent: usize,
    took: Duration,
    /// Whether so many packets waited that they filled the turn at once.
    is_filled_at_once: bool,
    /// How much the streams may send in the next pause, in bytes: twice what they sent in the last one.
    wanted: f64,
}

impl Default for SendingTurns {
    fn default() -> Self {
        Self { bytes: FIRST, sent: 0, took: Duration::ZERO, is_filled_at_once: false, wanted: 0.0 }
    }
}

impl SendingTurns {
    /// Returns how much may still be sent in this turn, in bytes.
    pub(super) fn left(&self) -> usize {
        self.bytes.saturating_sub(self.sent)
    }

    /// Adds what was sent, in bytes, and how long that took. If the turn is over, returns the pause for streams
    /// after it, which is as long as the turn if they have used all of the pauses before.
    fn add(&mut self, sent: usize, took: Duration) -> Option<Duration> {
        self.is_filled_at_once = self.sent == 0 && sent >= self.bytes;
        self.sent += sent;
        self.took += took;
        if self.left() > 0 {
            return None;
        }
        let (least, longest) = PAUSES;
        let for_streams = |bytes: f64| self.took.mul_f64(bytes / self.sent as f64);
        let pause = for_streams(self.wanted).min(self.took).max(for_streams(CHANCE));
        Some(pause.clamp(least, longest))
    }

    /// Begins the next turn after a pause in which streams sent this many bytes.
    fn begin(&mut self, used: u64) {
        if self.took > 2 * TURN {
            self.bytes = (self.bytes / 2).max(MIN);
        } else if self.took < TURN / 2 && self.is_filled_at_once {
            self.bytes = (self.bytes * 2).min(MAX);
        }
        *self = Self { bytes: self.bytes, wanted: 2.0 * used as f64, ..Self::default() };
    }
}

/// The datagrams or messages of a session's transport.
#[derive(Debug)]
pub(super) struct SessionDatagrams {
    method: Option<DatagramMethod>,
    /// Whether the other end has announced that it accepts them.
    are_accepted: AtomicBool,
}

/// How packets are sent beside streams.
#[derive(Debug)]
pub(super) enum DatagramMethod {
    /// As QUIC datagrams.
    Quic(Connection),
    /// As SCTP messages.
    Sctp(Box<SctpMessages>),
}

/// A packet that is too long for a datagram.
pub(super) struct TooLong(pub(super) Bytes);

impl SessionDatagrams {
    /// Returns those of this connection, if its transport supports them.
    pub(super) fn from_paths(paths: Option<&ConnectionPaths>) -> Self {
        let quic = || paths?.quic().filter(|quic| quic.max_datagram_size().is_some()).cloned();
        let sctp = || messages(paths?.sctp()?).map(Box::new);
        let method = quic().map(DatagramMethod::Quic).or_else(|| sctp().map(DatagramMethod::Sctp));
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
    pub(super) fn ready(&self) -> Option<&DatagramMethod> {
        self.method.as_ref().filter(|_| self.are_accepted.load(Relaxed))
    }

    /// Passes received packets to the interface. Never returns, even if the session ends.
    pub(super) async fn receive(&self, attachment: &InterfaceAttachment) {
        while let Some(packet) = self.next().await {
            attachment.receive(&packet);
            consume_budget().await;
        }
        std::future::pending().await
    }

    async fn next(&self) -> Option<Bytes> {
        match self.method.as_ref()? {
            DatagramMethod::Quic(quic) => quic.read_datagram().await.ok(),
            DatagramMethod::Sctp(messages) => messages.receive().await.ok()?,
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

/// Waits until the datagrams sent since this time have left, and if their turn is over, for the streams' pause.
/// `room` is the free space of the send buffer when it is empty.
pub(super) async fn yield_to_streams(
    quic: &Connection,
    began: Instant,
    sent: usize,
    room: usize,
    turns: &mut SendingTurns,
) {
    while quic.datagram_send_buffer_space() < room && quic.close_reason().is_none() {
        sleep((began.elapsed() / 4).clamp(PAUSES.0, TURN)).await;
    }
    if let Some(pause) = turns.add(sent, began.elapsed()) {
        let before = quic.stats().udp_tx.bytes;
        sleep(pause).await;
        turns.begin(quic.stats().udp_tx.bytes - before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how long it takes to send this on a link with this rate, in bytes per second.
    fn time_of(bytes: usize, rate: u32) -> Duration {
        Duration::from_secs(bytes as u64) / rate
    }

    /// Runs turns until they have settled, between which streams use this much of their pauses. Returns the duration
    /// of a turn and of the pause after it.
    fn settled(rate: u32, use_of: f64) -> (Duration, Duration) {
        let mut turns = SendingTurns::default();
        let mut durations = (Duration::ZERO, Duration::ZERO);
        for _ in 0..20 {
            let took = time_of(turns.left(), rate);
            let pause = turns.add(turns.left(), took).expect("the turn is over");
            turns.begin((pause.as_secs_f64() * use_of * f64::from(rate)) as u64);
            durations = (took, pause);
        }
        durations
    }

    #[test]
    fn turns_take_about_the_same_time_on_every_link() {
        for rate in [20_000, 250_000, 1_000_000, 20_000_000] {
            let (took, _) = settled(rate, 0.0);
            let is_settled = (TURN / 2..=2 * TURN).contains(&took);
            assert!(is_settled || took == time_of(MIN, rate), "{rate} B/s: {took:?}");
        }
    }

    #[test]
    fn busy_streams_get_as_much_time_as_datagrams_or_two_packets() {
        for rate in [50_000, 250_000, 1_000_000, 20_000_000] {
            let (took, pause) = settled(rate, 1.0);
            assert_eq!(pause, took.max(time_of(CHANCE as usize, rate)), "{rate} B/s");
        }
    }

    #[test]
    fn quiet_streams_can_send_two_packets_in_each_pause() {
        for rate in [50_000, 250_000, 1_000_000, 20_000_000] {
            let (_, pause) = settled(rate, 0.01);
            assert_eq!(pause, time_of(CHANCE as usize, rate).max(PAUSES.0), "{rate} B/s");
        }
        assert_eq!(settled(1000, 1.0).1, PAUSES.1);
    }

    #[test]
    fn packets_that_come_one_by_one_end_their_turn_too() {
        let mut turns = SendingTurns::default();
        let pauses = (0..100).filter_map(|_| {
            let pause = turns.add(FIRST / 4, TURN / 4)?;
            turns.begin(0);
            Some(pause)
        });
        assert_eq!(pauses.count(), 25);
    }

    #[test]
    fn a_turn_that_is_not_full_is_not_extended() {
        let mut turns = SendingTurns::default();
        assert_eq!(turns.add(100, Duration::ZERO), None);
        assert_eq!(turns.bytes, FIRST);
        // Packets that come slowly say nothing about what the path carries at once.
        assert!(turns.add(FIRST, Duration::ZERO).is_some());
        turns.begin(0);
        assert_eq!(turns, SendingTurns::default());
    }
}
