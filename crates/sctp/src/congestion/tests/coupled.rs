//! Inputs for the coupled controllers.

use core::time::Duration;

use crate::congestion::{AcknowledgedData, CongestionEvent, CongestionKind, SiblingPaths};

pub(in crate::congestion) const MTU: usize = 1500;

/// Two paths without any measurements.
pub(in crate::congestion) fn siblings() -> SiblingPaths {
    SiblingPaths { paths: 2, ..SiblingPaths::default() }
}

/// This many bytes acknowledged, with the window fully used.
pub(in crate::congestion) fn acknowledged(
    bytes: usize,
    siblings: SiblingPaths,
) -> AcknowledgedData {
    AcknowledgedData {
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

pub(in crate::congestion) fn event(siblings: SiblingPaths) -> CongestionEvent {
    CongestionEvent { now: Duration::ZERO, kind: CongestionKind::Loss, outstanding: 0, siblings }
}
