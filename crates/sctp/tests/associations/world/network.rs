//! What the networks between the hosts do to packets, drawn from a seed.

use std::time::Duration;

use eyas_sctp::io::Ecn;

/// Delay, loss, duplication and reordering; the same on all networks but where a field says more.
pub(crate) struct Network {
    /// One way.
    pub(crate) delay: Duration,
    /// By how much longer it takes over each network than over the one before, one way.
    pub(crate) lag: Duration,
    /// Of 1000 packets, so many are lost.
    pub(crate) loss: u32,
    /// Of 1000 packets, so many arrive twice.
    pub(crate) duplication: u32,
    /// Of 1000 packets, so many are late by up to [`Self::lateness`].
    pub(crate) reordering: u32,
    /// See [`Self::reordering`].
    pub(crate) lateness: Duration,
    /// Networks on which nothing arrives.
    pub(crate) cut: Vec<u8>,
    /// Bytes a second; `None` has no limit.
    pub(crate) rate: Option<u64>,
    /// Bytes that may wait for the rate, beyond which packets are lost.
    pub(crate) queue: u64,
    /// Packets larger than this are lost, in bytes of SCTP packet.
    pub(crate) largest: usize,
    /// Whether packets that can be are marked as having met congestion.
    pub(crate) congested: bool,
    state: u64,
    free_at: [Duration; 8],
}

impl Network {
    pub(crate) fn new() -> Self {
        Self {
            delay: Duration::from_millis(10),
            lag: Duration::ZERO,
            loss: 0,
            duplication: 0,
            reordering: 0,
            lateness: Duration::from_millis(40),
            cut: Vec::new(),
            rate: None,
            queue: u64::MAX,
            largest: 65_535,
            congested: false,
            state: 0x9e37_79b9_7f4a_7c15,
            free_at: [Duration::ZERO; 8],
        }
    }

    pub(crate) fn seed(&mut self, seed: u64) {
        self.state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    }

    /// Splitmix64.
    pub(crate) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn happens(&mut self, per_thousand: u32) -> bool {
        per_thousand > 0 && self.draw() % 1000 < u64::from(per_thousand)
    }

    pub(super) fn loses(&mut self, over: u8, size: usize) -> bool {
        self.cut.contains(&over) || size > self.largest || self.happens(self.loss)
    }

    /// When the copies of a packet arrive: none if the queue is full, as a rule one.
    pub(super) fn delays(&mut self, over: u8, now: Duration, size: usize) -> Vec<Duration> {
        let mut delay = self.delay + self.lag * over.into();
        if let Some(rate) = self.rate {
            let free_at = &mut self.free_at[usize::from(over) % 8];
            let start = (*free_at).max(now);
            let waiting = (start - now).as_nanos() * u128::from(rate) / 1_000_000_000;
            if waiting > u128::from(self.queue) {
                return Vec::new();
            }
            *free_at = start + Duration::from_nanos(size as u64 * 1_000_000_000 / rate);
            delay += *free_at - now;
        }
        if self.happens(self.reordering) {
            let share = self.draw() % 1000;
            delay += self.lateness * u32::try_from(share).unwrap_or(0) / 1000;
        }
        let copies = if self.happens(self.duplication) { 2 } else { 1 };
        vec![delay; copies]
    }

    pub(super) fn mark(&self, ecn: Ecn) -> Ecn {
        if self.congested && ecn != Ecn::NotCapable { Ecn::CongestionExperienced } else { ecn }
    }
}
