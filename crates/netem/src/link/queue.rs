//! The queue of a link.

use alloc::collections::VecDeque;

use super::codel::{CoDel, Head};
use super::config::QueueConfig;
use super::counters::{DropCause, LinkCounters};
use super::red::{Red, Verdict};
use crate::packet::LinkPacket;
use crate::random::Stream;
use crate::time::Nanos;

/// A queued packet.
#[derive(Clone, Debug)]
struct Waiting<P> {
    since: Nanos,
    packet: P,
}

/// The queue of a link: packets in order, and the discipline that admits and releases them.
#[derive(Clone, Debug)]
pub(super) struct Queue<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: usize,
    discipline: Discipline,
}

#[derive(Clone, Debug)]
enum Discipline {
    Packets(usize),
    Bytes(usize),
    Red(Red),
    CoDel(CoDel),
}

impl Discipline {
    fn new(config: QueueConfig, seed: u64) -> Self {
        match config {
            QueueConfig::Packets(limit) => Self::Packets(limit),
            QueueConfig::Bytes(limit) => Self::Bytes(limit),
            QueueConfig::Red(config) => Self::Red(Red::new(config, Stream::new(seed, 0))),
            QueueConfig::CoDel(config) => Self::CoDel(CoDel::new(&config)),
        }
    }
}

impl<P: LinkPacket> Queue<P> {
    pub(super) fn new(config: QueueConfig, seed: u64) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, discipline: Discipline::new(config, seed) }
    }

    /// Changes the discipline for queued and future packets.
    pub(super) fn replace_discipline(&mut self, config: QueueConfig, seed: u64) {
        self.discipline = Discipline::new(config, seed);
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
        now: Nanos,
        packet: &mut P,
        free: bool,
        transmission: Nanos,
        counters: &mut LinkCounters,
    ) -> Result<(), DropCause> {
        let length = self.waiting.len();
        let room = |limit| if free || length < limit { Ok(()) } else { Err(DropCause::QueueFull) };
        match &mut self.discipline {
            Discipline::Packets(limit) => room(*limit),
            Discipline::Bytes(limit) => {
                let fits = free || self.bytes + packet.len() <= *limit;
                if fits { Ok(()) } else { Err(DropCause::QueueFull) }
            }
            Discipline::CoDel(codel) => room(codel.limit()),
            Discipline::Red(red) => {
                let verdict = red.arrive(now, length, transmission, packet.is_ecn_capable());
                room(red.limit())?;
                match verdict {
                    Verdict::Admit => Ok(()),
                    Verdict::Drop => Err(DropCause::QueueEarly),
                    Verdict::Mark => {
                        mark(packet, counters);
                        Ok(())
                    }
                }
            }
        }
    }

    pub(super) fn push(&mut self, now: Nanos, packet: P) {
        self.bytes += packet.len();
        self.waiting.push_back(Waiting { since: now, packet });
    }

    /// Returns the next packet to send at `now`. Those that the discipline drops meanwhile are
    /// counted.
    pub(super) fn take(&mut self, now: Nanos, counters: &mut LinkCounters) -> Option<P> {
        loop {
            let Waiting { since, mut packet } = self.waiting.pop_front()?;
            self.bytes -= packet.len();
            if let Discipline::CoDel(codel) = &mut self.discipline {
                let head = Head { sojourn: now.saturating_sub(since), bytes_behind: self.bytes };
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
    pub(super) fn passed(&mut self, now: Nanos, packet: &P) {
        match &mut self.discipline {
            Discipline::CoDel(codel) => {
                let head = Head { sojourn: 0, bytes_behind: 0 };
                // Without a delay nothing is dropped; the model learns that the queue is short.
                let dropped = codel.should_drop(now, &head, packet.len());
                debug_assert!(!dropped, "a packet that did not wait");
            }
            Discipline::Red(red) => red.on_empty(now),
            Discipline::Packets(_) | Discipline::Bytes(_) => {}
        }
    }

    /// Drops all queued packets.
    pub(super) fn clear(&mut self, now: Nanos, counters: &mut LinkCounters) {
        for waiting in self.waiting.drain(..) {
            counters.drop(DropCause::Down, waiting.packet.len());
        }
        self.bytes = 0;
        self.on_empty(now);
    }

    fn on_empty(&mut self, now: Nanos) {
        if let Discipline::Red(red) = &mut self.discipline {
            red.on_empty(now);
        }
    }
}

fn mark<P: LinkPacket>(packet: &mut P, counters: &mut LinkCounters) {
    packet.mark();
    counters.marked.add(packet.len());
}
