//! Priority (RFC 8260 §3.4): the stream of the highest priority, in turn among equals.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::turns::{LinkedQueue, StreamLinks};
use super::{Scheduler, StreamSlot, StreamTurn};

/// Strict priority: a lower value goes first; streams of the same value take turns.
#[derive(Debug)]
pub(super) struct PriorityScheduler {
    levels: BTreeMap<u16, LinkedQueue>,
    links: StreamLinks,
    /// By slot; those beyond the end have 0.
    values: Vec<u16>,
    by_chunk: bool,
}

impl PriorityScheduler {
    /// `by_chunk`: a turn is a chunk, not a message.
    #[must_use]
    pub(super) fn new(by_chunk: bool) -> Self {
        Self {
            levels: BTreeMap::new(),
            links: StreamLinks::default(),
            values: Vec::new(),
            by_chunk,
        }
    }

    fn value(&self, stream: StreamSlot) -> u16 {
        self.values.get(stream.index()).copied().unwrap_or(0)
    }

    fn join(&mut self, stream: StreamSlot, value: u16) {
        self.levels.entry(value).or_default().join(stream, &mut self.links);
    }

    fn leave(&mut self, stream: StreamSlot, value: u16) {
        let Some(line) = self.levels.get_mut(&value) else { return };
        line.leave(stream, &mut self.links);
        if line.is_empty() {
            self.levels.remove(&value);
        }
    }
}

impl Scheduler for PriorityScheduler {
    fn on_queued(&mut self, stream: StreamSlot) {
        let value = self.value(stream);
        self.join(stream, value);
    }

    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        self.levels.values().find_map(|line| line.first(&self.links, eligible))
    }

    fn on_sent(&mut self, turn: &StreamTurn) {
        let value = self.value(turn.stream);
        if turn.ends_stream {
            self.leave(turn.stream, value);
        } else if turn.bytes > 0
            && (turn.ends_message || self.by_chunk)
            && let Some(line) = self.levels.get_mut(&value)
        {
            line.rotate(turn.stream, &mut self.links);
        }
    }

    fn set_value(&mut self, stream: StreamSlot, value: u16) {
        let old = self.value(stream);
        if self.values.len() <= stream.index() {
            self.values.resize(stream.index() + 1, 0);
        }
        if let Some(entry) = self.values.get_mut(stream.index()) {
            *entry = value;
        }
        if old != value && self.links.has(stream) {
            self.leave(stream, old);
            self.join(stream, value);
        }
    }
}
