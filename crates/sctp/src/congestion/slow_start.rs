//! The end of slow start before it causes losses: HyStart++ (RFC 9406).
//!
//! If the RTTs of a round are clearly longer than those of the previous round, a queue is growing.
//! Slow start then continues at a quarter of its pace; if the RTTs shrink again it was a false
//! alarm, otherwise it ends after five rounds.

use core::time::Duration;

use super::nanoseconds;

/// `MIN_RTT_THRESH`: a growth that never indicates a queue, in nanoseconds.
const MIN_GROWTH: u64 = 4_000_000;
/// `MAX_RTT_THRESH`: a growth that always does.
const MAX_GROWTH: u64 = 16_000_000;
/// `MIN_RTT_DIVISOR`.
const GROWTH_DIVISOR: u64 = 8;
/// `N_RTT_SAMPLE`: the number of samples that makes a round comparable.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`: the factor by which conservative slow start grows more slowly.
const CONSERVATIVE_DIVISOR: usize = 4;
/// `CSS_ROUNDS`.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// The reaction of slow start to an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlowStartGrowth {
    /// Grow by this many bytes.
    By(usize),
    /// Slow start is over.
    Ends,
}

/// The state of one slow start. Times are in nanoseconds, `u64::MAX` for none.
#[derive(Clone, Debug)]
pub(super) struct SlowStart {
    acknowledged: u64,
    /// The round ends when this much is acknowledged.
    round_end: u64,
    least_of_last_round: u64,
    least_of_round: u64,
    samples: u32,
    /// In conservative slow start: the remaining rounds, and the minimum RTT at its start.
    conservative: Option<(u32, u64)>,
}

impl SlowStart {
    pub(super) fn new() -> Self {
        Self {
            acknowledged: 0,
            round_end: 0,
            least_of_last_round: u64::MAX,
            least_of_round: u64::MAX,
            samples: 0,
            conservative: None,
        }
    }

    /// Handles the acknowledgement of `bytes`; `outstanding` bytes are still in flight.
    pub(super) fn on_acknowledged(
        &mut self,
        bytes: usize,
        outstanding: usize,
        rtt: Option<Duration>,
    ) -> SlowStartGrowth {
        self.acknowledged += bytes as u64;
        if let Some(rtt) = rtt {
            self.least_of_round = self.least_of_round.min(nanoseconds(rtt));
            self.samples += 1;
        }
        self.compare();
        if self.acknowledged >= self.round_end && self.end_round(outstanding) {
            return SlowStartGrowth::Ends;
        }
        SlowStartGrowth::By(if self.conservative.is_some() {
            bytes / CONSERVATIVE_DIVISOR
        } else {
            bytes
        })
    }

    fn compare(&mut self) {
        let (last, round) = (self.least_of_last_round, self.least_of_round);
        if self.samples < SAMPLES || last == u64::MAX || round == u64::MAX {
            return;
        }
        match self.conservative {
            None => {
                let growth = (last / GROWTH_DIVISOR).clamp(MIN_GROWTH, MAX_GROWTH);
                if round >= last.saturating_add(growth) {
                    self.conservative = Some((CONSERVATIVE_ROUNDS, round));
                }
            }
            Some((_, baseline)) if round < baseline => self.conservative = None,
            Some(_) => {}
        }
    }

    /// Returns whether slow start is over. The next one, as after a pause, starts from the beginning.
    fn end_round(&mut self, outstanding: usize) -> bool {
        self.round_end = self.acknowledged + outstanding as u64;
        self.least_of_last_round = self.least_of_round;
        self.least_of_round = u64::MAX;
        self.samples = 0;
        let Some((rounds, _)) = &mut self.conservative else { return false };
        *rounds -= 1;
        let is_over = *rounds == 0;
        if is_over {
            *self = Self::new();
        }
        is_over
    }
}

#[cfg(test)]
mod tests;
