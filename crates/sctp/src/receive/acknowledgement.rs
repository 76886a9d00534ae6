//! When to acknowledge (RFC 9260 §6.2).

use core::time::Duration;

use crate::config::AssociationConfig;

/// The longest that an acknowledgement may wait (RFC 9260 §6.2).
pub const MAX_SACK_DELAY: Duration = Duration::from_millis(500);

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackPolicy {
    /// Every which packet with data is acknowledged at once.
    pub every: u32,
    /// How long the others may wait.
    pub delay: Duration,
    /// Whether a gap is reported at once. Senders that use several paths at a time do not want
    /// that: their packets overtake each other all the time (delayed acknowledgement for CMT).
    pub at_once_on_gap: bool,
    /// Whether to state how many packets are acknowledged.
    pub state_count: bool,
}

impl SackPolicy {
    /// As the association is configured. Gaps are reported at once unless delayed acknowledgement
    /// for CMT is wanted (Iyengar et al. 2006 §3.3).
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

/// What has come since the last acknowledgement.
#[derive(Debug)]
pub(crate) struct Acknowledgement {
    pub(crate) policy: SackPolicy,
    /// Packets with data that are not acknowledged.
    packets: u32,
    deadline: Option<Duration>,
    now_wanted: bool,
    /// Whether the packet that is being taken in has data.
    in_packet: bool,
    /// Whether nothing was acknowledged so far.
    first: bool,
    /// Whether every packet is acknowledged at once.
    always: bool,
}

impl Acknowledgement {
    pub(crate) fn new(policy: SackPolicy) -> Self {
        Self {
            policy,
            packets: 0,
            deadline: None,
            now_wanted: false,
            in_packet: false,
            first: true,
            always: false,
        }
    }

    /// Something in this packet is to be acknowledged.
    #[inline]
    pub(crate) fn on_chunk(&mut self) {
        self.in_packet = true;
    }

    /// The next acknowledgement is wanted at once.
    #[inline]
    pub(crate) fn want_now(&mut self) {
        self.now_wanted = true;
    }

    /// From now on every packet is acknowledged at once (RFC 9260 §9.2).
    pub(crate) fn want_always(&mut self) {
        self.always = true;
    }

    /// A packet has been taken in; `gap`: something is missing. Says whether it had data.
    #[inline]
    pub(crate) fn end_of_packet(&mut self, now: Duration, gap: bool) -> bool {
        if !core::mem::take(&mut self.in_packet) {
            return false;
        }
        self.packets += 1;
        self.now_wanted |= self.first
            || self.always
            || self.packets >= self.policy.every
            || (gap && self.policy.at_once_on_gap);
        if self.deadline.is_none() {
            self.deadline = Some(now + self.policy.delay);
        }
        true
    }

    /// Whether the acknowledgement cannot wait any longer.
    #[inline]
    pub(crate) fn is_wanted(&self, now: Duration) -> bool {
        self.now_wanted || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether there is something to acknowledge.
    pub(crate) fn is_pending(&self) -> bool {
        self.now_wanted || self.packets > 0
    }

    /// When an acknowledgement that may wait cannot do so any longer.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// How many packets the next acknowledgement is for, as far as it can say.
    pub(crate) fn count(&self) -> u8 {
        if self.policy.state_count { self.packets.min(3) as u8 } else { 0 }
    }

    /// The acknowledgement has been sent.
    #[inline]
    pub(crate) fn sent(&mut self) {
        self.packets = 0;
        self.deadline = None;
        self.now_wanted = false;
        self.first = false;
    }
}
