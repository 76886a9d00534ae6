//! The timing of acknowledgements (RFC 9260 §6.2).

use core::time::Duration;

use super::return_path::FULL_PACKET;
use crate::config::{AssociationConfig, SackPath};

/// The longest delay of an acknowledgement (RFC 9260 §6.2).
pub const MAX_SACK_DELAY: Duration = Duration::from_millis(500);

/// The bytes of data for which there is one byte of SACK at the most, unless the data waits for too
/// long: 3 %. A SACK without gap blocks for two full packets is less.
const DATA_PER_SACK_BYTE: usize = 35;

/// The same while this end sends bulk, too: 0.7 %. Its data and its SACKs share the lines, and a
/// line that delivers many times what it carries back has room for few of them: they make the round
/// trips of both ends longer.
const DATA_PER_SACK_BYTE_BESIDE_BULK: usize = 140;

/// The bounds of [`patience`].
const MIN_PATIENCE: Duration = Duration::from_millis(1);
const MIN_PATIENCE_BESIDE_BULK: Duration = Duration::from_millis(5);
const MAX_PATIENCE: Duration = Duration::from_millis(25);

/// Returns how long a SACK that is large for what it acknowledges waits for more data, given the
/// round-trip time of the path that delivered it: an eighth, so that the sender hears of its data
/// several times in each round trip, or a quarter while this end sends bulk. RFC 9260 §6.2: an
/// acknowledgement "SHOULD be generated for at least every second packet"; with several paths, that
/// would be more than some lines carry back.
fn patience(rtt: Option<Duration>, sends_bulk: bool) -> Duration {
    let (divisor, least) =
        if sends_bulk { (4, MIN_PATIENCE_BESIDE_BULK) } else { (8, MIN_PATIENCE) };
    rtt.map_or(least, |rtt| (rtt / divisor).clamp(least, MAX_PATIENCE))
}

/// A packet that was received, for the timing of its acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedPacket {
    /// Whether something is missing.
    pub(crate) gap: bool,
    /// The length of a SACK that is sent now, in bytes, with the headers below.
    pub(crate) sack_bytes: usize,
    /// The round-trip time of its path, if known.
    pub(crate) rtt: Option<Duration>,
    /// Whether this end has bulk in flight.
    pub(crate) sends_bulk: bool,
}

/// When SACKs are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackPolicy {
    /// The number of packets with data after which a SACK is sent immediately.
    pub every: u32,
    /// How long the other acknowledgements may be delayed.
    pub delay: Duration,
    /// Whether a gap is reported immediately. Senders that use several paths at a time do not want
    /// that: their packets overtake each other all the time (delayed acknowledgement for CMT).
    pub at_once_on_gap: bool,
    /// Whether to state how many packets are acknowledged.
    pub state_count: bool,
    /// Whether SACKs that are large for the data that they acknowledge are sent less often
    /// ([`crate::config::SackPath::Budgeted`]).
    pub budgeted: bool,
}

impl SackPolicy {
    /// Returns the policy of a configuration. Gaps are reported immediately unless delayed
    /// acknowledgement for CMT is enabled (Iyengar et al. 2006 §3.3).
    #[must_use]
    pub fn from_config(config: &AssociationConfig) -> Self {
        let delayed = config.multipath.as_ref().is_some_and(|multipath| multipath.delayed_ack);
        Self {
            every: config.sack_frequency.max(1),
            delay: config.sack_delay.min(MAX_SACK_DELAY),
            at_once_on_gap: !delayed,
            state_count: delayed,
            budgeted: config
                .multipath
                .as_ref()
                .is_some_and(|multipath| multipath.sack_path == SackPath::Budgeted),
        }
    }
}

/// The data received since the last acknowledgement.
#[derive(Debug)]
pub(crate) struct SackState {
    pub(crate) policy: SackPolicy,
    /// The unacknowledged packets with data.
    packets: u32,
    deadline: Option<Duration>,
    immediate: bool,
    /// Whether the current packet has data.
    in_packet: bool,
    /// Whether nothing has been acknowledged so far.
    first: bool,
    /// Whether every packet is acknowledged immediately.
    always: bool,
}

impl SackState {
    pub(crate) fn new(policy: SackPolicy) -> Self {
        Self {
            policy,
            packets: 0,
            deadline: None,
            immediate: false,
            in_packet: false,
            first: true,
            always: false,
        }
    }

    /// Records that the current packet has something to acknowledge.
    #[inline]
    pub(crate) fn on_chunk(&mut self) {
        self.in_packet = true;
    }

    /// Requests an immediate acknowledgement.
    #[inline]
    pub(crate) fn request_now(&mut self) {
        self.immediate = true;
    }

    /// Acknowledges every packet immediately from now on (RFC 9260 §9.2).
    pub(crate) fn request_always(&mut self) {
        self.always = true;
    }

    /// Completes a packet. Returns whether it had data.
    #[inline]
    pub(crate) fn end_of_packet(&mut self, now: Duration, packet: &ReceivedPacket) -> bool {
        if !core::mem::take(&mut self.in_packet) {
            return false;
        }
        self.packets += 1;
        self.immediate |= self.first || self.always || (packet.gap && self.policy.at_once_on_gap);
        let enough = self.packets >= self.policy.every;
        let data_per_byte =
            if packet.sends_bulk { DATA_PER_SACK_BYTE_BESIDE_BULK } else { DATA_PER_SACK_BYTE };
        let is_small = !self.policy.budgeted
            || packet.sack_bytes.saturating_mul(data_per_byte)
                <= self.packets as usize * FULL_PACKET;
        self.immediate |= enough && is_small;
        let patience = patience(packet.rtt, packet.sends_bulk);
        let delay = if enough { patience } else { self.policy.delay };
        let deadline = now + delay.min(self.policy.delay);
        self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
        true
    }

    /// Returns whether the acknowledgement has to be sent now.
    #[inline]
    pub(crate) fn is_wanted(&self, now: Duration) -> bool {
        self.immediate || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Returns whether there is something to acknowledge.
    pub(crate) fn is_pending(&self) -> bool {
        self.immediate || self.packets > 0
    }

    /// Returns when a delayed acknowledgement has to be sent.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// Returns how many packets the next acknowledgement covers, as far as it can state that.
    pub(crate) fn count(&self) -> u8 {
        if self.policy.state_count { self.packets.min(3) as u8 } else { 0 }
    }

    /// Records that the acknowledgement has been sent.
    #[inline]
    pub(crate) fn sent(&mut self) {
        self.packets = 0;
        self.deadline = None;
        self.immediate = false;
        self.first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MultipathConfig;

    /// The SACKs for a second with a full packet every 100 µs, of 200 bytes each, on a path with a
    /// round trip of 40 ms.
    fn sacks_in_a_second(sack_path: SackPath, sends_bulk: bool) -> usize {
        let multipath = Some(MultipathConfig { sack_path, ..MultipathConfig::default() });
        let config = AssociationConfig { multipath, ..AssociationConfig::default() };
        let mut acknowledgement = SackState::new(SackPolicy::from_config(&config));
        let rtt = Some(Duration::from_millis(40));
        let mut sacks = 0;
        for packet in 0..10_000 {
            let now = Duration::from_micros(100 * packet);
            acknowledgement.on_chunk();
            let received = ReceivedPacket { gap: true, sack_bytes: 200, rtt, sends_bulk };
            acknowledgement.end_of_packet(now, &received);
            if acknowledgement.is_wanted(now) {
                acknowledgement.sent();
                sacks += 1;
            }
        }
        sacks
    }

    #[test]
    fn sacks_leave_room_for_the_bulk_of_their_own_end() {
        let data = 10_000 * FULL_PACKET;
        let alone = sacks_in_a_second(SackPath::Budgeted, false);
        assert!(alone * 200 * DATA_PER_SACK_BYTE <= data && alone > 1500, "{alone}");
        let beside_bulk = sacks_in_a_second(SackPath::Budgeted, true);
        assert!(beside_bulk * 200 * DATA_PER_SACK_BYTE_BESIDE_BULK <= data, "{beside_bulk}");
        // Four in a round trip at least.
        assert!(beside_bulk >= 4 * 25, "{beside_bulk}");
        // Other policies acknowledge every second packet.
        assert_eq!(sacks_in_a_second(SackPath::InTurn, true), 5000);
    }
}
