//! Inputs for the coupled controllers.

use core::time::Duration;

use crate::congestion::{Acknowledged, CongestionEvent, CongestionKind, Siblings};

pub(in crate::congestion) const MTU: usize = 1500;

/// Two paths without any measurements.
pub(in crate::congestion) fn siblings() -> Siblings {
    Siblings { paths: 2, ..Siblings::default() }
}

/// This many bytes acknowledged, with the window fully used.
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
