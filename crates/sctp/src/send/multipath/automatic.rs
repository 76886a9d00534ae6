//! Mapping of streams to paths by estimates ([`crate::config::StreamMapping::Automatic`]).
//!
//! For each path, the arrival time of a packet sent now is estimated: its delay relative to the
//! fastest path, and its queue. For each stream, the estimated arrival of its last data is stored,
//! and the path that carries it. Then
//!
//! - a path takes a stream none of whose data in flight arrives later, so that its messages do not
//!   wait at the receiver. If there are several, the fastest path takes them in turn, and those
//!   last that a slower path carries; a slower path takes the one whose last message arrives
//!   latest, so that few streams use it, and always the same ones;
//! - if there is none, it takes the stream with the shortest wait: no path idles while it has room,
//!   unless the stream's own path takes it and there will be others for this one;
//! - a path takes nothing if the buffers have no room beyond what fills the paths with shorter
//!   round trips: a byte occupies the buffers for a round trip, so those paths make better use of
//!   it. Data that waits at the receiver for messages on slower paths occupies its buffer too;
//! - streams of higher priority go first, and not on slower paths while there are others for those;
//!   streams with a deadline take no path that would miss it ([`crate::config::StreamPreference`]).

use core::time::Duration;

use super::super::AssociationSender;
use super::super::queue::OutboundStream;
use crate::config::{PathOrder, StreamMapping};
use crate::congestion::nanoseconds;
use crate::identifier::{PathId, StreamId};
use crate::path::{AssociationPaths, Path, PathState};
use crate::scheduler::StreamSlot;

mod estimates;

use estimates::ArrivalForecast;
pub(super) use estimates::AutomaticMapping;
pub(super) use estimates::time_for;

/// The maximum number of streams, or of messages if they are sent in the order of arrival, that are
/// inspected for one packet.
const MAX_INSPECTED: usize = 64;

/// Paths are limited to what fills them if that takes more than this fraction of the buffers
/// (numerator and denominator): with more room, the slack of the caps does no harm.
const NO_SLACK_FROM: (usize, usize) = (4, 5);

/// The number of packet times after which an application that queues messages as packets leave has
/// queued another one: acknowledgements cover two packets, and two may arrive together.
const RECENT_PACKETS: u64 = 4;

/// The fraction of what one stream has in the send buffer that is too little to keep faster paths
/// busy, as keystrokes beside bulk are.
const LITTLE_PART: usize = 4;

/// The same for a stream whose application queues messages as packets leave: the messages of others
/// are in flight then, and a fast path has little in flight. Without this bound, a path that carries
/// nothing but keystrokes waits for more of them, and the slower it therefore seems, the longer.
const BUSY_PART: usize = 64;

/// The suitability of a stream for a path: the most significant criterion first, the lowest rank is
/// best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StreamRank {
    /// The stream's priority on the fastest paths; reversed on slower ones.
    priority: u16,
    /// How long its messages would wait at the receiver.
    wait: u64,
    /// Whether a slower path carries it.
    uses_slower_path: bool,
    /// On a slower path, how much earlier its last message arrives: the stream whose last message
    /// arrives latest already uses the path.
    early: u64,
}

impl StreamRank {
    const BEST: Self = Self { priority: 0, wait: 0, uses_slower_path: false, early: 0 };
}

/// The best stream so far, and its rank.
#[derive(Clone, Copy, Debug)]
struct StreamCandidate {
    slot: StreamSlot,
    rank: StreamRank,
}

impl AutomaticMapping {
    /// Returns the rank of a stream for a path.
    fn rank(&self, slot: StreamSlot, path: &Path, forecast: &ArrivalForecast) -> StreamRank {
        let (slower, arrival) = (forecast.meanwhile > 0, self.arrival_of(slot));
        let priority = self.preference(slot).priority;
        let late = arrival.saturating_sub(forecast.arrival + forecast.tolerance);
        // Its messages may wait at the receiver if they would not even be sent otherwise.
        let starves = !slower && self.starves(slot);
        StreamRank {
            priority: if slower && self.has_preferences { u16::MAX - priority } else { priority },
            wait: if starves { 0 } else { late },
            uses_slower_path: self.uses_slower_path(slot, path) && !starves,
            early: if slower { forecast.arrival.saturating_sub(arrival) } else { 0 },
        }
    }
}

impl AssociationSender {
    /// Returns whether streams are mapped by estimates.
    pub(super) fn maps_automatically(&self) -> bool {
        let mapping = self.multipath.as_ref().map(|concurrent| &concurrent.choices.mapping);
        matches!(mapping, Some(StreamMapping::Automatic))
    }

    /// Sets the current time.
    #[inline]
    pub(in crate::send) fn set_time(&mut self, now: Duration) {
        if let Some(concurrent) = &mut self.multipath {
            concurrent.automatic.now = nanoseconds(now);
        }
    }

    /// Records a queued message of a stream, its first one if `is_new`.
    #[inline]
    pub(in crate::send) fn record_enqueued(
        &mut self,
        slot: StreamSlot,
        id: StreamId,
        is_new: bool,
        now: Duration,
    ) {
        if !self.maps_automatically() {
            return;
        }
        let Some(concurrent) = &mut self.multipath else { return };
        if is_new {
            concurrent.automatic.on_new(slot, id, &concurrent.choices.preferences);
        }
        concurrent.automatic.on_enqueued(slot, now);
    }

    /// Refreshes the estimates after a SACK.
    pub(in crate::send) fn refresh_estimates(&mut self, paths: &mut AssociationPaths) {
        let is_wanted = self.multipath.as_ref().is_some_and(|concurrent| {
            concurrent.choices.mapping == StreamMapping::Automatic
                || concurrent.choices.path_order == PathOrder::EarliestArrival
        });
        if !is_wanted {
            return;
        }
        let window = self.peer_window() + self.in_flight();
        let room = self.queue.limit().min(window);
        if let Some(concurrent) = &mut self.multipath {
            concurrent.automatic.refresh(paths, window);
            let needed: usize = concurrent.automatic.views.iter().map(|view| view.fill).sum();
            let without_slack = needed * NO_SLACK_FROM.1 > room * NO_SLACK_FROM.0;
            paths.iter_mut().for_each(|path| path.set_cap_without_slack(without_slack));
        }
    }

    /// Records data of a stream that is sent on a path.
    #[inline]
    pub(in crate::send) fn record_stream_sent(
        &mut self,
        slot: StreamSlot,
        path: PathId,
        bytes: usize,
        paths: &AssociationPaths,
    ) {
        if !self.maps_automatically() {
            return;
        }
        if let (Some(concurrent), Some(path)) = (&mut self.multipath, paths.get(path)) {
            concurrent.automatic.on_sent(slot, path, bytes);
        }
    }

    /// Returns the stream that may send next on a path, by estimates.
    pub(in crate::send) fn choose_automatically(
        &mut self,
        path: PathId,
        paths: &AssociationPaths,
    ) -> Option<StreamSlot> {
        let path_entry = paths.get(path)?;
        let automatic = &self.multipath.as_ref()?.automatic;
        let forecast = automatic.forecast(path_entry, paths);
        let slower = forecast.meanwhile > 0;
        let (scheduler, heads) = self.queue.scheduler_and_heads();
        let current = scheduler.current();
        let is_eligible = |slot: StreamSlot| {
            let Some((stream, message)) = heads.get(slot) else { return false };
            let requested = message
                .path
                .filter(|requested| *requested != path)
                .and_then(|requested| paths.get(requested));
            let requests_other_path =
                requested.is_some_and(|requested| requested.state() == PathState::Active);
            let is_started = message.sent > 0;
            // The rest of a message may wait, too, unless it has to be sent before everything else.
            let is_late = current.is_none()
                && automatic.has_preferences
                && automatic.misses_deadline(slot, path_entry, paths);
            !(requests_other_path || is_late || stream.paused && !is_started)
        };
        let mut best: Option<StreamCandidate> = None;
        let mut left = MAX_INSPECTED;
        let mut consider = |slot: StreamSlot| {
            if !is_eligible(slot) {
                return false;
            }
            left -= 1;
            let rank = automatic.rank(slot, path_entry, &forecast);
            if best.is_none_or(|best| rank < best.rank) {
                best = Some(StreamCandidate { slot, rank });
            }
            left == 0 || (!slower && rank == StreamRank::BEST)
        };
        match current {
            Some(slot) => {
                consider(slot);
            }
            None => {
                scheduler.next(&mut consider);
            }
        }
        let StreamCandidate { slot, rank } = best?;
        let is_unsuitable = self.is_reserved(path_entry, paths)
            || slower && self.has_own_streams(slot, path_entry)
            || (rank.wait > 0 || rank.uses_slower_path)
                && self.is_better_left_to_other(slot, path_entry, &forecast)
            || slower && self.would_block(slot, path_entry, &forecast);
        if is_unsuitable && current.is_none() && self.in_flight() > 0 {
            return None;
        }
        match current {
            Some(slot) => Some(slot),
            None => self.queue.scheduler_and_heads().0.next(&mut |other| other == slot),
        }
    }

    /// Returns whether the buffers have no room for another packet on this path beyond what fills
    /// those with shorter round trips: a byte stays in the buffers for a round trip, so the shorter
    /// ones make better use of it, and this path gets the rest.
    fn is_reserved(&self, path: &Path, paths: &AssociationPaths) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let automatic = &concurrent.automatic;
        let Some(own) = automatic.view(path.id) else { return false };
        let tolerance = own.tolerance(path.mtu());
        let shorter = automatic.views.iter().filter(|view| view.rtt + tolerance < own.rtt);
        let open: usize = shorter
            .map(|view| {
                let outstanding = paths.get(view.path).map_or(0, Path::outstanding);
                view.fill.saturating_sub(outstanding)
            })
            .sum();
        let flight_after = self.in_flight() + path.mtu();
        // Unsent data may go there.
        let unsent = self.queue.unsent().saturating_sub(path.mtu());
        let left = self.peer_window() + self.in_flight();
        flight_after + open.max(unsent) > self.queue.limit()
            || flight_after + open
                > left.min(automatic.window.saturating_sub(automatic.receiver_backlog()))
    }

    /// Returns whether a stream whose messages would wait at the receiver, or that a slower path
    /// carries, is better left to that path, as there are other streams for this one.
    fn is_better_left_to_other(
        &self,
        slot: StreamSlot,
        path: &Path,
        forecast: &ArrivalForecast,
    ) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let automatic = &concurrent.automatic;
        let Some(view) = automatic.view(path.id) else { return false };
        let until = forecast.arrival + forecast.tolerance;
        if self.is_writable(path.mtu()) {
            // More of their messages may be queued at any time.
            let recent = time_for(path.mtu(), view.rate) * RECENT_PACKETS;
            let own = self.queued_of(slot);
            return self.queue.streams().slots().any(|(other, stream)| {
                other != slot
                    && stream.queued().saturating_mul(BUSY_PART) >= own
                    && automatic.arrival_of(other) <= until
                    && !automatic.uses_slower_path(other, path)
                    && automatic.was_enqueued(other, recent)
            });
        }
        // Nothing is queued before something has left: the others fill all paths faster than the
        // stream's own, and the stream has no more than its share of the send buffer.
        let own = self.queued_of(slot);
        let share = self.queue.limit() / self.queue.streams().len().max(1) + path.mtu();
        let filled = automatic.fills_before(slot, path).saturating_sub(path.mtu());
        own <= share && self.others_fill(slot, path, until, filled)
    }

    /// Returns whether a slower path currently carries other streams than this one, and more data
    /// of them is expected: if it took this one too, more would wait on the faster paths. If the
    /// application waits for room, the next message may belong to any stream, but right after a
    /// packet the application has had no time to queue more.
    fn has_own_streams(&self, slot: StreamSlot, path: &Path) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let automatic = &concurrent.automatic;
        let mut others = self.queue.streams().slots().filter(|(other, _)| *other != slot);
        let is_free = !self.queue.has_waiting_user();
        !automatic.is_home(slot, path)
            && others.any(|(other, _)| match is_free {
                true => automatic.is_home(other, path),
                false => automatic.has_just_sent(other, path),
            })
    }

    /// Returns whether the other streams that need not be left to slower paths, because none of
    /// their data arrives later than `until`, have at least `bytes` in the send buffer.
    fn others_fill(&self, slot: StreamSlot, path: &Path, until: u64, bytes: usize) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let automatic = &concurrent.automatic;
        let is_free = |other: StreamSlot| {
            automatic.arrival_of(other) <= until && !automatic.uses_slower_path(other, path)
        };
        let others =
            self.queue.streams().slots().filter(|(other, _)| *other != slot && is_free(*other));
        let mut found = 0;
        others.map(|(_, stream)| stream.queued()).any(|queued| {
            found += queued;
            found >= bytes
        })
    }

    /// Returns the bytes of a stream in the send buffer.
    fn queued_of(&self, slot: StreamSlot) -> usize {
        self.queue.stream(slot).map_or(0, OutboundStream::queued)
    }

    /// Returns whether another packet of a stream on a slower path would block faster ones: the
    /// other streams have little in the send buffer, and the buffers have no room for what the
    /// faster paths deliver meanwhile.
    fn would_block(&self, slot: StreamSlot, path: &Path, forecast: &ArrivalForecast) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let own = self.queued_of(slot);
        let others = self.queue.queued().saturating_sub(own);
        if others > forecast.meanwhile.min(own / LITTLE_PART) {
            return false;
        }
        let room = concurrent.automatic.window.min(self.queue.limit());
        let needed = path.outstanding() + path.mtu() + forecast.meanwhile + forecast.in_flight;
        needed > room
    }
}

#[cfg(test)]
mod tests;
