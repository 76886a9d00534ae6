//! Streams mapped to paths by estimates ([`crate::cmt::StreamMapping::Automatic`]).
//!
//! For each path it is estimated when a packet that leaves now would be there: by how much later
//! than the quickest path it delivers, and how long its queue is. For each stream it is kept when
//! what was sent of it will be there. Then
//!
//! - a path takes a stream of which nothing is still on its way to arrive later: its messages wait
//!   for nothing at the receiver. Of several the quickest path takes them in turn, and a slower one
//!   the one whose last message arrives latest, so that few streams use it, and those stay;
//! - if there is none, it takes the stream that waits least: no path idles while it has room;
//! - but a slower path takes nothing if that would hold up what quicker ones deliver meanwhile, and
//!   the buffers have no room for so much: they would stand still, too.

use alloc::vec::Vec;
use core::time::Duration;

use super::super::Sender;
use crate::cmt::{PathOrder, StreamMapping};
use crate::congestion::nanoseconds;
use crate::identifier::PathId;
use crate::path::{Path, PathState, Paths};
use crate::scheduler::StreamSlot;

/// The most streams, or messages where they are sent in the order of their coming, that are looked
/// at for one packet.
const MOST_LOOKED_AT: usize = 64;

/// Packets by which an estimate may be wrong: SACKs come for two.
const TOLERANCE: u64 = 2;

/// What is estimated of a path. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct View {
    path: PathId,
    /// By how much later than on the quickest path something arrives without queues.
    lag: u64,
    /// Bytes a second; 0 if not known.
    rate: u64,
    /// The least round trip.
    rtt: u64,
}

/// What the automatic mapping keeps.
#[derive(Debug, Default)]
pub(super) struct Automatic {
    views: Vec<View>,
    /// When what was sent of a stream will be there, by slot.
    arrivals: Vec<u64>,
    /// The largest window that the peer advertised, in bytes.
    window: usize,
    now: u64,
}

/// When a packet that leaves now would be there, and what it would hold up.
#[derive(Clone, Copy, Debug)]
struct Outlook {
    arrival: u64,
    tolerance: u64,
    /// When it would be there on the quickest path.
    quickest: u64,
    /// Bytes that quicker paths deliver until then.
    meanwhile: usize,
    /// Bytes that are under way on those.
    under_way: usize,
}

impl Automatic {
    /// Takes in new estimates.
    fn look(&mut self, paths: &Paths, window: usize) {
        self.window = self.window.max(window);
        self.views.clear();
        self.views.extend(paths.iter().filter(|path| path.state() == PathState::Active).map(
            |path| View {
                path: path.id,
                lag: paths.forward_lag(path.id).map_or(0, nanoseconds),
                rate: path.delivery_rate().unwrap_or(0),
                rtt: path.least_rtt().map_or(0, nanoseconds),
            },
        ));
    }

    fn view(&self, path: PathId) -> Option<&View> {
        self.views.iter().find(|view| view.path == path)
    }

    /// When a packet that leaves on a path now would be there.
    pub(super) fn arrival(&self, path: &Path) -> u64 {
        let Some(view) = self.view(path.id) else { return self.now };
        let queue = time_for(path.outstanding(), view.rate).saturating_sub(view.rtt);
        self.now + view.lag + queue
    }

    fn outlook(&self, path: &Path, paths: &Paths) -> Outlook {
        let arrival = self.arrival(path);
        let rate = |path: &Path| self.view(path.id).map_or(0, |view| view.rate);
        let tolerance = time_for(path.mtu(), rate(path)) * TOLERANCE;
        let mut outlook =
            Outlook { arrival, tolerance, quickest: arrival, meanwhile: 0, under_way: 0 };
        for other in paths.iter().filter(|other| other.state() == PathState::Active) {
            let earlier = arrival.saturating_sub(self.arrival(other));
            if other.id == path.id || earlier <= tolerance {
                continue;
            }
            outlook.meanwhile += bytes_in(earlier, rate(other));
            outlook.under_way += other.outstanding();
            outlook.quickest = outlook.quickest.min(arrival - earlier);
        }
        outlook
    }

    fn arrival_of(&self, slot: StreamSlot) -> u64 {
        self.arrivals.get(slot.index()).copied().unwrap_or(0)
    }
}

/// Nanoseconds in which so many bytes leave at a rate in bytes a second; none if that is not known.
fn time_for(bytes: usize, rate: u64) -> u64 {
    if rate == 0 {
        return 0;
    }
    u64::try_from(bytes as u128 * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX / 4)
}

/// Bytes that leave in so many nanoseconds at a rate in bytes a second.
fn bytes_in(time: u64, rate: u64) -> usize {
    let bytes = u128::from(rate) * u128::from(time) / 1_000_000_000;
    usize::try_from(bytes).unwrap_or(usize::MAX / 64)
}

/// The stream chosen so far, and how good it is: the least goes first.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    slot: StreamSlot,
    rank: (u64, u64),
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

    /// A SACK has been taken in: estimates may have changed.
    pub(in crate::send) fn look_at_paths(&mut self, paths: &Paths) {
        let is_wanted = self.multipath.as_ref().is_some_and(|concurrent| {
            concurrent.choices.mapping == StreamMapping::Automatic
                || concurrent.choices.path_order == PathOrder::EarliestArrival
        });
        if is_wanted && let Some(concurrent) = &mut self.multipath {
            let window = self.peer_window.left(self.in_flight) + self.in_flight;
            concurrent.automatic.look(paths, window);
        }
    }

    /// Something of a stream is sent on a path.
    #[inline]
    pub(in crate::send) fn note_arrival_of(
        &mut self,
        slot: StreamSlot,
        path: PathId,
        paths: &Paths,
    ) {
        if !self.maps_automatically() {
            return;
        }
        let Some(concurrent) = &mut self.multipath else { return };
        let automatic = &mut concurrent.automatic;
        let Some(path) = paths.get(path) else { return };
        let arrival = automatic.arrival(path);
        if automatic.arrivals.len() <= slot.index() {
            automatic.arrivals.resize(slot.index() + 1, 0);
        }
        let known = &mut automatic.arrivals[slot.index()];
        *known = arrival.max(*known);
    }

    /// The stream that may send next on a path, by estimates.
    pub(in crate::send) fn choose_automatically(
        &mut self,
        path: PathId,
        paths: &Paths,
    ) -> Option<StreamSlot> {
        let way = paths.get(path)?;
        let automatic = &self.multipath.as_ref()?.automatic;
        let outlook = automatic.outlook(way, paths);
        let slower = outlook.meanwhile > 0;
        let (streams, messages, current) = (&self.streams, &self.messages, self.current);
        let may = |slot: StreamSlot| {
            let Some(stream) = streams.get(slot) else { return false };
            let Some(message) = messages.get(stream.head) else { return false };
            let wish = message.path.filter(|wish| *wish != path).and_then(|wish| paths.get(wish));
            let is_elsewhere = wish.is_some_and(|wish| wish.state() == PathState::Active);
            !(is_elsewhere || stream.paused && message.sent == 0)
        };
        let mut best: Option<Candidate> = None;
        let mut left = MOST_LOOKED_AT;
        let mut rate = |slot: StreamSlot| {
            if !may(slot) {
                return false;
            }
            left -= 1;
            let arrival = automatic.arrival_of(slot);
            let wait = arrival.saturating_sub(outlook.arrival + outlook.tolerance);
            // A slower path takes the stream that arrives latest: it uses the path already.
            let early = if slower { outlook.arrival.saturating_sub(arrival) } else { 0 };
            let rank = (wait, early);
            if best.is_none_or(|best| rank < best.rank) {
                best = Some(Candidate { slot, rank });
            }
            left == 0 || (!slower && wait == 0)
        };
        match current {
            Some(slot) => {
                rate(slot);
            }
            None => {
                self.scheduler.next(&mut rate);
            }
        }
        let Candidate { slot, rank } = best?;
        let is_bad = rank.0 > 0 && self.is_better_left(slot, way, &outlook)
            || slower && self.would_hold_up(slot, way, &outlook);
        if is_bad && current.is_none() && self.in_flight > 0 {
            return None;
        }
        match current {
            Some(slot) => Some(slot),
            None => self.scheduler.next(&mut |other| other == slot && may(other)),
        }
    }

    /// Whether a stream whose messages would wait at the receiver is better left to the path that
    /// it is on: the others fill this path, and it has no more than its share of the send buffer.
    fn is_better_left(&self, slot: StreamSlot, path: &Path, outlook: &Outlook) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let Some(view) = concurrent.automatic.view(path.id) else { return false };
        let own = self.queued_of(slot);
        let share = self.send_buffer / self.streams.len().max(1) + path.mtu();
        let filled = bytes_in(view.rtt, view.rate) + path.mtu();
        own <= share && self.others_fill(slot, outlook.arrival + outlook.tolerance, filled)
    }

    /// Whether the other streams of which nothing arrives later than `until` have so many bytes in
    /// the send buffer.
    fn others_fill(&self, slot: StreamSlot, until: u64, bytes: usize) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        let is_free = |other: StreamSlot| concurrent.automatic.arrival_of(other) <= until;
        let others = self.streams.slots().filter(|(other, _)| *other != slot && is_free(*other));
        let mut found = 0;
        others.map(|(_, stream)| stream.unsent + stream.unacknowledged).any(|queued| {
            found += queued;
            found >= bytes
        })
    }

    /// Bytes of a stream in the send buffer.
    fn queued_of(&self, slot: StreamSlot) -> usize {
        self.streams.get(slot).map_or(0, |stream| stream.unsent + stream.unacknowledged)
    }

    /// Whether one packet more of a stream on a slower path would stop quicker ones: the other
    /// streams do not fill those, and the buffers have no room for what is delivered meanwhile.
    fn would_hold_up(&self, slot: StreamSlot, path: &Path, outlook: &Outlook) -> bool {
        let Some(concurrent) = &self.multipath else { return false };
        if self.others_fill(slot, outlook.quickest + outlook.tolerance, outlook.under_way) {
            return false;
        }
        let room = concurrent.automatic.window.min(self.send_buffer);
        let needed = path.outstanding() + path.mtu() + outlook.meanwhile + outlook.under_way;
        needed > room
    }
}

#[cfg(test)]
mod tests;
