//! The choice of the path that sends next.

use core::cmp::Reverse;
use core::time::Duration;

use super::super::AssociationSender;
use crate::config::PathOrder;
use crate::identifier::PathId;
use crate::path::{AssociationPaths, Path, SendAllowance};

/// The best path so far, and when a paced one may send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextPath {
    /// The path that sends next.
    pub(crate) path: Option<PathId>,
    /// When to check again, if pacing delays data.
    pub(crate) paced_until: Option<Duration>,
}

impl AssociationSender {
    /// Returns the path that sends next, of all that may. A path that has started continues until
    /// it may not: its packets are sent together.
    pub(in crate::send) fn next_path(
        &mut self,
        now: Duration,
        paths: &mut AssociationPaths,
    ) -> NextPath {
        if self.multipath.as_ref().is_some_and(|concurrent| concurrent.is_idle) {
            return NextPath::default();
        }
        self.set_time(now);
        let mut unused = 0_u64;
        let mut next = self.find_next(now, paths, &mut unused);
        if unused != 0 && next.path.is_none() {
            next.path = self.reschedule_first(now, unused, paths);
        }
        if unused != 0 && next.path.is_none() {
            for (at, path) in paths.iter_mut().enumerate().take(64) {
                if unused >> at & 1 != 0 {
                    path.on_app_limited();
                }
            }
        }
        self.cache_result(next.path);
        next
    }

    /// Caches the result: the path until the packet is filled, and, if there is nothing to send at
    /// all, that fact until the next event.
    fn cache_result(&mut self, found: Option<PathId>) {
        let is_idle = self.queue.unsent() == 0 && self.outstanding.is_empty();
        let on = found.and_then(|path| self.outstanding.flight_on(path));
        let is_new = on.is_none_or(|flight| flight.pending_retransmissions() == 0);
        if let Some(concurrent) = &mut self.multipath {
            concurrent.found = found.filter(|_| is_new);
            concurrent.is_idle = is_idle;
        }
    }

    /// Returns whether [`Self::next_path`] has just selected this path for new data.
    pub(in crate::send) fn takes_cached_path(&mut self, path: PathId) -> bool {
        let found = self.multipath.as_mut().and_then(|concurrent| concurrent.found.take());
        found == Some(path)
    }

    /// Finds the next path; also collects the paths, by index, that have room and nothing to send.
    fn find_next(&mut self, now: Duration, paths: &AssociationPaths, unused: &mut u64) -> NextPath {
        let mut next = NextPath::default();
        let Some(concurrent) = &self.multipath else { return next };
        let (order, last) = (concurrent.choices.path_order, concurrent.last);
        let by_estimates = order == PathOrder::EarliestArrival;
        let continues = |path: &&Path| {
            !by_estimates && Some(path.id) == last && path.last_sent().is_some_and(|at| at == now)
        };
        let mut best = None;
        for (at, path) in paths.iter().enumerate() {
            let key = match &self.multipath {
                Some(concurrent) if by_estimates => {
                    (false, Reverse(u128::from(u64::MAX - concurrent.automatic.arrival(path))))
                }
                _ => (!continues(&path), key(order, path)),
            };
            if best.is_some_and(|best| key >= best) {
                continue;
            }
            match path.allowance(now, path.mtu()) {
                SendAllowance::Now(_) => {}
                SendAllowance::At(at) => {
                    if self.has_data_to_send(path.id, paths) {
                        next.paced_until = Some(next.paced_until.map_or(at, |other| other.min(at)));
                    }
                    continue;
                }
                SendAllowance::Closed => continue,
            }
            // With nothing in flight, there may be no next event.
            let concurrent = self.multipath.as_mut().filter(|_| self.outstanding.in_flight() > 0);
            if concurrent.is_some_and(|concurrent| !concurrent.burst.admits(path.id, now)) {
                continue;
            }
            if self.has_data_to_send(path.id, paths) {
                (next.path, best) = (Some(path.id), Some(key));
            } else if at < 64 {
                *unused |= 1 << at;
            }
        }
        next
    }
}

/// Returns the sort key of a path: the lowest goes first, the oldest path among equals.
fn key(order: PathOrder, path: &Path) -> Reverse<u128> {
    let lowest_first = |value: u128| Reverse(u128::MAX - value);
    let highest_first = |value: usize| Reverse(value as u128);
    let nanoseconds = |time: Option<Duration>, otherwise| {
        lowest_first(time.map_or(otherwise, |time| time.as_nanos()))
    };
    match order {
        PathOrder::InOrder | PathOrder::EarliestArrival => lowest_first(0),
        PathOrder::OldestTransmission => nanoseconds(path.last_sent(), 0),
        PathOrder::LowestRtt => nanoseconds(path.rto.smoothed(), u128::MAX),
        PathOrder::LargestWindow => highest_first(path.congestion.window()),
        PathOrder::LargestSlowStartThreshold => {
            highest_first(path.congestion.slow_start_threshold())
        }
        PathOrder::LargestSpace => {
            highest_first(path.congestion.window().saturating_sub(path.outstanding()))
        }
    }
}
