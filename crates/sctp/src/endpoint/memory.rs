//! Memory shared by all associations. Each may use a fraction of what is currently free, which
//! always leaves some for later ones, however many use much ("dynamic queue length thresholds",
//! Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).

use core::time::Duration;

use super::Endpoint;
use crate::config::EndpointConfig;
use crate::receive::window::MEMORY_FACTOR;

/// The fraction of the free memory that one association may use.
const FREE_FRACTION: usize = 8;
/// The minimum memory of an association in each direction, in bytes.
const MIN_ALLOWANCE: usize = 64 << 10;
/// The minimum time between two counts of the memory, unless a fraction of it is queued before.
const RECOUNT_INTERVAL: Duration = Duration::from_millis(50);
/// The fraction of the memory that may be queued between two counts.
const UNCOUNTED_FRACTION: usize = 16;
/// The minimum time between two counts per association, so that counting takes a small share of the
/// time.
const RECOUNT_INTERVAL_PER_ASSOCIATION: Duration = Duration::from_micros(10);

/// The state of the shared memory.
#[derive(Debug)]
pub(super) struct Memory {
    /// What each association may use in each direction; unlimited while there is enough.
    allowance: usize,
    /// When to count again.
    due: Duration,
    /// Bytes queued since the last count.
    queued_since_count: usize,
    /// How many associations with full buffers fit into the memory.
    ample_for: usize,
}

impl Memory {
    pub(super) fn new(config: &EndpointConfig) -> Self {
        let ample_for = ample_for(config);
        Self { allowance: usize::MAX, due: Duration::ZERO, queued_since_count: 0, ample_for }
    }
}

fn ample_for(config: &EndpointConfig) -> usize {
    let buffers = &config.association;
    let each = buffers.send_buffer + buffers.receive_buffer.saturating_mul(MEMORY_FACTOR);
    config.memory / each.max(1)
}

impl Endpoint {
    /// Updates each association's share of the free memory, if it is time.
    pub(super) fn share_memory(&mut self) {
        let count = self.registry.len();
        if count <= self.memory.ample_for && self.memory.allowance == usize::MAX {
            return;
        }
        let has_grown = self.memory.queued_since_count > self.config.memory / UNCOUNTED_FRACTION;
        if !has_grown && self.now < self.memory.due {
            return;
        }
        let largest_buffer = self.accepting.send_buffer.max(self.accepting.receive_buffer);
        let each = RECOUNT_INTERVAL_PER_ASSOCIATION
            .saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        self.memory.due = self.now.saturating_add(RECOUNT_INTERVAL.max(each));
        self.memory.queued_since_count = 0;
        let associations = self.registry.slots().filter_map(|slot| self.registry.entry(slot));
        let memory: usize = associations.map(|entry| entry.association.memory()).sum();
        let share = self.config.memory.saturating_sub(memory) / FREE_FRACTION;
        // In powers of two, as small changes make no difference.
        let step = share.checked_ilog2().map_or(0, |bits| 1 << bits);
        let allowance = if step >= largest_buffer { usize::MAX } else { step.max(MIN_ALLOWANCE) };
        if core::mem::replace(&mut self.memory.allowance, allowance) != allowance {
            let slots: alloc::vec::Vec<u32> = self.registry.slots().collect();
            for slot in slots {
                self.update_allowance(slot);
                self.mark_pending(slot);
            }
        }
    }

    /// Adapts to another configuration of the associations that peers open.
    pub(super) fn update_ample_memory(&mut self) {
        self.memory.ample_for = ample_for(&self.config);
    }

    /// Records bytes that a user queues.
    pub(super) fn record_queued(&mut self, bytes: usize) {
        self.memory.queued_since_count = self.memory.queued_since_count.saturating_add(bytes);
        if self.memory.queued_since_count > self.config.memory / UNCOUNTED_FRACTION {
            self.share_memory();
        }
    }

    /// Applies the current share to an association.
    pub(super) fn update_allowance(&mut self, slot: u32) {
        let allowance = self.memory.allowance;
        if let Some(entry) = self.registry.entry_mut(slot) {
            entry.association.set_allowance(allowance);
        }
    }

    /// Returns when to count again, if memory is scarce.
    pub(super) fn memory_timeout(&self) -> Option<Duration> {
        (self.memory.allowance != usize::MAX).then_some(self.memory.due)
    }
}
