//! Memory shared by all associations. Each may use a fraction of what is currently free, which
//! always leaves some for later ones, however many use much ("dynamic queue length thresholds",
//! Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). The associations of one
//! source share a fraction of the memory in the same way: one host can open many.

use alloc::collections::BTreeMap;
use core::{net::IpAddr, time::Duration};

use super::Endpoint;
use super::limit::network;
use crate::config::EndpointConfig;
use crate::receive::window::MEMORY_FACTOR;
use crate::send::BufferAllowance;

/// The fraction of the free memory that one association may use.
const FREE_FRACTION: usize = 8;
/// The fraction of the memory that the associations of one source may use.
const SOURCE_FRACTION: usize = 4;
/// What an association takes besides its data, in bytes. An idle one takes less (`footprint.rs`).
const ASSOCIATION: usize = 4 << 10;
/// The fraction of the memory that associations of one source may take by their number.
const COUNT_FRACTION: usize = 2;
/// The number of associations of one source that are accepted however little memory there is.
const MIN_ASSOCIATIONS: usize = 64;
/// The minimum memory of an association in each direction, in bytes.
const MIN_ALLOWANCE: usize = 64 << 10;
/// The same where the minimum of all associations together would exceed the memory.
const MIN_CROWDED_ALLOWANCE: usize = 4 << 10;
/// The minimum time between two counts of the memory, unless a fraction of it is queued before.
const RECOUNT_INTERVAL: Duration = Duration::from_millis(50);
/// The fraction of the memory that may be queued between two counts.
const UNCOUNTED_FRACTION: usize = 16;
/// The minimum time between two counts per association, so that counting takes a small share of the
/// time.
const RECOUNT_INTERVAL_PER_ASSOCIATION: Duration = Duration::from_micros(10);

/// The state of the shared memory.
#[derive(Debug)]
pub(super) struct SharedMemory {
    /// What each association may use in each direction; unlimited while there is enough.
    allowance: BufferAllowance,
    /// The same for associations of sources that use much.
    of_sources: BTreeMap<u64, BufferAllowance>,
    /// When to count again.
    due: Duration,
    /// Bytes queued since the last count.
    queued_since_count: usize,
    /// How many associations with full buffers fit into the memory.
    ample_for: usize,
}

impl SharedMemory {
    pub(super) fn new(config: &EndpointConfig) -> Self {
        let ample_for = ample_for(config);
        Self {
            allowance: BufferAllowance::UNLIMITED,
            of_sources: BTreeMap::new(),
            due: Duration::ZERO,
            queued_since_count: 0,
            ample_for,
        }
    }

    fn is_limited(&self) -> bool {
        self.allowance != BufferAllowance::UNLIMITED || !self.of_sources.is_empty()
    }
}

/// The associations that share some memory, and what they use of it.
#[derive(Clone, Copy, Debug, Default)]
struct MemoryUse {
    associations: usize,
    bytes: usize,
}

impl MemoryUse {
    fn add(&mut self, bytes: usize) {
        self.associations += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns what each association may use of `memory`; unlimited if that is no less than
    /// `largest_buffer`.
    fn allowance(self, memory: usize, largest_buffer: usize) -> BufferAllowance {
        let share = memory.saturating_sub(self.bytes) / FREE_FRACTION;
        // In powers of two, as small changes make no difference.
        let step = share.checked_ilog2().map_or(0, |bits| 1 << bits);
        if step >= largest_buffer {
            return BufferAllowance::UNLIMITED;
        }
        let both_directions = 2 * self.associations.max(1);
        let minimum = (memory / both_directions).clamp(MIN_CROWDED_ALLOWANCE, MIN_ALLOWANCE);
        BufferAllowance { bytes: step.max(minimum), admits_lone: self.bytes < memory }
    }

    /// Returns what each association of a source may use, where all may use `allowance`.
    fn allowance_of_source(
        self,
        memory: usize,
        largest_buffer: usize,
        allowance: BufferAllowance,
    ) -> BufferAllowance {
        let overhead = self.associations.saturating_mul(ASSOCIATION);
        let own =
            self.allowance((memory / SOURCE_FRACTION).saturating_sub(overhead), largest_buffer);
        BufferAllowance {
            bytes: own.bytes.min(allowance.bytes),
            admits_lone: own.admits_lone && allowance.admits_lone,
        }
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
        if count <= self.memory.ample_for && !self.memory.is_limited() {
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
        let (mut all, mut sources) = (MemoryUse::default(), BTreeMap::<u64, MemoryUse>::new());
        for slot in self.registry.slots() {
            if let Some(entry) = self.registry.entry(slot) {
                let bytes = entry.association.memory();
                all.add(bytes);
                sources.entry(entry.source).or_default().add(bytes);
            }
        }
        let allowance = all.allowance(self.config.memory, largest_buffer);
        let memory = self.config.memory;
        let of_sources: BTreeMap<u64, BufferAllowance> = sources
            .into_iter()
            .map(|(source, used)| {
                (source, used.allowance_of_source(memory, largest_buffer, allowance))
            })
            .filter(|(_, of_source)| *of_source != allowance)
            .collect();
        let changes = self.memory.allowance != allowance || self.memory.of_sources != of_sources;
        (self.memory.allowance, self.memory.of_sources) = (allowance, of_sources);
        if changes {
            let slots: alloc::vec::Vec<u32> = self.registry.slots().collect();
            for slot in slots {
                self.update_allowance(slot);
                self.mark_pending(slot);
            }
        }
    }

    /// Returns whether there are so many associations, of this source or of all, that no further
    /// one is accepted from it.
    pub(super) fn is_full_for(&self, source: IpAddr) -> bool {
        let most = (self.config.memory / COUNT_FRACTION / ASSOCIATION).max(MIN_ASSOCIATIONS);
        self.registry.len() >= self.config.max_associations
            || self.registry.of_source(network(source)) >= most
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
        if let Some(entry) = self.registry.entry_mut(slot) {
            let of_source = self.memory.of_sources.get(&entry.source);
            let allowance = of_source.copied().unwrap_or(self.memory.allowance);
            entry.association.set_allowance(allowance);
        }
    }

    /// Returns when to count again, if memory is scarce.
    pub(super) fn memory_timeout(&self) -> Option<Duration> {
        self.memory.is_limited().then_some(self.memory.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: usize = 256 << 20;
    const BUFFER: usize = 1 << 20;

    #[test]
    fn the_minimum_of_all_associations_fits_into_the_memory() {
        for associations in [1, 30, 512, 2048, 32_768, 100_000] {
            let scarce = MemoryUse { associations, bytes: MEMORY };
            let all = scarce.allowance(MEMORY, BUFFER);
            let of_source = scarce.allowance_of_source(MEMORY, BUFFER, all);
            let overhead = associations * ASSOCIATION;
            for (each, overhead, memory) in
                [(all, 0, MEMORY), (of_source, overhead, MEMORY / SOURCE_FRACTION)]
            {
                let total = 2 * associations * each.bytes + overhead;
                let is_least = each.bytes == MIN_CROWDED_ALLOWANCE;
                assert!(total <= memory || is_least, "{associations} of {each:?}");
                assert!((MIN_CROWDED_ALLOWANCE..=MIN_ALLOWANCE).contains(&each.bytes));
                assert!(!each.admits_lone);
            }
        }
    }

    #[test]
    fn few_associations_are_not_limited() {
        let few = MemoryUse { associations: 10, bytes: 10 * BUFFER };
        assert_eq!(few.allowance(MEMORY, BUFFER), BufferAllowance::UNLIMITED);
    }
}
