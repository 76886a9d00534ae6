//! The resources of the middleboxes between client and server.

use std::time::Duration;

use eyas_emulator::EmulatorCounters;

/// What the middleboxes have used so far, and what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MiddleboxUsage {
    at: Duration,
    busy: Duration,
    /// The entries of all tables.
    pub(super) entries: usize,
}

impl MiddleboxUsage {
    /// Returns the current values; `None` without middleboxes.
    pub(super) fn now(counters: &EmulatorCounters) -> Option<Self> {
        let mut all = counters.paths.iter().flat_map(|path| &path.middleboxes).peekable();
        all.peek()?;
        let zero = Self { at: counters.time, busy: Duration::ZERO, entries: 0 };
        Some(all.fold(zero, |sum, own| Self {
            busy: sum.busy + own.busy,
            entries: sum.entries + own.entries,
            ..sum
        }))
    }

    /// Returns the share of a core used since an earlier reading, in percent.
    pub(super) fn share_since(&self, before: &Self) -> f64 {
        let wall = self.at.saturating_sub(before.at).as_secs_f64();
        100.0 * self.busy.saturating_sub(before.busy).as_secs_f64() / wall.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_a_share_of_a_core() {
        let before = MiddleboxUsage {
            at: Duration::from_secs(10),
            busy: Duration::from_millis(100),
            entries: 3,
        };
        let after = MiddleboxUsage {
            at: Duration::from_secs(12),
            busy: Duration::from_millis(140),
            ..before
        };
        assert!((after.share_since(&before) - 2.0).abs() < 1e-9);
        let none =
            EmulatorCounters { time: before.at, paths: Vec::new(), missed: 0, uncaptured: 0 };
        assert_eq!(MiddleboxUsage::now(&none), None);
    }
}
