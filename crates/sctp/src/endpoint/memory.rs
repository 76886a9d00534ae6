//! Memory shared by all associations. Each may use a fraction of what is currently free, which
//! always leaves some for later ones, however many use much ("dynamic queue length thresholds",
//! Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).

use core::time::Duration;

use super::Endpoint;
use crate::receive::window::MEMORY_FACTOR;

/// The part of what is free that one association may take.
const FREE_PART: usize = 8;
/// What an association may hold each way in any case, in bytes.
const LEAST_ALLOWANCE: usize = 64 << 10;
/// How often it is counted what is held, at most, unless a part of all memory is handed in before.
const RECOUNT: Duration = Duration::from_millis(50);
/// The part of the memory that is handed in between, at most.
const UNCOUNTED_PART: usize = 16;
/// The time between two counts for each association, so that counting takes a small part of the time.
const RECOUNT_EACH: Duration = Duration::from_micros(10);

/// What is known of the memory.
#[derive(Debug)]
pub(super) struct Memory {
    /// What each association may hold each way; more than any wants while there is enough.
    allowance: usize,
    /// When to count again.
    due: Duration,
    /// Bytes handed in since it was counted.
    handed_in: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { allowance: usize::MAX, due: Duration::ZERO, handed_in: 0 }
    }
}

impl Endpoint {
    /// Gives each association its share of what is free, if it is time.
    pub(super) fn share_memory(&mut self) {
        let (config, count) = (&self.accepting, self.registry.len());
        let most = config.send_buffer.max(config.receive_buffer);
        let of_one = config.send_buffer + config.receive_buffer.saturating_mul(MEMORY_FACTOR);
        let is_ample = count.saturating_mul(of_one) <= self.config.memory;
        let is_much = self.memory.handed_in > self.config.memory / UNCOUNTED_PART;
        let is_due = is_much || self.now >= self.memory.due;
        if !is_due || (is_ample && self.memory.allowance == usize::MAX) {
            return;
        }
        let each = RECOUNT_EACH.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        self.memory.due = self.now.saturating_add(RECOUNT.max(each));
        self.memory.handed_in = 0;
        let associations = self.registry.slots().filter_map(|slot| self.registry.entry(slot));
        let held: usize = associations.map(|entry| entry.association.held()).sum();
        let share = self.config.memory.saturating_sub(held) / FREE_PART;
        // In steps of two, for small changes change nothing.
        let step = share.checked_ilog2().map_or(0, |bits| 1 << bits);
        let allowance = if step >= most { usize::MAX } else { step.max(LEAST_ALLOWANCE) };
        if core::mem::replace(&mut self.memory.allowance, allowance) != allowance {
            let slots: alloc::vec::Vec<u32> = self.registry.slots().collect();
            for slot in slots {
                self.give_share(slot);
                self.touch(slot);
            }
        }
    }

    /// A user hands in so many bytes.
    pub(super) fn note_handed_in(&mut self, bytes: usize) {
        self.memory.handed_in = self.memory.handed_in.saturating_add(bytes);
        if self.memory.handed_in > self.config.memory / UNCOUNTED_PART {
            self.share_memory();
        }
    }

    /// Tells an association what it may hold.
    pub(super) fn give_share(&mut self, slot: u32) {
        let allowance = self.memory.allowance;
        if let Some(entry) = self.registry.entry_mut(slot) {
            entry.association.set_allowance(allowance);
        }
    }

    /// When to count again, where there is too little to stop counting.
    pub(super) fn memory_timeout(&self) -> Option<Duration> {
        (self.memory.allowance != usize::MAX).then_some(self.memory.due)
    }
}
