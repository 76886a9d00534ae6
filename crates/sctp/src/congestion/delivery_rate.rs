//! Delivery rate estimation (draft-cheng-iccrg-delivery-rate-estimation, now draft-ietf-ccwg-bbr
//! §4.1).
//!
//! The state at the time of sending is stored once per packet, not per chunk: a chunk only stores
//! the [`PacketNumber`].

use alloc::collections::VecDeque;
use core::time::Duration;

/// The maximum number of tracked packets of one path. If more are in flight, the oldest provide no
/// samples.
const MAX_PACKETS: usize = 65_536;

/// The number of a packet with user data on its path. It wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketNumber(pub u32);

/// The state when a packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentState {
    /// When it was sent (`P.sent_time`), in nanoseconds.
    pub sent: u64,
    /// When the first packet of its flight was sent (`P.first_sent_time`).
    pub first_sent: u64,
    /// The time of the last acknowledgement before it (`P.delivered_time`).
    pub delivered_at: u64,
    /// Bytes delivered until then (`P.delivered`).
    pub delivered: u64,
    /// Bytes lost until then (`P.lost`).
    pub lost: u64,
    /// Bytes in flight then, including this packet (`P.tx_in_flight`).
    pub in_flight: usize,
    /// Whether the path was application-limited then (`P.is_app_limited`).
    pub app_limited: bool,
}

/// One sample (`RS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRate {
    /// Bytes delivered over the interval (`RS.delivered`).
    pub bytes: u64,
    /// How long that took, in nanoseconds, at least 1 (`RS.interval`).
    pub interval: u64,
    /// All bytes delivered on the path so far (`C.delivered`).
    pub total_delivered: u64,
    /// Bytes lost over the interval (`RS.lost`).
    pub lost: u64,
    /// The state when the packet was sent that the sample starts from.
    pub sent: SentState,
    /// Whether the interval is too short to be valid: shorter than the minimum RTT.
    pub too_short: bool,
}

impl DeliveryRate {
    /// Returns the rate in bytes per second.
    #[must_use]
    pub fn rate(&self) -> u64 {
        let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.interval.max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

#[derive(Clone, Copy, Debug)]
struct PacketInFlight {
    state: SentState,
    /// Bytes neither acknowledged nor lost.
    left: u32,
    /// Bytes of all its data.
    size: u32,
}

/// Tracks the packets in flight on one path, and provides samples.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRateEstimator {
    packets: VecDeque<PacketInFlight>,
    first_number: u32,
    delivered: u64,
    delivered_at: u64,
    first_sent: u64,
    lost: u64,
    /// The value of `delivered` until which samples are application-limited; 0 if they are not
    /// (`C.app_limited`).
    app_limited_until: u64,
    /// The newest packet acknowledged since the last sample.
    newest: Option<SentState>,
    /// Bytes acknowledged since the last sample.
    acknowledged: usize,
    /// Bytes of the largest packet acknowledged since the last sample.
    largest: u32,
}

impl DeliveryRateEstimator {
    /// Returns the number of the next packet.
    #[must_use]
    pub fn next_number(&self) -> PacketNumber {
        PacketNumber(self.first_number.wrapping_add(self.packets.len() as u32))
    }

    /// Returns the total bytes delivered.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the total bytes lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes acknowledged since the last sample.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// Records a packet with `bytes` of user data; `outstanding` bytes were in flight before it.
    pub fn on_sent(&mut self, now: Duration, bytes: usize, outstanding: usize) {
        let now = nanoseconds(now);
        if outstanding == 0 {
            self.first_sent = now;
            self.delivered_at = now;
        }
        let state = SentState {
            sent: now,
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: self.lost,
            in_flight: outstanding + bytes,
            app_limited: self.app_limited_until != 0,
        };
        if self.packets.len() >= MAX_PACKETS {
            self.packets.pop_front();
            self.first_number = self.first_number.wrapping_add(1);
        }
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.packets.push_back(PacketInFlight { state, left: size, size });
    }

    /// Records that the application has nothing more to send while `outstanding` bytes are in
    /// flight.
    pub fn on_app_limited(&mut self, outstanding: usize) {
        self.app_limited_until = (self.delivered + outstanding as u64).max(1);
    }

    /// Records that `bytes` of this packet were acknowledged.
    pub fn on_acknowledged(&mut self, now: Duration, number: PacketNumber, bytes: usize) {
        self.delivered += bytes as u64;
        self.delivered_at = nanoseconds(now);
        self.acknowledged += bytes;
        let Some((state, size)) = self.remove_bytes(number, bytes) else { return };
        self.largest = self.largest.max(size);
        let newer = self
            .newest
            .is_none_or(|newest| (state.delivered, state.sent) >= (newest.delivered, newest.sent));
        if newer {
            self.newest = Some(state);
        }
    }

    /// Records that `bytes` arrived that were marked as lost and had not been retransmitted.
    pub fn on_late(&mut self, now: Duration, bytes: usize) {
        self.delivered += bytes as u64;
        self.delivered_at = nanoseconds(now);
        self.acknowledged += bytes;
    }

    /// Records that `bytes` of this packet were lost. Returns the state when it was sent.
    pub fn on_lost(&mut self, number: PacketNumber, bytes: usize) -> Option<SentState> {
        self.lost += bytes as u64;
        self.remove_bytes(number, bytes).map(|(state, _)| state)
    }

    /// Returns the bytes of the largest packet acknowledged since the last sample.
    #[must_use]
    pub fn largest(&self) -> usize {
        self.largest as usize
    }

    /// Records that `bytes` of this packet are no longer waited for, for reasons other than the
    /// path.
    pub fn on_forgotten(&mut self, number: PacketNumber, bytes: usize) {
        self.remove_bytes(number, bytes);
    }

    /// Returns the sample of the acknowledgements since the last call, if there is one. `min_rtt`
    /// is the minimum RTT known.
    pub fn sample(&mut self, min_rtt: Option<Duration>) -> Option<DeliveryRate> {
        self.acknowledged = 0;
        self.largest = 0;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let sent = self.newest.take()?;
        self.first_sent = self.first_sent.max(sent.sent);
        let send_elapsed = sent.sent.saturating_sub(sent.first_sent);
        let ack_elapsed = self.delivered_at.saturating_sub(sent.delivered_at);
        let interval = send_elapsed.max(ack_elapsed).max(1);
        Some(DeliveryRate {
            bytes: self.delivered - sent.delivered,
            interval,
            total_delivered: self.delivered,
            lost: self.lost - sent.lost,
            sent,
            too_short: min_rtt.is_some_and(|min_rtt| interval < nanoseconds(min_rtt)),
        })
    }

    /// Removes `bytes` from a packet, and completed packets from the front.
    fn remove_bytes(&mut self, number: PacketNumber, bytes: usize) -> Option<(SentState, u32)> {
        let index = number.0.wrapping_sub(self.first_number) as usize;
        let packet = self.packets.get_mut(index)?;
        packet.left = packet.left.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        let taken = (packet.state, packet.size);
        while self.packets.front().is_some_and(|packet| packet.left == 0) {
            self.packets.pop_front();
            self.first_number = self.first_number.wrapping_add(1);
        }
        Some(taken)
    }
}

/// Converts a duration to nanoseconds; at most 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests;
