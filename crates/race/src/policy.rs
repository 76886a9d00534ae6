//! What the caller wants: RFC 9622 preferences and Happy Eyeballs values.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::candidate::Transport;
use crate::evidence::Level;

/// Values of draft-ietf-happy-happyeyeballs-v3 §9 and what eyas adds to them. Durations are
/// validated by [`Policy::validated`], never silently changed elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Transports allowed, most wanted first; what is not listed is prohibited.
    pub transports: Vec<Transport>,
    /// Race all candidates at once (RFC 9621 §4.1), the only way below the 10 ms floor.
    pub simultaneous: bool,
    /// Resolution Delay: 50 ms.
    pub resolution_delay: Duration,
    /// Connection Attempt Delay without a remembered round trip: 250 ms.
    pub attempt_delay: Duration,
    /// Lower bound of an adapted Connection Attempt Delay: 100 ms.
    pub attempt_delay_min: Duration,
    /// Upper bound of an adapted or extended Connection Attempt Delay: 2 s.
    pub attempt_delay_max: Duration,
    /// Preferred Address Family Count: 1.
    pub preferred_family_count: usize,
    /// Whether IPv4 goes first; IPv6 does by default.
    pub prefer_ipv4: bool,
    /// What a more wanted transport gets before the next one starts, without memory: 50 ms.
    pub head_start: Duration,
    /// What a usable but less wanted transport waits for a more wanted one still under way: 0.
    pub grace: Duration,
    /// How far an attempt must come to win: [`Level::Security`].
    pub win_at: Level,
    /// Keep the more wanted transport going after a lesser one has won, and yield it as `Better`.
    pub late_switch: bool,
    /// What losers may do.
    pub losers: Losers,
    /// Attempts in flight at once in this race.
    pub max_in_flight: usize,
    /// From the start to the last moment at which an attempt may win: 30 s.
    pub deadline: Duration,
    /// How long DNS is still read after the win, for the memory: 1 s.
    pub dns_after_win: Duration,
    /// Try every candidate to its end and crown the best (`eyas race --all`).
    pub exhaustive: bool,
    /// Ignore what the memory says; outcomes are still learnt.
    pub ignore_memory: bool,
}

/// What becomes of the attempts that lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Losers {
    /// They are closed at once and teach nothing.
    Cancel,
    /// They may go on for this long after the win, to give evidence; then they are closed.
    Finish(Duration),
}

/// The least time between two attempts of a race that is not simultaneous
/// (draft-ietf-happy-happyeyeballs-v3 §9, absolute minimum).
pub const ATTEMPT_DELAY_FLOOR: Duration = Duration::from_millis(10);

impl Default for Policy {
    fn default() -> Self {
        Self {
            transports: alloc::vec![Transport::Quic, Transport::Tcp],
            simultaneous: false,
            resolution_delay: Duration::from_millis(50),
            attempt_delay: Duration::from_millis(250),
            attempt_delay_min: Duration::from_millis(100),
            attempt_delay_max: Duration::from_secs(2),
            preferred_family_count: 1,
            prefer_ipv4: false,
            head_start: Duration::from_millis(50),
            grace: Duration::ZERO,
            win_at: Level::Security,
            late_switch: true,
            losers: Losers::Cancel,
            max_in_flight: 8,
            deadline: Duration::from_secs(30),
            dns_after_win: Duration::from_secs(1),
            exhaustive: false,
            ignore_memory: false,
        }
    }
}
