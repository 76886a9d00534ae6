//! Streams mapped to paths by estimates ([`crate::config::StreamMapping::Automatic`]).
//!
//! For each path it is estimated when a packet that leaves now would be there: by how much later
//! than the quickest path it delivers, and how long its queue is. For each stream it is kept when
//! what was sent of it will be there, and which path carries it. Then
//!
//! - a path takes a stream of which nothing is still on its way to arrive later: its messages wait
//!   for nothing at the receiver. Of several the quickest path takes them in turn, those last that a
//!   slower path carries, and a slower one the one whose last message arrives latest, so that few
//!   streams use it, and those stay;
//! - if there is none, it takes the stream that waits least: no path idles while it has room, unless
//!   the stream's own path takes it, and there will be others for this one;
//! - a path takes nothing if the buffers have no room for that beside what fills the paths of shorter
//!   round trips: a byte takes a buffer for a round trip, so those make more of it. What waits at the
//!   receiver for messages on slower paths takes room of its buffer, too;
//! - streams of higher priority go first, and not on slower paths while there are others for those;
//!   those with a deadline take no path that would miss it ([`crate::config::StreamPreference`]).

use core::time::Duration;

use super::super::Sender;
use super::super::queue::Stream;
use crate::config::{PathOrder, StreamMapping};
use crate::congestion::nanoseconds;
use crate::identifier::{PathId, StreamId};
use crate::path::{Path, PathState, Paths};
use crate::scheduler::StreamSlot;

mod estimates;

pub(super) use estimates::Automatic;
use estimates::{Forecast, time_for};

/// The most streams, or messages where they are sent in the order of their coming, that are looked
/// at for one packet.
const MOST_LOOKED_AT: usize = 64;

/// Paths are held to what fills them where that takes more than this part of the buffers, numerator
/// and denominator: in more room than that the slack of the caps does no harm.
const LEAN_FROM: (usize, usize) = (4, 5);

/// Packets' times after which an application that hands in as packets leave has handed in another
/// message: acknowledgements come for two, and two may come together.
const LATELY_PACKETS: u64 = 4;

/// How good a stream is for a path: what counts more first, the least of each is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Its own value on the quickest paths, those of lower priority first on slower ones.
    priority: u16,
    /// How long its messages would wait at the receiver.
    wait: u64,
    /// Whether a slower path carries it.
    is_of_slower: bool,
    /// On a slower path, how long before the others its last message is there: the one that comes
    /// latest uses the path already.
    early: u64,
}

impl Rank {
    const BEST: Self = Self { priority: 0, wait: 0, is_of_slower: false, early: 0 };
}

/// The stream chosen so far, and how good it is: the least goes first.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    slot: StreamSlot,
    rank: Rank,
}

impl Automatic {
    /// How good a stream is for a path.
    fn rank(&self, slot: StreamSlot, path: &Path, forecast: &Forecast) -> Rank {
        let (slower, arrival) = (forecast.meanwhile > 0, self.arrival_of(slot));
        let priority = self.preference(slot).priority;
        let late = arrival.saturating_sub(forecast.arrival + forecast.tolerance);
        // Its messages may wait at the receiver, if they would not even leave otherwise.
        let starves = !slower && self.starves(slot);
        Rank {
            priority: if slower && self.has_wishes { u16::MAX - priority } else { priority },
            wait: if starves { 0 } else { late },
            is_of_slower: self.is_of_slower(slot, path) && !starves,
            early: if slower { forecast.arrival.saturating_sub(arrival) } else { 0 },
        }
    }
}

impl Sender {
    /// Whether streams are mapped by estimates.
    pub(super) fn maps_automatically(&self) -> bool {
        let mapping = self.multipath.as_ref().map(|concurrent| &concurrent.choices.mapping);
        matches!(mapping, Some(StreamMapping::Automatic))
    }

    /// The time is this.
    #[inline]
    pub(in crate::send) fn note_time(&mut self, now: Duration) {
        if let Some(concurrent) = &mut self.multipath {
            concurrent.automatic.now = nanoseconds(now);
        }
    }

    /// Something of a stream is handed in, for the first time if `is_new`.
    #[inline]
    pub(in crate::send) fn note_handed_in(
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
        concurrent.automatic.on_handed_in(slot, now);
    }

    /// A SACK has been taken in: estimates may have changed.
    pub(in crate::send) fn look_at_paths(&mut self, paths: &mut Paths) {
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
            let lean = needed * LEAN_FROM.1 > room * LEAN_FROM.0;
            paths.iter_mut().for_each(|path| path.keep_lean(lean));
        }
    }

    /// Something of a stream is sent on a path.
    #[inline]
    pub(in crate::send) fn note_arrival_of(
        &mut self,
        slot: StreamSlot,
        path: PathId,
        bytes: usize,
        paths: &Paths,
    ) {
        if !self.maps_automatically() {
            return;
        }
        if let (Some(concurrent), Some(path)) = (&mut self.multipath, paths.get(path)) {
            concurrent.automatic.on_sent(slot, path, bytes);
        }
    }

    /// The stream that may send next on a path, by estimates.
    pub(in crate::send) fn choose_automatically(
        &mut self,
        path: PathId,
        paths: &Paths,
    ) -> Option<StreamSlot> {
        let way = paths.get(path)?;
        let automatic = &self.multipath.as_ref()?.automatic;
        let forecast = automatic.forecast(way, paths);
        let slower = forecast.meanwhile > 0;
        let (scheduler, heads) = self.queue.scheduler_and_heads();
        let current = scheduler.current();
        let may = |slot: StreamSlot| {
            let Some((stream, message)) = heads.get(slot) else { return false };
            let asked =
                message.path.filter(|asked| *asked != path).and_then(|asked| paths.get(asked));
            let is_elsewhere = asked.is_some_and(|asked| asked.state() == PathState::Active);
            let is_begun = message.sent > 0;
            let is_late = !is_begun && automatic.has_wishes && automatic.misses(slot, way, paths);
            !(is_elsewhere || is_late || stream.paused && !is_begun)
        };
        let mut best: Option<Candidate> = None;
        let mut left = MOST_LOOKED_AT;
        let mut rate = |slot: StreamSlot| {
            if !may(slot) {
                return false;
            }
            left -= 1;
            let rank = automatic.rank(slot, way, &forecast);
            if best.is_none_or(|best| rank < best.rank) {
                best = Some(Candidate { slot, rank });
            }
            left == 0 || (!slower && rank == Rank::BEST)
        };
        match current {
            Some(slot) => {
                rate(slot);
            }
            None => {
                scheduler.next(&mut rate);
            }
        }
        let Candidate { slot, rank } = best?;
        let is_bad = self.is_reserved(way, paths)
            || slower && self.has_streams_of_its_own(slot, way)
            || (rank.wait > 0 || rank.is_of_slower) && self.is_better_left(slot, way, &forecast)
            || slower && self.would_hold_up(slot, way, &forecast);
        if is_bad && current.is_none() && self.in_flight() > 0 {
            return None;
        }
        match current {
            Some(slot) => Some(slot),
            None => self.queue.scheduler_and_heads().0.next(&mut |other| other == slot),
        }
    }

    /// Whether the buffers have no room for one packet more on this path beside what fills those of
    /// shorter round trips: a byte stays in the buffers for a round trip, so the shorter ones make
    /// more of it, and this one gets what they leave.
    fn is_reserved(&self, path: &Path, paths: &Paths) -> bool {
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
        let with_this = self.in_flight() + path.mtu();
        // What is unsent may go there.
        let unsent = self.queue.unsent().saturating_sub(path.mtu());
        let left = self.peer_window() + self.in_flight();
        with_this + open.max(unsent) > self.queue.limit()
            || with_this + open > left.min(automatic.window.saturating_sub(automatic.waits()))
    }

    /// Whether a stream whose messages would wait at the receiver, or that a slower path carries, is
    /// better left to that one: there are others for this path.
    fn is_better_left(&self, slot: StreamSlot, path: &Path, forecast: &Forecast) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let automatic = &concurrent.automatic;
        let Some(view) = automatic.view(path.id) else { return false };
        let until = forecast.arrival + forecast.tolerance;
        if self.is_writable(path.mtu()) {
            // More of them may come at once.
            let lately = time_for(path.mtu(), view.rate) * LATELY_PACKETS;
            return self.queue.streams().slots().any(|(other, _)| {
                other != slot
                    && automatic.arrival_of(other) <= until
                    && !automatic.is_of_slower(other, path)
                    && automatic.was_handed_in(other, lately)
            });
        }
        // Nothing comes before something has gone: they fill all paths quicker than the stream's own,
        // and the stream has no more than its share of the send buffer.
        let own = self.queued_of(slot);
        let share = self.queue.limit() / self.queue.streams().len().max(1) + path.mtu();
        let filled = automatic.fills_before(slot, path).saturating_sub(path.mtu());
        own <= share && self.others_fill(slot, path, until, filled)
    }

    /// Whether a slower path carries other streams these days than this one, and more of them may
    /// come: if it took this one, too, more would wait on the quicker paths. Where the application
    /// waits for room, what comes next may be of any stream, but right after sending one it has had
    /// no time to hand in more.
    fn has_streams_of_its_own(&self, slot: StreamSlot, path: &Path) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let automatic = &concurrent.automatic;
        let mut others = self.queue.streams().slots().filter(|(other, _)| *other != slot);
        let is_free = !self.queue.is_waited_for();
        !automatic.is_home(slot, path)
            && others.any(|(other, _)| match is_free {
                true => automatic.is_home(other, path),
                false => automatic.has_just_sent(other, path),
            })
    }

    /// Whether the other streams that need not be left to slower paths, either, as nothing of them
    /// arrives later than `until`, have so many bytes in the send buffer.
    fn others_fill(&self, slot: StreamSlot, path: &Path, until: u64, bytes: usize) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let automatic = &concurrent.automatic;
        let is_free = |other: StreamSlot| {
            automatic.arrival_of(other) <= until && !automatic.is_of_slower(other, path)
        };
        let others =
            self.queue.streams().slots().filter(|(other, _)| *other != slot && is_free(*other));
        let mut found = 0;
        others.map(|(_, stream)| stream.queued()).any(|queued| {
            found += queued;
            found >= bytes
        })
    }

    /// Bytes of a stream in the send buffer.
    fn queued_of(&self, slot: StreamSlot) -> usize {
        self.queue.stream(slot).map_or(0, Stream::queued)
    }

    /// Whether one packet more of a stream on a slower path would stop quicker ones: there are no
    /// other streams for those, and the buffers have no room for what is delivered meanwhile.
    fn would_hold_up(&self, slot: StreamSlot, path: &Path, forecast: &Forecast) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        if self.queue.queued() > self.queued_of(slot) {
            return false;
        }
        let room = concurrent.automatic.window.min(self.queue.limit());
        let needed = path.outstanding() + path.mtu() + forecast.meanwhile + forecast.under_way;
        needed > room
    }
}

#[cfg(test)]
mod tests;
