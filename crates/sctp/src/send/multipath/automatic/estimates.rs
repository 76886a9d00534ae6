//! The estimates of the automatic mapping: arrival times on each path, the path that carries each
//! stream, the data that waits at the receiver.

use alloc::vec::Vec;
use core::time::Duration;

use crate::config::StreamPreference;
use crate::congestion::nanoseconds;
use crate::identifier::{PathId, StreamId};
use crate::path::{AssociationPaths, Path, PathState};
use crate::scheduler::StreamSlot;

/// The error of an estimate in packets: SACKs cover two.
const TOLERANCE: u64 = 2;

/// The maximum error as a fraction of the minimum RTT: the rate is inaccurate where little was
/// sent.
const TOLERANCE_PART: u64 = 4;

/// A stream with less than this fraction of an equal share starves (numerator and denominator):
/// slightly more than a fifth.
const STARVATION_SHARE: (u64, u64) = (2, 9);

/// The averaging period for the data that waits at the receiver, in round trips of the slowest
/// path.
const SPAN_ROUND_TRIPS: u64 = 4;

/// The minimum averaging period in nanoseconds.
const MIN_SPAN: u64 = 50_000_000;

/// A path counts as the home of a stream for the time in which it could have sent this many
/// packets: that is, if it carries at least a sixteenth of its capacity, with two packets per
/// acknowledgement.
const HOME_PACKETS: u64 = 32;

/// The estimates for a path. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathView {
    pub(super) path: PathId,
    /// The delay relative to the fastest path, without queues.
    pub(super) lag: u64,
    /// The rate in bytes per second; 0 if unknown.
    pub(super) rate: u64,
    /// The minimum RTT.
    pub(super) rtt: u64,
    /// The bytes in flight that fill it, or its window; 0 if unknown.
    pub(super) fill: usize,
}

impl PathView {
    /// Returns the error of an estimate for packets of `packet` bytes.
    pub(super) fn tolerance(&self, packet: usize) -> u64 {
        (time_for(packet, self.rate) * TOLERANCE).min(self.rtt / TOLERANCE_PART)
    }
}

/// The state of the automatic mapping.
#[derive(Debug, Default)]
pub(in crate::send) struct AutomaticMapping {
    pub(super) views: Vec<PathView>,
    /// By slot.
    pub(super) streams: Vec<StreamEstimate>,
    /// The largest window that the peer advertised, in bytes.
    pub(super) window: usize,
    /// The data that waits at the receiver for earlier messages on slower paths, in
    /// byte-nanoseconds. By Little's law, the average amount is the arrival rate times the waiting
    /// time.
    receiver_wait: DecayingSum,
    /// The bytes sent on all streams.
    sent: DecayingSum,
    /// Whether a stream in use has a preference.
    pub(super) has_preferences: bool,
    pub(super) now: u64,
}

/// The estimates for a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamEstimate {
    /// The estimated arrival of its last data.
    pub(super) arrival: u64,
    /// The path that its last data was sent on, and when.
    home: Option<(PathId, u64)>,
    /// When a message was last queued.
    enqueued_at: u64,
    /// The bytes sent.
    sent: DecayingSum,
    /// Its preference.
    pub(super) preference: StreamPreference,
}

/// A sum whose older parts count less, and not at all after a span.
#[derive(Clone, Copy, Debug, Default)]
struct DecayingSum {
    sum: u64,
    /// The time of the last addition.
    since: u64,
}

impl DecayingSum {
    fn add(&mut self, now: u64, amount: u64, span: u64) {
        self.sum = self.get(now, span).saturating_add(amount);
        self.since = now;
    }

    fn get(&self, now: u64, span: u64) -> u64 {
        let past = now.saturating_sub(self.since).min(span);
        let decayed = u128::from(self.sum) * u128::from(past) / u128::from(span.max(1));
        self.sum - u64::try_from(decayed).unwrap_or(self.sum).min(self.sum)
    }
}

/// The estimated arrival of a packet sent now, and what it would delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalForecast {
    pub(super) arrival: u64,
    pub(super) tolerance: u64,
    /// The bytes that faster paths deliver until then.
    pub(super) meanwhile: usize,
    /// The bytes in flight on those.
    pub(super) in_flight: usize,
}

impl AutomaticMapping {
    /// Refreshes the estimates.
    pub(super) fn refresh(&mut self, paths: &AssociationPaths, window: usize) {
        self.window = self.window.max(window);
        self.views.clear();
        self.views.extend(paths.iter().filter(|path| path.state() == PathState::Active).map(
            |path| PathView {
                path: path.id,
                lag: paths.forward_lag(path.id).map_or(0, nanoseconds),
                rate: path.delivery_rate().unwrap_or(0),
                rtt: path.min_rtt().map_or(0, nanoseconds),
                fill: path.least_fill().map_or(0, |fill| fill.min(path.congestion.window())),
            },
        ));
    }

    pub(super) fn view(&self, path: PathId) -> Option<&PathView> {
        self.views.iter().find(|view| view.path == path)
    }

    /// Returns the estimated arrival of a packet sent on a path now.
    pub(in super::super) fn arrival(&self, path: &Path) -> u64 {
        let Some(view) = self.view(path.id) else { return self.now };
        let queue = time_for(path.outstanding(), view.rate).saturating_sub(view.rtt);
        self.now + view.lag + queue
    }

    pub(super) fn forecast(&self, path: &Path, paths: &AssociationPaths) -> ArrivalForecast {
        let arrival = self.arrival(path);
        let rate = |path: &Path| self.view(path.id).map_or(0, |view| view.rate);
        let tolerance = self.view(path.id).map_or(0, |view| view.tolerance(path.mtu()));
        let mut forecast = ArrivalForecast { arrival, tolerance, meanwhile: 0, in_flight: 0 };
        for other in paths.iter().filter(|other| other.state() == PathState::Active) {
            let earlier = arrival.saturating_sub(self.arrival(other));
            if other.id == path.id || earlier <= tolerance {
                continue;
            }
            forecast.meanwhile += bytes_in(earlier, rate(other));
            forecast.in_flight += other.outstanding();
        }
        forecast
    }

    /// Returns the path that currently carries a stream: it sent data of it recently. `packet` is
    /// the size of a packet.
    fn home(&self, slot: StreamSlot, packet: usize) -> Option<&PathView> {
        let (path, at) = self.streams.get(slot.index())?.home?;
        let view = self.view(path)?;
        let recent = time_for(packet, view.rate) * HOME_PACKETS;
        (self.now.saturating_sub(at) <= recent).then_some(view)
    }

    pub(super) fn is_home(&self, slot: StreamSlot, path: &Path) -> bool {
        self.home(slot, path.mtu()).is_some_and(|view| view.path == path.id)
    }

    /// Returns whether data of a stream was sent on a path at the current time.
    pub(super) fn has_just_sent(&self, slot: StreamSlot, path: &Path) -> bool {
        let home = self.streams.get(slot.index()).and_then(|known| known.home);
        home == Some((path.id, self.now))
    }

    /// Returns whether a slower path currently carries a stream.
    pub(super) fn uses_slower_path(&self, slot: StreamSlot, path: &Path) -> bool {
        let (Some(theirs), Some(own)) = (self.home(slot, path.mtu()), self.view(path.id)) else {
            return false;
        };
        theirs.lag > own.lag + theirs.tolerance(path.mtu())
    }

    /// Returns the bytes that fill this path and all others faster than the one that carries a
    /// stream.
    pub(super) fn fills_before(&self, slot: StreamSlot, path: &Path) -> usize {
        let Some(own) = self.view(path.id) else { return 0 };
        let home = self.home(slot, path.mtu());
        let quick = own.lag + own.tolerance(path.mtu());
        let is_before = |view: &&PathView| match home {
            Some(home) if home.lag > quick => view.lag + view.tolerance(path.mtu()) < home.lag,
            _ => view.lag <= quick,
        };
        let before = self.views.iter().filter(|view| view.path == path.id || is_before(view));
        before.map(|view| bytes_in(view.rtt, view.rate)).sum()
    }

    /// Returns whether the path that carries a stream also carries another one.
    fn has_other_streams(&self, slot: StreamSlot, packet: usize) -> bool {
        let Some(home) = self.home(slot, packet).map(|view| view.path) else { return false };
        let others = (0..self.streams.len() as u16).map(StreamSlot).filter(|other| *other != slot);
        let mut homes = others.filter_map(|other| self.home(other, packet));
        homes.any(|view| view.path == home)
    }

    /// Returns whether a message of a stream was queued within this time.
    pub(super) fn was_enqueued(&self, slot: StreamSlot, within: u64) -> bool {
        let known = self.streams.get(slot.index());
        known.is_some_and(|known| self.now.saturating_sub(known.enqueued_at) <= within)
    }

    /// Returns the averaging period for the data that waits at the receiver.
    fn span(&self) -> u64 {
        let longest = self.views.iter().map(|view| view.rtt).max().unwrap_or(0);
        (longest * SPAN_ROUND_TRIPS).max(MIN_SPAN)
    }

    pub(super) fn arrival_of(&self, slot: StreamSlot) -> u64 {
        self.streams.get(slot.index()).map_or(0, |known| known.arrival)
    }

    /// Returns the bytes that wait at the receiver.
    pub(super) fn receiver_backlog(&self) -> usize {
        let span = self.span();
        usize::try_from(self.receiver_wait.get(self.now, span) / span).unwrap_or(usize::MAX / 64)
    }

    /// Returns the estimates for a stream, creating them if necessary.
    fn known(&mut self, slot: StreamSlot) -> &mut StreamEstimate {
        if self.streams.len() <= slot.index() {
            self.streams.resize(slot.index() + 1, StreamEstimate::default());
        }
        &mut self.streams[slot.index()]
    }

    /// Records the first use of a stream.
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
            self.has_preferences = true;
        }
    }

    /// Records a queued message of a stream.
    pub(super) fn on_enqueued(&mut self, slot: StreamSlot, now: Duration) {
        self.known(slot).enqueued_at = nanoseconds(now);
    }

    /// Records `bytes` of a stream that are sent on a path.
    pub(super) fn on_sent(&mut self, slot: StreamSlot, path: &Path, bytes: usize) {
        let (now, span, arrival) = (self.now, self.span(), self.arrival(path));
        self.sent.add(now, bytes as u64, span);
        let keeps_home =
            self.uses_slower_path(slot, path) && !self.has_other_streams(slot, path.mtu());
        let known = self.known(slot);
        if !keeps_home {
            known.home = Some((path.id, now));
        }
        known.sent.add(now, bytes as u64, span);
        let wait = known.arrival.saturating_sub(arrival);
        known.arrival = known.arrival.max(arrival);
        self.receiver_wait.add(now, wait.saturating_mul(bytes as u64), span);
    }

    /// Sets the bytes that wait at the receiver.
    #[cfg(test)]
    pub(super) fn set_receiver_wait(&mut self, bytes: usize) {
        self.now = 1;
        let span = self.span();
        self.receiver_wait = DecayingSum { sum: bytes as u64 * span, since: u64::MAX / 2 };
    }

    /// Returns whether a stream has recently sent little compared with the others.
    pub(super) fn starves(&self, slot: StreamSlot) -> bool {
        let (now, span, streams) = (self.now, self.span(), self.streams.len() as u64);
        let own = self.streams.get(slot.index()).map_or(0, |known| known.sent.get(now, span));
        own * streams * STARVATION_SHARE.1 < self.sent.get(now, span) * STARVATION_SHARE.0
    }

    /// Returns the preference of a stream.
    pub(super) fn preference(&self, slot: StreamSlot) -> StreamPreference {
        self.streams
            .get(slot.index())
            .map_or_else(StreamPreference::default, |known| known.preference)
    }

    /// Returns whether a message of this stream would miss its deadline on a path, but not on
    /// another one. The one-way delay of the fastest path is taken as half of its RTT.
    pub(super) fn misses_deadline(
        &self,
        slot: StreamSlot,
        path: &Path,
        paths: &AssociationPaths,
    ) -> bool {
        let Some(deadline) = self.preference(slot).deadline else { return false };
        let shortest = self.views.iter().map(|view| view.rtt).min().unwrap_or(0);
        let delay = |path: &Path| self.arrival(path) - self.now + shortest / 2;
        let deadline = nanoseconds(deadline);
        let mut active = paths.iter().filter(|other| other.state() == PathState::Active);
        delay(path) > deadline && active.any(|other| delay(other) <= deadline)
    }
}

/// Returns the nanoseconds in which `bytes` leave at a rate in bytes per second; 0 if the rate is
/// unknown.
pub(in super::super) fn time_for(bytes: usize, rate: u64) -> u64 {
    if rate == 0 {
        return 0;
    }
    u64::try_from(bytes as u128 * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX / 4)
}

/// Returns the bytes that leave in `time` nanoseconds at a rate in bytes per second.
pub(super) fn bytes_in(time: u64, rate: u64) -> usize {
    let bytes = u128::from(rate) * u128::from(time) / 1_000_000_000;
    usize::try_from(bytes).unwrap_or(usize::MAX / 64)
}
