//! How much may be sent on a path now: the congestion window, Max.Burst and pacing combined (RFC
//! 9260 §6.1 rules B and D).

use core::time::Duration;

use super::Path;
use crate::config::BurstLimit;
use crate::congestion::nanoseconds;

/// The timer granularity of drivers in nanoseconds: packets due within it are sent together.
const TIMER_GRANULARITY: u64 = 1_000_000;

/// The maximum burst of a fast path in packets: as many as a driver passes to the kernel in one
/// call.
const MAX_PACED_BURST: usize = 64;

/// How much may be sent on a path now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendAllowance {
    /// This many bytes of user data, at least one packet.
    Now(usize),
    /// Nothing now, because packets are paced; several may be sent together at that time. An
    /// association that is polled earlier, as after any input or message, may have room for a
    /// single one.
    At(Duration),
    /// Nothing until the next acknowledgement.
    Closed,
}

/// A token bucket for pacing, stored as the time at which it will be full again.
#[derive(Clone, Debug)]
pub(super) struct PathPacer {
    /// When the bucket is full again, in nanoseconds.
    full_at: u64,
    /// Bytes that may be sent before the next acknowledgement if there is no pacing rate.
    burst: usize,
    /// Max.Burst, in bytes.
    max_burst: usize,
    /// Max.Burst, in packets.
    max_burst_packets: usize,
    /// Whether acknowledgements limit bursts; otherwise packets are counted elsewhere.
    is_limiting: bool,
}

impl PathPacer {
    pub(super) fn new(max_burst: u32, limit: BurstLimit, mtu: usize) -> Self {
        let max_burst_packets = max_burst.max(1) as usize;
        let max_burst = max_burst_packets.saturating_mul(mtu);
        let is_limiting = limit == BurstLimit::Acknowledged;
        Self { full_at: 0, burst: max_burst, max_burst, max_burst_packets, is_limiting }
    }

    pub(super) fn set_mtu(&mut self, mtu: usize) {
        self.max_burst = self.max_burst_packets.saturating_mul(mtu);
    }

    /// Returns the size of the bucket at this rate in bytes: Max.Burst, or what leaves within the
    /// timer granularity if that is more.
    fn capacity(&self, rate: u64, mtu: usize) -> u64 {
        let bytes_per_tick = rate / (1_000_000_000 / TIMER_GRANULARITY);
        bytes_per_tick.min((MAX_PACED_BURST * mtu) as u64).max(self.max_burst as u64)
    }

    fn paced(&self, now: u64, rate: u64, packet: usize, mtu: usize) -> SendAllowance {
        let rate = rate.max(1);
        let depth = time_for(self.capacity(rate, mtu), rate);
        let debt = self.full_at.saturating_sub(now);
        if debt >= depth {
            // Half a bucket later: one call for several packets.
            return SendAllowance::At(Duration::from_nanos(self.full_at - depth / 2));
        }
        let tokens = bytes_in(depth - debt, rate);
        SendAllowance::Now(usize::try_from(tokens).unwrap_or(usize::MAX).max(packet))
    }

    fn consume(&mut self, now: u64, rate: Option<u64>, bytes: usize) {
        self.burst = self.burst.saturating_sub(bytes);
        if let Some(rate) = rate {
            self.full_at =
                self.full_at.max(now).saturating_add(time_for(bytes as u64, rate.max(1)));
        }
    }

    /// Handles an acknowledgement: allows as many bytes, plus Max.Burst.
    pub(super) fn on_acknowledged(&mut self, bytes: usize) {
        self.burst =
            self.burst.min(self.max_burst).saturating_add(bytes).saturating_add(self.max_burst);
    }
}

/// Returns the nanoseconds in which `bytes` leave at `rate` bytes per second.
fn time_for(bytes: u64, rate: u64) -> u64 {
    bytes.saturating_mul(1_000_000_000) / rate
}

/// Returns the bytes that leave in `time` nanoseconds at `rate` bytes per second.
fn bytes_in(time: u64, rate: u64) -> u64 {
    time.saturating_mul(rate) / 1_000_000_000
}

impl Path {
    /// Returns how much may be sent now, if the next packet carries `packet` bytes of user data. A
    /// window with any room admits a whole packet (RFC 9260 §6.1 rule B). After T3 only one packet
    /// is allowed, however small, until something is acknowledged (§6.3.3 E3, §7.2.3).
    #[must_use]
    pub fn allowance(&self, now: Duration, packet: usize) -> SendAllowance {
        if self.granted > 0 {
            return SendAllowance::Now(packet);
        }
        if self.probing && self.outstanding > 0 {
            return SendAllowance::Closed;
        }
        let room = self.room();
        if room == 0 {
            return SendAllowance::Closed;
        }
        let room = room.max(packet);
        match self.congestion.pacing_rate() {
            Some(rate) => {
                match self.pacer.paced(nanoseconds(now), rate, packet, self.mtu.current()) {
                    SendAllowance::Now(bytes) => SendAllowance::Now(bytes.min(room)),
                    later => later,
                }
            }
            None if !self.pacer.is_limiting => SendAllowance::Now(room),
            None if self.outstanding == 0 => {
                SendAllowance::Now(room.min(self.pacer.burst.max(self.pacer.max_burst)))
            }
            None if self.pacer.burst == 0 => SendAllowance::Closed,
            None => SendAllowance::Now(room.min(self.pacer.burst.max(packet))),
        }
    }

    /// Returns the bytes that window and cap leave, regardless of pacing.
    #[must_use]
    pub fn room(&self) -> usize {
        let cap = self.flight_cap().unwrap_or(usize::MAX);
        self.congestion.window().min(cap).saturating_sub(self.outstanding)
    }

    /// Allows another packet regardless of window and pacing: the first of a fast retransmission
    /// (RFC 9260 §7.2.4), or a tail loss probe (RFC 8985 §7.3).
    pub fn grant_packet(&mut self) {
        self.granted = self.granted.saturating_add(1);
    }

    /// Revokes unused packets of [`Self::grant_packet`].
    pub fn revoke_grants(&mut self) {
        self.granted = 0;
    }

    /// Accounts for a packet with `bytes` of user data.
    pub(super) fn consume(&mut self, now: Duration, bytes: usize) {
        self.granted = self.granted.saturating_sub(1);
        if self.outstanding == 0 {
            self.pacer.burst = self.pacer.burst.max(self.pacer.max_burst);
        }
        self.pacer.consume(nanoseconds(now), self.congestion.pacing_rate(), bytes);
    }
}

#[cfg(test)]
mod tests;
