//! A link between a sender that always has data and a receiver that acknowledges it, in virtual
//! time: a rate, a delay, a tail-drop queue, and random losses.

use alloc::{collections::VecDeque, vec::Vec};
use core::any::Any;
use core::time::Duration;

use crate::config::{AssociationConfig, CongestionControlKind};
use crate::congestion::bbr::BbrState;
use crate::congestion::{Bbr, CongestionKind, PacketNumber, SiblingPaths};
use crate::identifier::PathId;
use crate::path::{Path, PathProgress, SendAllowance};

/// The bytes of user data in a packet.
pub(super) const DATA: usize = 1448;
/// The bytes of a packet on the link.
const PACKET: u64 = 1500;
/// A packet counts as lost once this many later packets are acknowledged.
const REORDERING: u32 = 3;
/// The delayed-acknowledgement timeout.
const SACK_DELAY: u64 = 40_000_000;

/// The properties of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The rate in bits per second.
    pub(super) rate: u64,
    /// The round-trip time without queueing, in milliseconds.
    pub(super) round_trip: u64,
    /// The capacity of the queue in packets.
    pub(super) queue: u64,
    /// The number of packets lost per million.
    pub(super) loss: u64,
}

/// The results of a run.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The share of the link's rate, in percent.
    pub(super) utilisation: u64,
    /// Bytes delivered in each second.
    pub(super) seconds: Vec<u64>,
    /// The largest window after the first half, in packets.
    pub(super) largest_window: usize,
    /// The smallest window after the first half, in packets.
    pub(super) smallest_window: usize,
    /// The average number of packets in the queue.
    pub(super) queued: u64,
    /// The number of packets dropped by the full queue.
    pub(super) dropped: u64,
    /// The successive states of a BBR controller, with the second at which each began.
    pub(super) states: Vec<(u64, BbrState)>,
}

struct InFlight {
    number: u32,
    sent: u64,
}

/// Sender, link and receiver.
pub(super) struct Run {
    link: Link,
    path: Path,
    now: u64,
    /// Packets that are sent and neither acknowledged nor lost, oldest first.
    in_flight: VecDeque<InFlight>,
    /// Arrivals at the receiver.
    arriving: VecDeque<(u64, u32)>,
    /// Acknowledgements in flight.
    returning: VecDeque<(u64, Vec<u32>)>,
    unacknowledged: Vec<u32>,
    sack_at: Option<u64>,
    link_free: u64,
    random: u64,
    recovery_ends: Option<u32>,
    t3: u64,
    delivered: u64,
    outcome: Outcome,
    queue_samples: u64,
}

impl Run {
    pub(super) fn new(link: Link, kind: CongestionControlKind, seed: u64) -> Self {
        let config =
            AssociationConfig { congestion_control: kind.into(), ..AssociationConfig::default() };
        let remote = "192.0.2.1:0".parse().unwrap();
        Self {
            link,
            path: Path::new(PathId(0), remote, None, &config),
            now: 0,
            in_flight: VecDeque::new(),
            arriving: VecDeque::new(),
            returning: VecDeque::new(),
            unacknowledged: Vec::new(),
            sack_at: None,
            link_free: 0,
            random: seed | 1,
            recovery_ends: None,
            t3: u64::MAX,
            delivered: 0,
            outcome: Outcome { smallest_window: usize::MAX, ..Outcome::default() },
            queue_samples: 0,
        }
    }

    /// Changes the link's rate from now on.
    pub(super) fn set_rate(&mut self, rate: u64) {
        self.link.rate = rate;
    }

    /// Runs for this many more seconds.
    pub(super) fn run(&mut self, seconds: u64) -> Outcome {
        let start = self.now / 1_000_000_000;
        let until = (start + seconds) * 1_000_000_000;
        self.outcome = Outcome { smallest_window: usize::MAX, ..Outcome::default() };
        self.outcome.seconds = alloc::vec![0; usize::try_from(seconds).unwrap()];
        let (before, half) = (self.delivered, self.now + (until - self.now) / 2);
        self.queue_samples = 0;
        while self.now < until {
            let wake = self.send();
            self.step(wake, start);
            self.note_state();
            if self.now > half {
                let window = self.path.congestion.window() / DATA;
                self.outcome.largest_window = self.outcome.largest_window.max(window);
                self.outcome.smallest_window = self.outcome.smallest_window.min(window);
            }
        }
        let capacity = self.link.rate / 8 * seconds * DATA as u64 / PACKET;
        let mut outcome = core::mem::take(&mut self.outcome);
        outcome.utilisation = (self.delivered - before) * 100 / capacity;
        outcome.queued /= self.queue_samples.max(1);
        outcome
    }

    fn note_state(&mut self) {
        let controller: &dyn Any = self.path.congestion.as_ref();
        let Some(Bbr { state, .. }) = controller.downcast_ref() else { return };
        let state = *state;
        if self.outcome.states.last().is_none_or(|(_, last)| *last != state) {
            self.outcome.states.push((self.now / 1_000_000_000, state));
        }
    }

    fn send(&mut self) -> Option<u64> {
        loop {
            let now = Duration::from_nanos(self.now);
            match self.path.allowance(now, DATA) {
                SendAllowance::Now(_) => {}
                SendAllowance::At(time) => return Some(u64::try_from(time.as_nanos()).unwrap()),
                SendAllowance::Closed => return None,
            }
            let number = self.path.next_packet().0;
            self.path.on_sent(now, DATA, false);
            self.in_flight.push_back(InFlight { number, sent: self.now });
            if self.in_flight.len() == 1 {
                self.arm_t3();
            }
            self.transmit(number);
        }
    }

    fn transmit(&mut self, number: u32) {
        let service = PACKET * 8 * 1_000_000_000 / self.link.rate;
        let queued = self.link_free.saturating_sub(self.now) / service;
        self.outcome.queued += queued;
        self.queue_samples += 1;
        if queued > self.link.queue {
            self.outcome.dropped += 1;
            return;
        }
        self.link_free = self.link_free.max(self.now) + service;
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if (self.random >> 16) % 1_000_000 >= self.link.loss {
            let arrival = self.link_free + self.link.round_trip * 500_000;
            self.arriving.push_back((arrival, number));
        }
    }

    fn step(&mut self, wake: Option<u64>, start: u64) {
        let arrival = self.arriving.front().map(|(time, _)| *time);
        let back = self.returning.front().map(|(time, _)| *time);
        let times = [arrival, back, wake, self.sack_at, Some(self.t3)];
        let next = times.into_iter().flatten().min().unwrap();
        assert!(next != u64::MAX, "nothing more happens");
        self.now = next.max(self.now);
        if arrival == Some(next) {
            self.arrive(start);
        } else if back == Some(next) {
            self.acknowledge();
        } else if self.sack_at == Some(next) {
            self.sack();
        } else if self.t3 == next {
            self.time_out();
        }
    }

    fn arrive(&mut self, start: u64) {
        let Some((_, number)) = self.arriving.pop_front() else { return };
        let gap = self.unacknowledged.last().is_some_and(|last| number != last + 1);
        self.unacknowledged.push(number);
        self.delivered += DATA as u64;
        let second = usize::try_from(self.now / 1_000_000_000 - start).unwrap();
        if let Some(bytes) = self.outcome.seconds.get_mut(second) {
            *bytes += DATA as u64;
        }
        if self.unacknowledged.len() >= 2 || gap {
            self.sack();
        } else {
            self.sack_at = Some(self.now + SACK_DELAY);
        }
    }

    fn sack(&mut self) {
        self.sack_at = None;
        let numbers = core::mem::take(&mut self.unacknowledged);
        self.returning.push_back((self.now + self.link.round_trip * 500_000, numbers));
    }

    fn acknowledge(&mut self) {
        let Some((_, numbers)) = self.returning.pop_front() else { return };
        let now = Duration::from_nanos(self.now);
        let (mut rtt, mut newest) = (None, 0);
        for number in numbers {
            let found = self.in_flight.iter().position(|packet| packet.number == number);
            let Some(packet) = found.and_then(|index| self.in_flight.remove(index)) else {
                self.path.on_late_chunk(now, DATA);
                continue;
            };
            self.path.on_chunk_acknowledged(now, PacketNumber(number), DATA);
            rtt = Some(Duration::from_nanos(self.now - packet.sent));
            newest = number;
        }
        let lost = self.find_lost(now, newest);
        let oldest = self.in_flight.front().map_or(u32::MAX, |packet| packet.number);
        let recovered = !lost && self.recovery_ends.is_some_and(|end| oldest >= end);
        if recovered {
            self.recovery_ends = None;
            self.path.on_recovered(now);
        }
        let cumulative_advanced = self.recovery_ends.is_none() && !lost;
        let progress = PathProgress { cumulative_advanced, rtt, ..PathProgress::default() };
        self.path.on_sack(now, progress, SiblingPaths::default());
        if lost && self.recovery_ends.is_none() {
            self.recovery_ends = Some(self.path.next_packet().0);
            self.path.on_congestion(now, CongestionKind::Loss, SiblingPaths::default());
        }
        self.arm_t3();
    }

    fn find_lost(&mut self, now: Duration, newest: u32) -> bool {
        let mut lost = false;
        while let Some(packet) = self.in_flight.front() {
            if packet.number + REORDERING > newest {
                break;
            }
            self.path.on_chunk_lost(now, PacketNumber(packet.number), DATA);
            self.in_flight.pop_front();
            lost = true;
        }
        lost
    }

    fn arm_t3(&mut self) {
        let rto = u64::try_from(self.path.rto.current().as_nanos()).unwrap();
        self.t3 = if self.in_flight.is_empty() { u64::MAX } else { self.now + rto };
    }

    fn time_out(&mut self) {
        let now = Duration::from_nanos(self.now);
        while let Some(packet) = self.in_flight.pop_front() {
            self.path.on_chunk_lost(now, PacketNumber(packet.number), DATA);
        }
        self.path.on_timeout(now, SiblingPaths::default());
        self.recovery_ends = None;
        self.arm_t3();
    }
}
