//! Notices for the operator of the gateway, rate-limited while an upstream is down.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::{FailureReason, UpstreamFailure};

/// The shortest time between two notices with the same reason.
const MIN_INTERVAL: Duration = Duration::from_secs(5);

type NoticeObserver = Box<dyn Fn(String) + Send + Sync>;

/// The receiver of notices.
#[derive(Default)]
pub(crate) struct NoticeReceiver {
    observer: Option<NoticeObserver>,
    last: Mutex<[LastNotice; FailureReason::NAMES.len()]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LastNotice {
    at: Option<Instant>,
    suppressed: u64,
}

impl fmt::Debug for NoticeReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoticeReceiver")
    }
}

impl NoticeReceiver {
    pub(crate) fn new(observer: Option<NoticeObserver>) -> Self {
        Self { observer, last: Mutex::default() }
    }

    /// Reports a failure, unless the same one was reported recently.
    pub(crate) fn report(&self, failure: &UpstreamFailure, what: impl FnOnce() -> String) {
        let Some(observer) = &self.observer else { return };
        let Some(suppressed) = self.due(failure.reason(), Instant::now()) else { return };
        let more = match suppressed {
            0 => String::new(),
            more => format!(" (and {more} more like it before)"),
        };
        let status = failure.status().as_u16();
        observer(format!("{}: {status}: {failure}{more}", what()));
    }

    /// The number of unreported failures since the last report; `None` if this one is not reported.
    fn due(&self, reason: FailureReason, now: Instant) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = &mut last[reason as usize];
        if last.at.is_some_and(|at| now.saturating_duration_since(at) < MIN_INTERVAL) {
            last.suppressed += 1;
            return None;
        }
        last.at = Some(now);
        Some(std::mem::take(&mut last.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_notices_are_logged_once_and_counted() {
        let notices = NoticeReceiver::default();
        let now = Instant::now();
        assert_eq!(notices.due(FailureReason::Closed, now), Some(0));
        assert_eq!(notices.due(FailureReason::Closed, now), None);
        assert_eq!(notices.due(FailureReason::Closed, now), None);
        assert_eq!(notices.due(FailureReason::Silent, now), Some(0));
        assert_eq!(notices.due(FailureReason::Closed, now + MIN_INTERVAL), Some(2));
        assert_eq!(notices.due(FailureReason::Closed, now + 2 * MIN_INTERVAL), Some(0));
    }
}
