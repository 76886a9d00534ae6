//! The queue of a link.

use alloc::collections::VecDeque;

use super::codel::{CoDel, QueueHead};
use super::config::QueueConfig;
use super::counters::{DropCause, LinkCounters};
use super::red::{RedAverage, RedVerdict};
use crate::packet::LinkPacket;
use crate::random::RandomStream;
use crate::time::EpochNanos;

/// A queued packet.
#[derive(Clone, Debug)]
struct QueuedPacket<P> {
    since: EpochNanos,
    packet: P,
}

/// The queue of a link: packets in order, and the discipline that admits and releases them.
#[derive(Clone, Debug)]
pub(super) struct LinkQueue<P> {
    waiting: VecDeque<QueuedPacket<P>>,
    bytes: usize,
    discipline: QueueDiscipline,
}

#[derive(Clone, Debug)]
enum QueueDiscipline {
    Packets(usize),
    Bytes(usize),
    Red(RedAverage),
    CoDel(CoDel),
}

impl QueueDiscipline {
    fn new(config: QueueConfig, seed: u64) -> Self {
        match config {
            QueueConfig::Packets(limit) => Self::Packets(limit),
            QueueConfig::Bytes(limit) => Self::Bytes(limit),
            QueueConfig::Red(config) => {
                Self::Red(RedAverage::new(config, RandomStream::new(seed, 0)))
            }
            QueueConfig::CoDel(config) => Self::CoDel(CoDel::new(&config)),
        }
    }
}

impl<P: LinkPacket> LinkQueue<P> {
    pub(super) fn new(config: QueueConfig, seed: u64) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, discipline: QueueDiscipline::new(config, seed) }
    }

    /// Changes the discipline for queued and future packets.
    pub(super) fn replace_discipline(&mut self, config: QueueConfig, seed: u64) {
        self.discipline = QueueDiscipline::new(config, seed);
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Admits a packet, or returns why not. `transmission` is how long a packet like this
    /// takes to send; `free` says that the link would send it at once.
    pub(super) fn admit(
        &mut self,
        now: EpochNanos,
        packet: &mut P,
        free: bool,
        transmission: EpochNanos,
        counters: &mut LinkCounters,
    ) -> Result<(), DropCause> {
        let length = self.waiting.len();
        let room = |limit| if free || length < limit { Ok(()) } else { Err(DropCause::QueueFull) };
        match &mut self.discipline {
            QueueDiscipline::Packets(limit) => room(*limit),
            QueueDiscipline::Bytes(limit) => {
                let fits = free || self.bytes + packet.len() <= *limit;
                if fits { Ok(()) } else { Err(DropCause::QueueFull) }
            }
            QueueDiscipline::CoDel(codel) => room(codel.limit()),
            QueueDiscipline::Red(red) => {
                let verdict = red.arrive(now, length, transmission, packet.is_ecn_capable());
                room(red.limit())?;
                match verdict {
                    RedVerdict::Admit => Ok(()),
                    RedVerdict::Drop => Err(DropCause::QueueEarly),
                    RedVerdict::Mark => {
                        mark(packet, counters);
                        Ok(())
                    }
                }
            }
        }
    }

    pub(super) fn push(&mut self, now: EpochNanos, packet: P) {
        self.bytes += packet.len();
        self.waiting.push_back(QueuedPacket { since: now, packet });
    }

    /// Returns the next packet to send at `now`. Those that the discipline drops meanwhile are
    /// counted.
    pub(super) fn dequeue(&mut self, now: EpochNanos, counters: &mut LinkCounters) -> Option<P> {
        loop {
            let QueuedPacket { since, mut packet } = self.waiting.pop_front()?;
            self.bytes -= packet.len();
            if let QueueDiscipline::CoDel(codel) = &mut self.discipline {
                let head =
                    QueueHead { sojourn: now.saturating_sub(since), bytes_behind: self.bytes };
                if codel.should_drop(now, &head, packet.len()) {
                    if codel.ecn() && packet.is_ecn_capable() {
                        mark(&mut packet, counters);
                    } else {
                        counters.drop(DropCause::QueueEarly, packet.len());
                        continue;
                    }
                }
            }
            if self.waiting.is_empty() {
                self.on_empty(now);
            }
            return Some(packet);
        }
    }

    /// Records that a packet passed an empty queue.
    pub(super) fn passed(&mut self, now: EpochNanos, packet: &P) {
        match &mut self.discipline {
            QueueDiscipline::CoDel(codel) => {
                let head = QueueHead { sojourn: 0, bytes_behind: 0 };
                // Without a delay nothing is dropped; the model learns that the queue is short.
                let dropped = codel.should_drop(now, &head, packet.len());
                debug_assert!(!dropped, "a packet that did not wait");
            }
            QueueDiscipline::Red(red) => red.on_empty(now),
            QueueDiscipline::Packets(_) | QueueDiscipline::Bytes(_) => {}
        }
    }

    /// Drops all queued packets.
    pub(super) fn clear(&mut self, now: EpochNanos, counters: &mut LinkCounters) {
        for waiting in self.waiting.drain(..) {
            counters.drop(DropCause::Down, waiting.packet.len());
        }
        self.bytes = 0;
        self.on_empty(now);
    }

    fn on_empty(&mut self, now: EpochNanos) {
        if let QueueDiscipline::Red(red) = &mut self.discipline {
            red.on_empty(now);
        }
    }
}

fn mark<P: LinkPacket>(packet: &mut P, counters: &mut LinkCounters) {
    packet.mark();
    counters.marked.add(packet.len());
}
