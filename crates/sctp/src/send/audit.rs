//! The sums of the sending half, counted again from their parts. Only in builds with debug assertions:
//! fuzzers, property tests and simulations see a sum that drifts where it begins to.

use super::Sender;

/// Chunks and messages for each step without an audit: where there are many of them, steps are short
/// beside counting them all.
const PARTS_A_STEP: u32 = 16;

/// Steps since the last audit.
#[derive(Debug, Default)]
pub(super) struct Audit {
    steps: u32,
}

impl Sender {
    /// Audits, unless there is so much to count that it would take most of the time.
    pub(super) fn audit_now_and_then(&mut self) {
        self.audit.steps += 1;
        let parts = self.outstanding.len() + self.queue.len();
        if (self.audit.steps * PARTS_A_STEP) as usize >= parts {
            self.audit.steps = 0;
            self.check_sums();
        }
    }

    /// Every sum is that of its parts.
    pub(super) fn check_sums(&self) {
        let in_chunks = self.outstanding.check_sums();
        self.queue.check_sums(in_chunks);
    }
}
