//! What the automatic mapping estimates: when something would be there on a path, which path carries
//! which stream, what waits at the receiver.

use alloc::vec::Vec;
use core::time::Duration;

use crate::config::StreamPreference;
use crate::congestion::nanoseconds;
use crate::identifier::{PathId, StreamId};
use crate::path::{Path, PathState, Paths};
use crate::scheduler::StreamSlot;

/// Packets by which an estimate may be wrong: SACKs come for two.
const TOLERANCE: u64 = 2;

/// But no more than this part of the least round trip: where little was sent the rate is known badly.
const TOLERANCE_PART: u64 = 4;

/// A stream starves that has less than this part of an equal share, numerator and denominator: a
/// fifth and a little more.
const STARVING: (u64, u64) = (2, 9);

/// Round trips of the slowest path over which is averaged what waits at the receiver.
const SPAN_ROUND_TRIPS: u64 = 4;

/// The least time for that, in nanoseconds.
const LEAST_SPAN: u64 = 50_000_000;

/// A path counts as the one of a stream for the time in which it could have sent so many packets: it
/// is, if it carries a sixteenth of what it could or more, two packets for an acknowledgement.
const HOME_PACKETS: u64 = 32;

/// What is estimated of a path. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) path: PathId,
    /// By how much later than on the quickest path something arrives without queues.
    pub(super) lag: u64,
    /// Bytes a second; 0 if not known.
    pub(super) rate: u64,
    /// The least round trip.
    pub(super) rtt: u64,
    /// Bytes under way that fill it, or its window; 0 if not known.
    pub(super) fill: usize,
}

impl View {
    /// By how much an estimate may be wrong, for packets of so many bytes.
    pub(super) fn tolerance(&self, packet: usize) -> u64 {
        (time_for(packet, self.rate) * TOLERANCE).min(self.rtt / TOLERANCE_PART)
    }
}

/// What the automatic mapping keeps.
#[derive(Debug, Default)]
pub(in crate::send) struct Automatic {
    pub(super) views: Vec<View>,
    /// By slot.
    pub(super) streams: Vec<Known>,
    /// The largest window that the peer advertised, in bytes.
    pub(super) window: usize,
    /// What waits at the receiver for messages that were sent before on slower paths, in bytes by
    /// nanoseconds. By Little's law that is on average how much comes there in a time, by how long
    /// it waits.
    waiting: Fading,
    /// Bytes sent of all streams.
    sent: Fading,
    /// Whether a stream in use has a preference.
    pub(super) has_wishes: bool,
    pub(super) now: u64,
}

/// What is known of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// When what was sent of it will be there.
    pub(super) arrival: u64,
    /// The path that it was last sent on, and when.
    home: Option<(PathId, u64)>,
    /// When something was last handed in.
    handed_in: u64,
    /// Bytes sent of it.
    sent: Fading,
    /// What it asks for.
    pub(super) preference: StreamPreference,
}

/// A sum of which older parts count less, those of a span ago nothing any more.
#[derive(Clone, Copy, Debug, Default)]
struct Fading {
    sum: u64,
    /// When something was last added.
    since: u64,
}

impl Fading {
    fn add(&mut self, now: u64, amount: u64, span: u64) {
        self.sum = self.get(now, span).saturating_add(amount);
        self.since = now;
    }

    fn get(&self, now: u64, span: u64) -> u64 {
        let past = now.saturating_sub(self.since).min(span);
        let faded = u128::from(self.sum) * u128::from(past) / u128::from(span.max(1));
        self.sum - u64::try_from(faded).unwrap_or(self.sum).min(self.sum)
    }
}

/// When a packet that leaves now would be there, and what it would hold up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forecast {
    pub(super) arrival: u64,
    pub(super) tolerance: u64,
    /// Bytes that quicker paths deliver until then.
    pub(super) meanwhile: usize,
    /// Bytes that are under way on those.
    pub(super) under_way: usize,
}

impl Automatic {
    /// Takes in new estimates.
    pub(super) fn refresh(&mut self, paths: &Paths, window: usize) {
        self.window = self.window.max(window);
        self.views.clear();
        self.views.extend(paths.iter().filter(|path| path.state() == PathState::Active).map(
            |path| View {
                path: path.id,
                lag: paths.forward_lag(path.id).map_or(0, nanoseconds),
                rate: path.delivery_rate().unwrap_or(0),
                rtt: path.least_rtt().map_or(0, nanoseconds),
                fill: path.least_fill().map_or(0, |fill| fill.min(path.congestion.window())),
            },
        ));
    }

    pub(super) fn view(&self, path: PathId) -> Option<&View> {
        self.views.iter().find(|view| view.path == path)
    }

    /// When a packet that leaves on a path now would be there.
    pub(in super::super) fn arrival(&self, path: &Path) -> u64 {
        let Some(view) = self.view(path.id) else { return self.now };
        let queue = time_for(path.outstanding(), view.rate).saturating_sub(view.rtt);
        self.now + view.lag + queue
    }

    pub(super) fn forecast(&self, path: &Path, paths: &Paths) -> Forecast {
        let arrival = self.arrival(path);
        let rate = |path: &Path| self.view(path.id).map_or(0, |view| view.rate);
        let tolerance = self.view(path.id).map_or(0, |view| view.tolerance(path.mtu()));
        let mut forecast = Forecast { arrival, tolerance, meanwhile: 0, under_way: 0 };
        for other in paths.iter().filter(|other| other.state() == PathState::Active) {
            let earlier = arrival.saturating_sub(self.arrival(other));
            if other.id == path.id || earlier <= tolerance {
                continue;
            }
            forecast.meanwhile += bytes_in(earlier, rate(other));
            forecast.under_way += other.outstanding();
        }
        forecast
    }

    /// The path that carries a stream these days: it has sent of it not many packets ago. A packet
    /// has so many bytes.
    fn home(&self, slot: StreamSlot, packet: usize) -> Option<&View> {
        let (path, at) = self.streams.get(slot.index())?.home?;
        let view = self.view(path)?;
        let patience = time_for(packet, view.rate) * HOME_PACKETS;
        (self.now.saturating_sub(at) <= patience).then_some(view)
    }

    pub(super) fn is_home(&self, slot: StreamSlot, path: &Path) -> bool {
        self.home(slot, path.mtu()).is_some_and(|view| view.path == path.id)
    }

    /// Whether something of a stream left on a path at this very time.
    pub(super) fn has_just_sent(&self, slot: StreamSlot, path: &Path) -> bool {
        let home = self.streams.get(slot.index()).and_then(|known| known.home);
        home == Some((path.id, self.now))
    }

    /// Whether a stream is one that a slower path carries these days.
    pub(super) fn is_of_slower(&self, slot: StreamSlot, path: &Path) -> bool {
        let (Some(theirs), Some(own)) = (self.home(slot, path.mtu()), self.view(path.id)) else {
            return false;
        };
        theirs.lag > own.lag + theirs.tolerance(path.mtu())
    }

    /// Bytes that fill this path and all others that are quicker than the one that carries a stream.
    pub(super) fn fills_before(&self, slot: StreamSlot, path: &Path) -> usize {
        let Some(own) = self.view(path.id) else { return 0 };
        let home = self.home(slot, path.mtu());
        let quick = own.lag + own.tolerance(path.mtu());
        let is_before = |view: &&View| match home {
            Some(home) if home.lag > quick => view.lag + view.tolerance(path.mtu()) < home.lag,
            _ => view.lag <= quick,
        };
        let before = self.views.iter().filter(|view| view.path == path.id || is_before(view));
        before.map(|view| bytes_in(view.rtt, view.rate)).sum()
    }

    /// Whether the path that carries a stream carries another one, too.
    fn has_other_streams(&self, slot: StreamSlot, packet: usize) -> bool {
        let Some(home) = self.home(slot, packet).map(|view| view.path) else { return false };
        let others = (0..self.streams.len() as u16).map(StreamSlot).filter(|other| *other != slot);
        let mut homes = others.filter_map(|other| self.home(other, packet));
        homes.any(|view| view.path == home)
    }

    /// Whether something of a stream was handed in within this time.
    pub(super) fn was_handed_in(&self, slot: StreamSlot, within: u64) -> bool {
        let known = self.streams.get(slot.index());
        known.is_some_and(|known| self.now.saturating_sub(known.handed_in) <= within)
    }

    /// The time over which is averaged what waits at the receiver.
    fn span(&self) -> u64 {
        let longest = self.views.iter().map(|view| view.rtt).max().unwrap_or(0);
        (longest * SPAN_ROUND_TRIPS).max(LEAST_SPAN)
    }

    pub(super) fn arrival_of(&self, slot: StreamSlot) -> u64 {
        self.streams.get(slot.index()).map_or(0, |known| known.arrival)
    }

    /// Bytes that wait at the receiver.
    pub(super) fn waits(&self) -> usize {
        let span = self.span();
        usize::try_from(self.waiting.get(self.now, span) / span).unwrap_or(usize::MAX / 64)
    }

    /// What is known of a stream, with a place for it if there was none.
    fn known(&mut self, slot: StreamSlot) -> &mut Known {
        if self.streams.len() <= slot.index() {
            self.streams.resize(slot.index() + 1, Known::default());
        }
        &mut self.streams[slot.index()]
    }

    /// A stream is used for the first time.
    pub(super) fn on_new(
        &mut self,
        slot: StreamSlot,
        id: StreamId,
        all: &[(StreamId, StreamPreference)],
    ) {
        let preference =
            all.iter().find(|(stream, _)| *stream == id).map(|(_, preference)| *preference);
        if let Some(preference) = preference {
            self.known(slot).preference = preference;
            self.has_wishes = true;
        }
    }

    /// Something of a stream is handed in.
    pub(super) fn on_handed_in(&mut self, slot: StreamSlot, now: Duration) {
        self.known(slot).handed_in = nanoseconds(now);
    }

    /// So many bytes of a stream are sent on a path.
    pub(super) fn on_sent(&mut self, slot: StreamSlot, path: &Path, bytes: usize) {
        let (now, span, arrival) = (self.now, self.span(), self.arrival(path));
        self.sent.add(now, bytes as u64, span);
        let stays = self.is_of_slower(slot, path) && !self.has_other_streams(slot, path.mtu());
        let known = self.known(slot);
        if !stays {
            known.home = Some((path.id, now));
        }
        known.sent.add(now, bytes as u64, span);
        let wait = known.arrival.saturating_sub(arrival);
        known.arrival = known.arrival.max(arrival);
        self.waiting.add(now, wait.saturating_mul(bytes as u64), span);
    }

    /// So many bytes wait at the receiver.
    #[cfg(test)]
    pub(super) fn note_waiting(&mut self, bytes: usize) {
        self.now = 1;
        let span = self.span();
        self.waiting = Fading { sum: bytes as u64 * span, since: u64::MAX / 2 };
    }

    /// Whether little was sent of a stream lately, measured by the others.
    pub(super) fn starves(&self, slot: StreamSlot) -> bool {
        let (now, span, streams) = (self.now, self.span(), self.streams.len() as u64);
        let own = self.streams.get(slot.index()).map_or(0, |known| known.sent.get(now, span));
        own * streams * STARVING.1 < self.sent.get(now, span) * STARVING.0
    }

    /// What a stream asks for.
    pub(super) fn preference(&self, slot: StreamSlot) -> StreamPreference {
        self.streams
            .get(slot.index())
            .map_or_else(StreamPreference::default, |known| known.preference)
    }

    /// Whether a message of this stream would come too late on a path, and not on another one. The
    /// way there on the quickest path is taken for half of its round trip.
    pub(super) fn misses(&self, slot: StreamSlot, path: &Path, paths: &Paths) -> bool {
        let Some(deadline) = self.preference(slot).deadline else { return false };
        let shortest = self.views.iter().map(|view| view.rtt).min().unwrap_or(0);
        let takes = |path: &Path| self.arrival(path) - self.now + shortest / 2;
        let deadline = nanoseconds(deadline);
        let mut active = paths.iter().filter(|other| other.state() == PathState::Active);
        takes(path) > deadline && active.any(|other| takes(other) <= deadline)
    }
}

/// Nanoseconds in which so many bytes leave at a rate in bytes a second; none if that is not known.
pub(super) fn time_for(bytes: usize, rate: u64) -> u64 {
    if rate == 0 {
        return 0;
    }
    u64::try_from(bytes as u128 * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX / 4)
}

/// Bytes that leave in so many nanoseconds at a rate in bytes a second.
pub(super) fn bytes_in(time: u64, rate: u64) -> usize {
    let bytes = u128::from(rate) * u128::from(time) / 1_000_000_000;
    usize::try_from(bytes).unwrap_or(usize::MAX / 64)
}
