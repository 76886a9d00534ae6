//! One direction of a link: a queue, a transmitter and a wire.
//!
//! ```text
//!  offer ──▶ queue ──▶ transmitter ──▶ loss, bit errors ──▶ delay, jitter, order ──▶ poll
//!             │          (rate)            │                    (in flight)
//!             ▼                            ▼
//!         queue full, RED, CoDel         dropped
//! ```
//!
//! A link has no clock: the current time is an argument of every call, and [`Link::next_timeout`]
//! returns the time of the next call. Events since the last call are processed with the times at
//! which they were due, so a simulation that calls exactly on time and an emulator that is woken
//! late get the same rates, drops and marks. If time goes back, the latest time seen is used.

mod bit_error;
mod codel;
mod config;
mod counters;
mod jitter;
mod loss;
mod queue;
mod red;
#[cfg(test)]
mod tests;
mod trace;

use alloc::collections::VecDeque;
use core::time::Duration;

pub use config::{
    BitErrorConfig, BitErrorEffect, CoDelConfig, GilbertElliott, JitterDistribution, LinkChange,
    LinkConfig, LossConfig, QueueConfig, RedConfig, ReorderingMode,
};
pub use counters::{DropCause, LinkCounters, PacketCount};
pub use trace::{DeliveryTrace, MAX_OPPORTUNITIES, TraceError};

use crate::packet::{LinkPacket, Packet};
use crate::random::RandomStream;
use crate::time::{EpochNanos, nanos, transmission};
use bit_error::BitErrorOutcome;
use jitter::LinkJitter;
use loss::LinkLoss;
use queue::LinkQueue;
use trace::TracePlayback;

/// The maximum number of packets in flight in one direction. It bounds the memory of a link without
/// a rate, or with a long delay; packets above it count as [`DropCause::QueueFull`].
pub const MAX_IN_FLIGHT: usize = 1 << 20;

/// Random streams of a link, one for each use, so that enabling one does not change the others.
#[derive(Clone, Debug)]
struct LinkStreams {
    loss: RandomStream,
    bit_error: RandomStream,
    jitter: RandomStream,
    duplication: RandomStream,
    reordering: RandomStream,
}

/// A packet on its way to the far end.
#[derive(Clone, Debug)]
struct InFlight<P> {
    arrives: EpochNanos,
    packet: P,
}

/// One direction of a link. See the [module](self) for what happens to a packet in it.
///
/// A simulation carries [`Packet`]s; an emulator may carry packets as they are, byte for byte.
#[derive(Clone, Debug)]
pub struct Link<P = Packet> {
    rate: Option<u64>,
    playback: Option<TracePlayback>,
    delay: EpochNanos,
    jitter: LinkJitter,
    framing: usize,
    mtu: Option<usize>,
    bit_error: Option<BitErrorConfig>,
    duplication: f64,
    reordering: ReorderingMode,
    up: bool,
    seed: u64,
    now: EpochNanos,
    /// When the transmitter can take the next packet.
    free_at: EpochNanos,
    queue: LinkQueue<P>,
    loss: LinkLoss,
    streams: LinkStreams,
    /// In the order of arrival; of equal times, in the order of sending.
    flight: VecDeque<InFlight<P>>,
    /// The latest arrival among the packets that keep their order.
    last_arrival: EpochNanos,
    counters: LinkCounters,
    /// The transmission time of the last size: most packets are as large as the last one, and a
    /// division costs more than everything else.
    last_transmission: Option<(usize, EpochNanos)>,
}

impl<P: LinkPacket> Link<P> {
    /// Creates an empty link that is up. All its randomness is derived from the seed.
    #[must_use]
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        let jitter = jitter(&config);
        let rate = config.trace.as_ref().map_or(config.rate, |trace| Some(trace.rate()));
        Self {
            rate,
            playback: config.trace.map(|trace| TracePlayback::new(trace, 0)),
            delay: nanos(config.delay),
            jitter,
            framing: config.framing,
            mtu: config.mtu,
            bit_error: config.bit_error,
            duplication: config.duplication,
            reordering: config.reordering,
            up: true,
            seed,
            now: 0,
            free_at: 0,
            queue: LinkQueue::new(config.queue, seed),
            loss: LinkLoss::new(config.loss),
            streams: LinkStreams {
                loss: RandomStream::new(seed, 1),
                bit_error: RandomStream::new(seed, 2),
                jitter: RandomStream::new(seed, 3),
                duplication: RandomStream::new(seed, 4),
                reordering: RandomStream::new(seed, 5),
            },
            flight: VecDeque::new(),
            last_arrival: 0,
            counters: LinkCounters::default(),
            last_transmission: None,
        }
    }

    /// Passes a packet to the link. The counters record what happens to it; the cause is also
    /// returned if it is dropped at once.
    pub fn offer(&mut self, now: Duration, packet: P) -> Result<(), DropCause> {
        self.offer_at(nanos(now), packet)
    }

    /// Returns the next packet that has arrived at the far end by `now`.
    pub fn poll(&mut self, now: Duration) -> Option<P> {
        self.poll_at(nanos(now))
    }

    /// Returns when to call [`Self::poll`] again: at the next arrival, or at an earlier time when
    /// that is known. `None` while no packet is in the link.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        self.next().map(Duration::from_nanos)
    }

    /// Changes the link. Events that were due before `now` are processed with the old parameters.
    pub fn change(&mut self, now: Duration, change: LinkChange) {
        let now = self.advance(nanos(now));
        match change {
            LinkChange::Up => self.up = true,
            LinkChange::Down => {
                self.up = false;
                self.queue.clear(now, &mut self.counters);
                for entry in self.flight.drain(..) {
                    self.counters.drop(DropCause::Down, entry.packet.len());
                }
                self.free_at = now;
            }
            LinkChange::Rate(rate) => {
                self.rate = rate;
                self.playback = None;
                self.last_transmission = None;
                self.free_at = self.free_at.max(now);
                self.advance(now);
            }
            LinkChange::Delay(delay) => self.delay = nanos(delay),
            LinkChange::Jitter(jitter) => self.jitter.set_amount(nanos(jitter)),
            LinkChange::Loss(loss) => self.loss = LinkLoss::new(loss),
        }
    }

    /// Replaces the configuration. Events that were due before `now` are processed with the old
    /// one; queued packets stay queued, whatever the size of the new queue, and packets in flight
    /// arrive as they would have. Queue and loss models are reset; a link that is down stays down. A new
    /// recorded rate begins now.
    pub fn reconfigure(&mut self, now: Duration, config: LinkConfig) {
        let now = self.advance(nanos(now));
        self.delay = nanos(config.delay);
        self.jitter = jitter(&config);
        self.framing = config.framing;
        self.mtu = config.mtu;
        self.queue.replace_discipline(config.queue, self.seed);
        self.loss = LinkLoss::new(config.loss);
        self.bit_error = config.bit_error;
        self.duplication = config.duplication;
        self.reordering = config.reordering;
        match config.trace {
            Some(trace) => self.play(now, trace),
            None => self.change(Duration::from_nanos(now), LinkChange::Rate(config.rate)),
        }
    }

    /// Uses a recorded rate from now on. One that is used already continues.
    fn play(&mut self, now: EpochNanos, trace: DeliveryTrace) {
        if self.playback.as_ref().is_none_or(|playback| *playback.trace() != trace) {
            self.change(Duration::from_nanos(now), LinkChange::Rate(Some(trace.rate())));
            self.playback = Some(TracePlayback::new(trace, now));
        }
    }

    /// Returns the counters, as of the last call with a time.
    #[must_use]
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Returns the packets queued at `now`, excluding the one being transmitted.
    pub fn queued(&mut self, now: Duration) -> PacketCount {
        self.advance(nanos(now));
        PacketCount { packets: self.queue.len() as u64, bytes: self.queue.bytes() as u64 }
    }

    /// Returns the packets being transmitted or propagating to the far end.
    #[must_use]
    pub fn in_flight(&self) -> PacketCount {
        let packets = self.flight.iter().map(|entry| entry.packet.len() as u64);
        PacketCount { packets: self.flight.len() as u64, bytes: packets.sum() }
    }

    /// Returns whether the link is up.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Returns the rate in bits per second, the average of a recorded one; `None` if transmission
    /// takes no time.
    #[must_use]
    pub const fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Returns the time from the end of a packet's transmission to its arrival, without jitter.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay)
    }

    pub(crate) fn offer_at(&mut self, now: EpochNanos, packet: P) -> Result<(), DropCause> {
        let length = packet.len();
        self.counters.offered.add(length);
        let now = self.advance(now);
        let admitted = self.admit(now, packet);
        if let Err(cause) = admitted {
            self.counters.drop(cause, length);
        }
        admitted
    }

    fn admit(&mut self, now: EpochNanos, mut packet: P) -> Result<(), DropCause> {
        if !self.up {
            return Err(DropCause::Down);
        }
        if packet.is_whole() && self.mtu.is_some_and(|mtu| packet.len() > mtu) {
            return Err(DropCause::TooBig);
        }
        if self.flight.len() >= MAX_IN_FLIGHT {
            return Err(DropCause::QueueFull);
        }
        let free = self.free_at <= now && self.rate != Some(0) && self.queue.is_empty();
        let time = self.transmission(&packet);
        self.queue.admit(now, &mut packet, free, time, &mut self.counters)?;
        if free {
            self.queue.passed(now, &packet);
            self.send(now, packet);
        } else {
            self.queue.push(now, packet);
        }
        Ok(())
    }

    /// Returns whether [`Self::poll_at`] may have a packet at `now`.
    pub(crate) fn is_due_at(&self, now: EpochNanos) -> bool {
        self.next().is_some_and(|next| next <= now)
    }

    pub(crate) fn poll_at(&mut self, now: EpochNanos) -> Option<P> {
        let now = self.advance(now);
        self.flight.pop_front_if(|entry| entry.arrives <= now).map(|entry| {
            self.counters.delivered.add(entry.packet.len());
            entry.packet
        })
    }

    pub(crate) fn next(&self) -> Option<EpochNanos> {
        let waits = !self.queue.is_empty() && self.rate != Some(0);
        let arrival = self.flight.front().map(|entry| entry.arrives);
        match arrival {
            // A queued packet cannot arrive before one that has left, unless reordering allows it.
            Some(arrival) if self.reordering == ReorderingMode::Never || !waits => Some(arrival),
            Some(arrival) => Some(arrival.min(self.free_at)),
            None if waits => Some(self.free_at),
            None => None,
        }
    }

    /// Sends the packets due by `now`, each at its time. Returns the effective time.
    fn advance(&mut self, now: EpochNanos) -> EpochNanos {
        self.now = self.now.max(now);
        while !self.queue.is_empty() && self.free_at <= self.now && self.rate != Some(0) {
            let Some(packet) = self.queue.dequeue(self.free_at, &mut self.counters) else { break };
            self.send(self.free_at, packet);
        }
        self.now
    }

    /// Starts the transmission of a packet at `start`.
    fn send(&mut self, start: EpochNanos, mut packet: P) {
        let end = match &mut self.playback {
            Some(playback) => {
                let bytes = wire_bytes(self.mtu, self.framing, &packet);
                playback.send(start, bytes)
            }
            None => start.saturating_add(self.transmission(&packet)),
        };
        self.free_at = end;
        let length = packet.len();
        self.counters.sent.add(length);
        if self.loss.next(&mut self.streams.loss) {
            self.counters.drop(DropCause::Loss, length);
            return;
        }
        if let Some(config) = &self.bit_error {
            let wire = wire_bytes(self.mtu, self.framing, &packet);
            match bit_error::pass(config, &mut self.streams.bit_error, &mut packet, wire) {
                BitErrorOutcome::Intact => {}
                BitErrorOutcome::Corrupted => self.counters.corrupted.add(length),
                BitErrorOutcome::Dropped => {
                    self.counters.drop(DropCause::BitError, length);
                    return;
                }
            }
        }
        if self.streams.duplication.chance(self.duplication) {
            self.counters.duplicated.add(length);
            self.propagate(end, packet.clone());
        }
        self.propagate(end, packet);
    }

    /// Propagates a packet that left the transmitter at `end`.
    fn propagate(&mut self, end: EpochNanos, packet: P) {
        let arrives = end.saturating_add(self.delay);
        let mut arrives = self.jitter.arrival(end, arrives, &mut self.streams.jitter);
        match self.reordering {
            ReorderingMode::ByJitter => {}
            ReorderingMode::Late { probability, by }
                if self.streams.reordering.chance(probability) =>
            {
                self.counters.late.add(packet.len());
                arrives = arrives.max(self.last_arrival).saturating_add(nanos(by));
            }
            ReorderingMode::Late { .. } | ReorderingMode::Never => {
                arrives = arrives.max(self.last_arrival);
                self.last_arrival = arrives;
            }
        }
        let entry = InFlight { arrives, packet };
        if self.flight.back().is_none_or(|last| last.arrives <= arrives) {
            self.flight.push_back(entry);
        } else {
            let place = self.flight.partition_point(|other| other.arrives <= arrives);
            self.flight.insert(place, entry);
        }
    }

    fn transmission(&mut self, packet: &P) -> EpochNanos {
        let Some(rate) = self.rate.filter(|rate| *rate > 0) else { return 0 };
        let bytes = wire_bytes(self.mtu, self.framing, packet);
        match self.last_transmission {
            Some((known, time)) if known == bytes => time,
            _ => {
                let time = transmission(bytes as u64, rate);
                self.last_transmission = Some((bytes, time));
                time
            }
        }
    }
}

/// Bytes on the link: the packet and its framing, or its fragments and theirs.
fn wire_bytes<P: LinkPacket>(mtu: Option<usize>, framing: usize, packet: &P) -> usize {
    let whole = packet.len() + framing;
    let Some(mtu) = mtu.filter(|mtu| packet.len() > *mtu) else { return whole };
    // Fragments carry multiples of 8 bytes (RFC 791 §2.3), at least one.
    let header = packet.header_len();
    let room = (mtu.saturating_sub(header) & !7).max(8);
    let payload = packet.len() - header;
    let fragments = payload.div_ceil(room);
    payload + fragments * (header + framing)
}

fn jitter(config: &LinkConfig) -> LinkJitter {
    LinkJitter::new(nanos(config.jitter), config.jitter_distribution, config.jitter_correlation)
}
