//! How large packets may be: packetisation layer path MTU discovery with HEARTBEAT and PAD chunks
//! (RFC 8899 §5.2, §6.2).
//!
//! A path begins with the MTU of the configuration and searches upwards through sizes that links
//! have. Data that does not get through while small heartbeats do is a black hole: the size falls
//! to the base and the search begins again. The loss of a probe says nothing about congestion.

use core::time::Duration;

use crate::congestion::nanoseconds;

/// Sizes of packets that are tried, in bytes of IP packet: those that links and tunnels have.
const SIZES: [u16; 20] = [
    576, 1280, 1400, 1420, 1440, 1452, 1460, 1472, 1480, 1492, 1500, 1536, 2304, 4352, 8166, 9000,
    16_384, 32_768, 49_152, 65_535,
];

/// Probes of one size that may be lost before it counts as too large (RFC 8899 §5.1.2).
const MAX_PROBES: u8 = 3;

/// The size that works nearly everywhere (RFC 8899 §5.1.2, `BASE_PLPMTU`), IPv4.
const BASE_V4: u16 = 1200;

/// The size that every IPv6 path carries (RFC 8200 §5): base and least at once.
const BASE_V6: u16 = 1280;

/// The least size that is used on IPv4 (RFC 791 §3.1: what every host takes).
const MIN_V4: u16 = 576;

/// How long after a search has ended a larger size is tried again (RFC 8899 §5.1.1).
const RAISE_AFTER: u64 = 600_000_000_000;

/// The least time to wait for the answer to a probe (RFC 8899 §5.1.1, `PROBE_TIMER`).
const LEAST_PROBE_TIMER: u64 = 1_000_000_000;

/// Timeouts of data in a row, with heartbeats answered meanwhile, that show a black hole.
const BLACK_HOLE_TIMEOUTS: u8 = 2;

/// Where the search stands (RFC 8899 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuState {
    /// No search: it is not wished.
    Disabled,
    /// The size that works nearly everywhere is in use, as a larger one did not get through.
    Base,
    /// Larger sizes are tried.
    Searching,
    /// The largest size that passes is known, for now.
    Complete,
    /// Not even the base size gets through: the least one is in use.
    Error,
}

/// A probe that has not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    size: u16,
    nonce: u64,
    /// When it counts as lost, in nanoseconds.
    lost_at: u64,
}

/// The MTU of one path, in bytes of IP packet.
#[derive(Clone, Debug)]
pub(super) struct Mtu {
    state: MtuState,
    current: u16,
    /// The least size that is known not to pass, or one more than the largest that is wished.
    ceiling: u32,
    /// The largest that is wished, plus one.
    limit: u32,
    least: u16,
    base: u16,
    probe: Option<Probe>,
    /// Probes lost of the size that is tried.
    lost: u8,
    /// A size that an ICMP message named, to be tried before those of the table.
    hint: u16,
    /// When to try larger sizes again, in nanoseconds.
    raise_at: u64,
    /// Bytes of the packet with data that was sent last.
    sent: u16,
    /// Timeouts of data since some of it was acknowledged.
    timeouts: u8,
}

impl Mtu {
    pub(super) fn new(start: u16, largest: u16, is_ipv4: bool, search: bool) -> Self {
        let (least, base) = if is_ipv4 { (MIN_V4, BASE_V4) } else { (BASE_V6, BASE_V6) };
        let current = start.max(least);
        let limit = u32::from(largest.max(current)) + 1;
        Self {
            state: if search { MtuState::Searching } else { MtuState::Disabled },
            current,
            ceiling: limit,
            limit,
            least,
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

    pub(super) fn state(&self) -> MtuState {
        self.state
    }

    /// When [`Self::on_time`] has something to do, in nanoseconds.
    pub(super) fn next_timeout(&self) -> Option<u64> {
        match (self.state, self.probe) {
            (MtuState::Disabled, _) => None,
            (_, Some(probe)) => Some(probe.lost_at),
            (MtuState::Complete, None) if self.can_raise() => Some(self.raise_at),
            _ => None,
        }
    }

    /// Counts a probe as lost, or begins a new search, if it is time for that.
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

    /// The size of the probe to send now, if one is due.
    pub(super) fn wanted_probe(&self) -> Option<u16> {
        let searching = !matches!(self.state, MtuState::Disabled | MtuState::Complete);
        if searching && self.probe.is_none() { self.candidate() } else { None }
    }

    /// A probe of this size leaves.
    pub(super) fn on_probe_sent(&mut self, now: u64, size: u16, nonce: u64, rto: Duration) {
        let wait = nanoseconds(rto).max(LEAST_PROBE_TIMER);
        self.probe = Some(Probe { size, nonce, lost_at: now.saturating_add(wait) });
    }

    /// A heartbeat with this nonce was answered. Says whether it was the probe.
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

    /// A small heartbeat was answered. Says whether the size changed: data of the size used now
    /// does not get through.
    pub(super) fn on_small_answer(&mut self) -> bool {
        self.suspects_black_hole() && self.fall()
    }

    /// A packet of so many bytes with data leaves.
    pub(super) fn on_data_sent(&mut self, size: usize) {
        self.sent = u16::try_from(size).unwrap_or(u16::MAX);
    }

    /// Data on the path ran into its timeout. What every path carries says nothing of the MTU.
    pub(super) fn on_data_timeout(&mut self) {
        if self.sent > self.least {
            self.timeouts = self.timeouts.saturating_add(1);
        }
    }

    /// Whether large packets vanish, so that it matters if a small one gets through.
    pub(super) fn suspects_black_hole(&self) -> bool {
        self.timeouts >= BLACK_HOLE_TIMEOUTS && self.state != MtuState::Disabled
    }

    /// Data on the path was acknowledged that went in a packet of at least so many bytes. Small
    /// ones prove nothing.
    pub(super) fn on_data_acknowledged(&mut self, size: usize) {
        if size >= usize::from(self.base) || self.current <= self.base {
            self.timeouts = 0;
        }
    }

    /// An ICMP message said that `size` bytes are the most that pass. Says whether the size that
    /// is used changed.
    pub(super) fn on_too_big(&mut self, now: u64, size: u16) -> bool {
        let size = size.max(self.least);
        let probed = self.probe.map_or(0, |probe| probe.size);
        if size >= self.current && size >= probed {
            return false;
        }
        self.ceiling = self.ceiling.min(u32::from(size) + 1);
        if size < self.current {
            // Believed only downwards, and never below what every path carries.
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

    /// The black hole: down to the base, then to the least.
    fn fall(&mut self) -> bool {
        let (size, state) = if self.current > self.base {
            (self.base, MtuState::Base)
        } else {
            (self.least, MtuState::Error)
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

    /// The next size to try.
    fn candidate(&self) -> Option<u16> {
        let fits = |size: u16| size > self.current && u32::from(size) < self.ceiling;
        if fits(self.hint) {
            return Some(self.hint);
        }
        SIZES.into_iter().find(|size| fits(*size)).or_else(|| {
            // The largest that is wished need not be in the table.
            let last = u16::try_from(self.ceiling - 1).unwrap_or(u16::MAX);
            (self.ceiling == self.limit && fits(last)).then_some(last)
        })
    }
}

#[cfg(test)]
mod tests;
