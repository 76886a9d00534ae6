//! When slow start should end before it loses packets: HyStart++ (RFC 9406).
//!
//! If the round trips of a round are clearly longer than those of the round before, a queue is
//! growing. Slow start then goes on at a quarter of its pace; if the round trips shrink again it was
//! a false alarm, otherwise it ends after five rounds.

use core::time::Duration;

use super::nanoseconds;

/// `MIN_RTT_THRESH`: a growth that is never taken for a queue, in nanoseconds.
const LEAST_GROWTH: u64 = 4_000_000;
/// `MAX_RTT_THRESH`: a growth that always is.
const MOST_GROWTH: u64 = 16_000_000;
/// `MIN_RTT_DIVISOR`.
const GROWTH_DIVISOR: u64 = 8;
/// `N_RTT_SAMPLE`: samples of a round that make it comparable.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`: by how much slower conservative slow start grows.
const CONSERVATIVE_DIVISOR: usize = 4;
/// `CSS_ROUNDS`.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// What slow start is to do with an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// Grow by this many bytes.
    By(usize),
    /// Slow start is over.
    Ends,
}

/// The state of one slow start. Times are in nanoseconds, `u64::MAX` for none.
#[derive(Clone, Debug)]
pub(super) struct SlowStart {
    acknowledged: u64,
    /// The round ends when so much is acknowledged.
    round_end: u64,
    least_of_last_round: u64,
    least_of_round: u64,
    samples: u32,
    /// In conservative slow start: the rounds left, and the least round trip when it began.
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

    /// `bytes` were acknowledged, `outstanding` are still under way.
    pub(super) fn on_acknowledged(
        &mut self,
        bytes: usize,
        outstanding: usize,
        rtt: Option<Duration>,
    ) -> Growth {
        self.acknowledged += bytes as u64;
        if let Some(rtt) = rtt {
            self.least_of_round = self.least_of_round.min(nanoseconds(rtt));
            self.samples += 1;
        }
        self.compare();
        if self.acknowledged >= self.round_end && self.end_round(outstanding) {
            return Growth::Ends;
        }
        Growth::By(if self.conservative.is_some() { bytes / CONSERVATIVE_DIVISOR } else { bytes })
    }

    fn compare(&mut self) {
        let (last, round) = (self.least_of_last_round, self.least_of_round);
        if self.samples < SAMPLES || last == u64::MAX || round == u64::MAX {
            return;
        }
        match self.conservative {
            None => {
                let growth = (last / GROWTH_DIVISOR).clamp(LEAST_GROWTH, MOST_GROWTH);
                if round >= last.saturating_add(growth) {
                    self.conservative = Some((CONSERVATIVE_ROUNDS, round));
                }
            }
            Some((_, baseline)) if round < baseline => self.conservative = None,
            Some(_) => {}
        }
    }

    /// Says whether slow start is over.
    fn end_round(&mut self, outstanding: usize) -> bool {
        self.round_end = self.acknowledged + outstanding as u64;
        self.least_of_last_round = self.least_of_round;
        self.least_of_round = u64::MAX;
        self.samples = 0;
        match &mut self.conservative {
            Some((rounds, _)) => {
                *rounds -= 1;
                *rounds == 0
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests;
