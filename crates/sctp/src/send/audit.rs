//! Audits of the sender's sums, recomputed from their parts. Only in builds with debug assertions:
//! fuzzers, property tests and simulations detect a sum that drifts where it happens.

use super::AssociationSender;

/// Chunks and messages per step without an audit: with many of them, a step is short compared to
/// counting them all.
const PARTS_PER_STEP: u32 = 16;

/// Steps since the last audit.
#[derive(Debug, Default)]
pub(super) struct SenderAudit {
    steps: u32,
}

impl AssociationSender {
    /// Audits, unless counting would dominate the run time.
    pub(super) fn audit_periodically(&mut self) {
        self.audit.steps += 1;
        let parts = self.outstanding.len() + self.queue.len();
        if (self.audit.steps * PARTS_PER_STEP) as usize >= parts {
            self.audit.steps = 0;
            self.check_sums();
        }
    }

    /// Checks that every sum equals the sum of its parts.
    pub(super) fn check_sums(&self) {
        let in_chunks = self.outstanding.check_sums();
        self.queue.check_sums(in_chunks);
    }
}
