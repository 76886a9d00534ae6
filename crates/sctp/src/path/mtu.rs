//! Packet sizes: packetisation layer path MTU discovery with HEARTBEAT and PAD chunks (RFC 8899
//! §5.2, §6.2).
//!
//! A path starts with the configured MTU and searches upwards through common link MTUs. If data
//! does not get through while small heartbeats do, there is a black hole: the size falls back to
//! the base and the search restarts. The loss of a probe does not indicate congestion.

use core::time::Duration;

use crate::congestion::nanoseconds;

/// The packet sizes that are probed, in bytes of IP packet: those of links and tunnels.
const SIZES: [u16; 20] = [
    576, 1280, 1400, 1420, 1440, 1452, 1460, 1472, 1480, 1492, 1500, 1536, 2304, 4352, 8166, 9000,
    16_384, 32_768, 49_152, 65_535,
];

/// The number of lost probes of one size after which it counts as too large (RFC 8899 §5.1.2).
const MAX_PROBES: u8 = 3;

/// The base size for IPv4, which works nearly everywhere (RFC 8899 §5.1.2, `BASE_PLPMTU`).
const BASE_V4: u16 = 1200;

/// The size that every IPv6 path carries (RFC 8200 §5): both base and minimum.
const BASE_V6: u16 = 1280;

/// The minimum size on IPv4 (RFC 791 §3.1: what every host accepts).
const MIN_V4: u16 = 576;

/// The time after a completed search until a larger size is probed again (RFC 8899 §5.1.1).
const RAISE_AFTER: u64 = 600_000_000_000;

/// The minimum timeout of a probe (RFC 8899 §5.1.1, `PROBE_TIMER`).
const MIN_PROBE_TIMER: u64 = 1_000_000_000;

/// The number of consecutive data timeouts, with heartbeats answered meanwhile, that indicate a
/// black hole.
const BLACK_HOLE_TIMEOUTS: u8 = 2;

/// The state of the search (RFC 8899 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuState {
    /// No search: it is disabled.
    Disabled,
    /// The base size is in use, as a larger one did not get through.
    Base,
    /// Larger sizes are being probed.
    Searching,
    /// The largest size that gets through is known for now.
    Complete,
    /// Not even the base size gets through: the minimum is in use.
    Error,
}

/// An outstanding probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MtuProbe {
    size: u16,
    nonce: u64,
    /// When it counts as lost, in nanoseconds.
    lost_at: u64,
}

/// The MTU of one path, in bytes of IP packet.
#[derive(Clone, Debug)]
pub(super) struct PathMtu {
    state: MtuState,
    current: u16,
    /// The minimum size that is known not to pass, or one more than the largest requested size.
    ceiling: u32,
    /// The largest size allowed, plus one.
    limit: u32,
    minimum: u16,
    base: u16,
    probe: Option<MtuProbe>,
    /// The lost probes of the current candidate.
    lost: u8,
    /// A size stated by an ICMP message, probed before those of the table.
    hint: u16,
    /// When to probe larger sizes again, in nanoseconds.
    raise_at: u64,
    /// The size of the last packet with data.
    sent: u16,
    /// The data timeouts since the last acknowledgement.
    timeouts: u8,
}

impl PathMtu {
    pub(super) fn new(start: u16, largest: u16, is_ipv4: bool, search: bool) -> Self {
        let (minimum, base) = if is_ipv4 { (MIN_V4, BASE_V4) } else { (BASE_V6, BASE_V6) };
        let current = start.max(minimum);
        let limit = u32::from(largest.max(current)) + 1;
        Self {
            state: if search { MtuState::Searching } else { MtuState::Disabled },
            current,
            ceiling: limit,
            limit,
            minimum,
            base,
            probe: None,
            lost: 0,
            hint: 0,
            raise_at: 0,
            sent: 0,
            timeouts: 0,
        }
    }

    pub(super) fn current(&self) -> usize {
        usize::from(self.current)
    }

    #[cfg(any(test, feature = "internals"))]
    pub(super) fn state(&self) -> MtuState {
        self.state
    }

    /// Returns when [`Self::on_time`] has something to do, in nanoseconds.
    pub(super) fn next_timeout(&self) -> Option<u64> {
        match (self.state, self.probe) {
            (MtuState::Disabled, _) => None,
            (_, Some(probe)) => Some(probe.lost_at),
            (MtuState::Complete, None) if self.can_raise() => Some(self.raise_at),
            _ => None,
        }
    }

    /// Counts a probe as lost, or starts a new search, if it is time for that.
    pub(super) fn on_time(&mut self, now: u64) {
        if self.probe.is_some_and(|probe| probe.lost_at <= now) {
            self.on_probe_lost(now);
        }
        if self.state == MtuState::Complete && self.can_raise() && self.raise_at <= now {
            self.ceiling = self.limit;
            self.lost = 0;
            self.state = MtuState::Searching;
        }
    }

    /// Returns the size of the probe to send now, if one is due.
    pub(super) fn wanted_probe(&self) -> Option<u16> {
        let searching = !matches!(self.state, MtuState::Disabled | MtuState::Complete);
        if searching && self.probe.is_none() { self.candidate() } else { None }
    }

    /// Records a probe of this size that is sent.
    pub(super) fn on_probe_sent(&mut self, now: u64, size: u16, nonce: u64, rto: Duration) {
        let wait = nanoseconds(rto).max(MIN_PROBE_TIMER);
        self.probe = Some(MtuProbe { size, nonce, lost_at: now.saturating_add(wait) });
    }

    /// Handles the response to a heartbeat with this nonce. Returns whether it was the probe.
    pub(super) fn on_answer(&mut self, now: u64, nonce: u64) -> bool {
        let Some(probe) = self.probe.filter(|probe| probe.nonce == nonce) else { return false };
        self.probe = None;
        self.lost = 0;
        self.timeouts = 0;
        self.current = self.current.max(probe.size);
        self.state = MtuState::Searching;
        self.complete_if_done(now);
        true
    }

    /// Handles the response to a small heartbeat. Returns whether the size changed, because data of
    /// the current size does not get through.
    pub(super) fn on_small_answer(&mut self) -> bool {
        self.suspects_black_hole() && self.fall_back()
    }

    /// Records a packet with data of this size.
    pub(super) fn on_data_sent(&mut self, size: usize) {
        self.sent = u16::try_from(size).unwrap_or(u16::MAX);
    }

    /// Records a data timeout. Packets of the minimum size are no evidence about the MTU.
    pub(super) fn on_data_timeout(&mut self) {
        if self.sent > self.minimum {
            self.timeouts = self.timeouts.saturating_add(1);
        }
    }

    /// Returns whether large packets seem to be lost, so that the response to a small one matters.
    pub(super) fn suspects_black_hole(&self) -> bool {
        self.timeouts >= BLACK_HOLE_TIMEOUTS && self.state != MtuState::Disabled
    }

    /// Records acknowledged data that was sent in a packet of at least this size. Small packets
    /// prove nothing.
    pub(super) fn on_data_acknowledged(&mut self, size: usize) {
        if size >= usize::from(self.base) || self.current <= self.base {
            self.timeouts = 0;
        }
    }

    /// Handles an ICMP message that states a path MTU of `size` bytes. Returns whether the current
    /// size changed.
    pub(super) fn on_too_big(&mut self, now: u64, size: u16) -> bool {
        let size = size.max(self.minimum);
        let probed = self.probe.map_or(0, |probe| probe.size);
        if size >= self.current && size >= probed {
            return false;
        }
        self.ceiling = self.ceiling.min(u32::from(size) + 1);
        if size < self.current {
            // Trusted only downwards, and never below the minimum.
            self.current = size;
            self.probe = None;
            self.complete_if_done(now);
            return true;
        }
        self.probe = None;
        self.lost = 0;
        self.hint = size;
        self.complete_if_done(now);
        false
    }

    fn on_probe_lost(&mut self, now: u64) {
        let Some(probe) = self.probe.take() else { return };
        self.lost += 1;
        if self.lost >= MAX_PROBES {
            self.lost = 0;
            self.ceiling = self.ceiling.min(u32::from(probe.size));
            self.complete_if_done(now);
        }
    }

    /// Handles a black hole: falls back to the base, then to the minimum.
    fn fall_back(&mut self) -> bool {
        let (size, state) = if self.current > self.base {
            (self.base, MtuState::Base)
        } else {
            (self.minimum, MtuState::Error)
        };
        self.timeouts = 0;
        if size == self.current {
            return false;
        }
        self.ceiling = self.ceiling.min(u32::from(self.current));
        self.current = size;
        self.state = state;
        self.probe = None;
        self.lost = 0;
        true
    }

    fn complete_if_done(&mut self, now: u64) {
        if self.state != MtuState::Disabled && self.candidate().is_none() {
            self.state = MtuState::Complete;
            self.raise_at = now.saturating_add(RAISE_AFTER);
        }
    }

    fn can_raise(&self) -> bool {
        u32::from(self.current) + 1 < self.limit
    }

    /// Returns the next size to probe.
    fn candidate(&self) -> Option<u16> {
        let fits = |size: u16| size > self.current && u32::from(size) < self.ceiling;
        if fits(self.hint) {
            return Some(self.hint);
        }
        SIZES.into_iter().find(|size| fits(*size)).or_else(|| {
            // The largest size allowed need not be in the table.
            let last = u16::try_from(self.ceiling - 1).unwrap_or(u16::MAX);
            (self.ceiling == self.limit && fits(last)).then_some(last)
        })
    }
}

#[cfg(test)]
mod tests;
