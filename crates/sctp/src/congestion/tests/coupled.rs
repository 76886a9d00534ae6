//! Inputs for the coupled controllers.

use core::time::Duration;

use crate::congestion::{Acknowledged, CongestionEvent, CongestionKind, Siblings};

pub(in crate::congestion) const MTU: usize = 1500;

/// Two paths of which nothing is known.
pub(in crate::congestion) fn siblings() -> Siblings {
    Siblings { paths: 2, ..Siblings::default() }
}

/// So many bytes, with the window in full use.
pub(in crate::congestion) fn acknowledged(bytes: usize, siblings: Siblings) -> Acknowledged {
    Acknowledged {
        now: Duration::ZERO,
        bytes,
        cumulative_advanced: true,
        window_was_full: true,
        rtt: None,
        smoothed_rtt: None,
        outstanding: 1 << 20,
        delivery: None,
        siblings,
    }
}

pub(in crate::congestion) fn event(siblings: Siblings) -> CongestionEvent {
    CongestionEvent { now: Duration::ZERO, kind: CongestionKind::Loss, outstanding: 0, siblings }
}
