//! The timing of acknowledgements (RFC 9260 §6.2).

use core::time::Duration;

use crate::config::AssociationConfig;

/// The longest delay of an acknowledgement (RFC 9260 §6.2).
pub const MAX_SACK_DELAY: Duration = Duration::from_millis(500);

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
}

impl SackPolicy {
    /// Returns the policy of a configuration. Gaps are reported immediately unless delayed
    /// acknowledgement for CMT is enabled (Iyengar et al. 2006 §3.3).
    #[must_use]
    pub fn of(config: &AssociationConfig) -> Self {
        let delayed = config.multipath.as_ref().is_some_and(|multipath| multipath.delayed_ack);
        Self {
            every: config.sack_frequency.max(1),
            delay: config.sack_delay.min(MAX_SACK_DELAY),
            at_once_on_gap: !delayed,
            state_count: delayed,
        }
    }
}

/// The data received since the last acknowledgement.
#[derive(Debug)]
pub(crate) struct Acknowledgement {
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

impl Acknowledgement {
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

    /// Completes a packet; `gap`: something is missing. Returns whether it had data.
    #[inline]
    pub(crate) fn end_of_packet(&mut self, now: Duration, gap: bool) -> bool {
        if !core::mem::take(&mut self.in_packet) {
            return false;
        }
        self.packets += 1;
        self.immediate |= self.first
            || self.always
            || self.packets >= self.policy.every
            || (gap && self.policy.at_once_on_gap);
        if self.deadline.is_none() {
            self.deadline = Some(now + self.policy.delay);
        }
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
