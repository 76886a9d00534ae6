//! The agenda: a heap that knows the position of each entity.
//!
//! An entity has at most one time, which can be changed without leaving the old one behind, so the
//! heap is never larger than the world, and a change costs the logarithm of its size.

use alloc::vec::Vec;

use crate::time::EpochNanos;

/// Children of a heap node. Four share a cache line, and the heap is half as high as a binary one.
const CHILDREN: usize = 4;
/// The position of an entity that is not in the heap.
const NOWHERE: u32 = u32::MAX;
/// Bits of an entry that identify the entity.
const ENTITY_BITS: u32 = 24;
/// Bits of an entry that hold its sequence number. It wraps after 10^12 settings, and two entities
/// that requested the same time across that point are swapped.
const SEQUENCE_BITS: u32 = 64 - ENTITY_BITS;

/// The maximum number of entities: nodes and directions of links.
pub(super) const MAX_ENTITIES: u32 = 1 << ENTITY_BITS;

/// The time, the sequence number for equal times, and the entity. One number, so that a comparison
/// is cheap and the four children of a heap node are in one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AgendaEntry(u128);

impl AgendaEntry {
    const fn new(time: EpochNanos, sequence: u64, entity: u32) -> Self {
        let sequence = sequence & ((1 << SEQUENCE_BITS) - 1);
        Self((time as u128) << 64 | (sequence as u128) << ENTITY_BITS | entity as u128)
    }

    const fn time(self) -> EpochNanos {
        (self.0 >> 64) as EpochNanos
    }

    const fn entity(self) -> u32 {
        self.0 as u32 & (MAX_ENTITIES - 1)
    }
}

/// The times of all entities, earliest first.
#[derive(Clone, Debug, Default)]
pub(super) struct WorldAgenda {
    heap: Vec<AgendaEntry>,
    /// The position of each entity in the heap.
    positions: Vec<u32>,
    /// The sequence number: of equal times, the one that was set first comes first.
    sequence: u64,
}

impl WorldAgenda {
    /// Returns the earliest time and its entity.
    pub(super) fn first(&self) -> Option<(EpochNanos, u32)> {
        self.heap.first().map(|entry| (entry.time(), entry.entity()))
    }

    /// Sets, moves or removes the time of an entity. Setting the same time again changes nothing,
    /// not even its order among equal times.
    pub(super) fn set(&mut self, entity: u32, time: Option<EpochNanos>) {
        debug_assert!(entity < MAX_ENTITIES, "entity {entity}");
        let index = entity as usize;
        if index >= self.positions.len() {
            if time.is_none() {
                return;
            }
            self.positions.resize(index + 1, NOWHERE);
        }
        let position = self.positions[index];
        match (position, time) {
            (NOWHERE, None) => {}
            (NOWHERE, Some(time)) => {
                let entry = self.entry(time, entity);
                self.heap.push(entry);
                self.rise(self.heap.len() - 1, entry);
            }
            (position, None) => self.remove(position as usize),
            (position, Some(time)) => {
                let position = position as usize;
                let old = self.heap[position];
                if old.time() != time {
                    let entry = self.entry(time, entity);
                    if entry < old {
                        self.rise(position, entry)
                    } else {
                        self.sink(position, entry)
                    }
                }
            }
        }
    }

    const fn entry(&mut self, time: EpochNanos, entity: u32) -> AgendaEntry {
        self.sequence += 1;
        AgendaEntry::new(time, self.sequence, entity)
    }

    fn remove(&mut self, position: usize) {
        let removed = self.heap[position];
        self.positions[removed.entity() as usize] = NOWHERE;
        if let Some(last) = self.heap.pop().filter(|_| position < self.heap.len()) {
            if last < removed { self.rise(position, last) } else { self.sink(position, last) }
        }
    }

    /// Puts `entry` at `position`, or moves it up.
    fn rise(&mut self, mut position: usize, entry: AgendaEntry) {
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            let above = self.heap[parent];
            if above < entry {
                break;
            }
            self.store(position, above);
            position = parent;
        }
        self.store(position, entry);
    }

    /// Puts `entry` at `position`, or moves it down.
    fn sink(&mut self, mut position: usize, entry: AgendaEntry) {
        loop {
            let first = position * CHILDREN + 1;
            let end = (first + CHILDREN).min(self.heap.len());
            let Some((head, others)) = self.heap.get(first..end).and_then(<[_]>::split_first)
            else {
                break;
            };
            let (mut smallest, mut child) = (*head, first);
            for (other, at) in others.iter().zip(first + 1..) {
                if *other < smallest {
                    (smallest, child) = (*other, at);
                }
            }
            if smallest > entry {
                break;
            }
            self.store(position, smallest);
            position = child;
        }
        self.store(position, entry);
    }

    fn store(&mut self, position: usize, entry: AgendaEntry) {
        self.heap[position] = entry;
        self.positions[entry.entity() as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The heap behaves like a list that is searched linearly.
        #[test]
        fn the_earliest_comes_first(
            settings in prop::collection::vec((0_u32..40, prop::option::of(0_u64..50)), 1..400),
        ) {
            let mut agenda = WorldAgenda::default();
            let mut list: Vec<(u64, usize, u32)> = Vec::new();
            for (sequence, (entity, time)) in settings.into_iter().enumerate() {
                agenda.set(entity, time);
                let old = list.iter().position(|(_, _, other)| *other == entity);
                if old.map(|old| list[old].0) != time {
                    if let Some(old) = old {
                        list.swap_remove(old);
                    }
                    list.extend(time.map(|time| (time, sequence, entity)));
                }
                let first = list.iter().min().map(|(time, _, entity)| (*time, *entity));
                prop_assert_eq!(agenda.first(), first);
                prop_assert_eq!(agenda.heap.len(), list.len());
            }
        }
    }
}
