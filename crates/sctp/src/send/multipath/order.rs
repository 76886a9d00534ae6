//! Which path sends next.

use core::cmp::Reverse;
use core::time::Duration;

use super::super::Sender;
use crate::cmt::PathOrder;
use crate::congestion::CongestionControl;
use crate::identifier::PathId;
use crate::path::{Allowance, Path, Paths};

/// The best path so far, and when one that is paced may send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextPath {
    /// The path that sends next.
    pub(crate) path: Option<PathId>,
    /// When to look again, if pacing keeps data back.
    pub(crate) paced_until: Option<Duration>,
}

impl Sender {
    /// The path that sends next, of all that may. A path that has begun goes on until it may not:
    /// its packets leave together.
    pub(crate) fn next_path(&mut self, now: Duration, paths: &Paths) -> NextPath {
        let mut next = NextPath::default();
        let Some(concurrent) = &self.multipath else { return next };
        let (order, last) = (concurrent.choices.path_order, concurrent.last);
        let goes_on =
            |path: &&Path| Some(path.id) == last && path.last_sent().is_some_and(|at| at == now);
        let mut best = None;
        let begun = paths.iter().filter(goes_on);
        for path in begun.chain(paths.iter().filter(|path| !goes_on(path))) {
            let key = (!goes_on(&path), key(order, path));
            if best.is_some_and(|best| key >= best) {
                continue;
            }
            match path.allowance(now, path.mtu()) {
                Allowance::Now(_) => {}
                Allowance::At(at) => {
                    if self.has_data_to_send(path.id, paths) {
                        next.paced_until = Some(next.paced_until.map_or(at, |other| other.min(at)));
                    }
                    continue;
                }
                Allowance::Closed => continue,
            }
            if self.may_burst(path.id, now) && self.has_data_to_send(path.id, paths) {
                (next.path, best) = (Some(path.id), Some(key));
            }
        }
        next
    }
}

/// What decides between paths: the least goes first, the oldest path among equals.
fn key(order: PathOrder, path: &Path) -> Reverse<u128> {
    let first_least = |value: u128| Reverse(u128::MAX - value);
    let first_most = |value: usize| Reverse(value as u128);
    let nanoseconds = |time: Option<Duration>, otherwise| {
        first_least(time.map_or(otherwise, |time| time.as_nanos()))
    };
    match order {
        PathOrder::InOrder => first_least(0),
        PathOrder::OldestTransmission => nanoseconds(path.last_sent(), 0),
        PathOrder::LowestRtt => nanoseconds(path.rto.smoothed(), u128::MAX),
        PathOrder::LargestWindow => first_most(path.congestion.window()),
        PathOrder::LargestSlowStartThreshold => first_most(path.congestion.slow_start_threshold()),
        PathOrder::LargestSpace => {
            first_most(path.congestion.window().saturating_sub(path.outstanding()))
        }
    }
}
