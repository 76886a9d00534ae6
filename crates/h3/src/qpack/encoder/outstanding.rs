//! Field sections whose references are not acknowledged.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-2.1.1>,
//! <https://www.rfc-editor.org/rfc/rfc9204#section-2.1.2>
//!
//! The oldest entries are evicted first, so the lowest reference of each section is enough to know
//! what must not be evicted.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// The most sections that are kept (RFC 9204 §7.3).
const MAX_OUTSTANDING_SECTIONS: usize = 4096;

/// What a section refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutstandingSection {
    /// Its Required Insert Count.
    pub(super) required: u64,
    /// The lowest absolute index that it refers to.
    pub(super) lowest: u64,
}

/// The sections of one stream: the first, and any others in their order.
#[derive(Debug)]
struct StreamSections {
    first: OutstandingSection,
    others: VecDeque<OutstandingSection>,
}

/// A stream that may be waiting at the peer, and until which insertion.
#[derive(Clone, Copy, Debug)]
struct BlockingStream {
    stream: u64,
    required: u64,
}

/// The sections of all streams.
#[derive(Debug, Default)]
pub(super) struct OutstandingSections {
    streams: BTreeMap<u64, StreamSections>,
    count: usize,
    /// As many as may block, at most.
    blocking: Vec<BlockingStream>,
}

impl OutstandingSections {
    /// Returns how many sections there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= MAX_OUTSTANDING_SECTIONS
    }

    pub(super) fn blocking_streams(&self) -> usize {
        self.blocking.len()
    }

    /// Returns whether a section on this stream may refer to entries that the peer may not have, if at
    /// most `most` streams may.
    pub(super) fn may_block(&self, stream: u64, most: u64) -> bool {
        (self.blocking.len() as u64) < most
            || self.blocking.iter().any(|blocking| blocking.stream == stream)
    }

    pub(super) fn push(&mut self, stream: u64, section: OutstandingSection, known_received: u64) {
        let required = section.required;
        self.count += 1;
        if let Some(sections) = self.streams.get_mut(&stream) {
            sections.others.push_back(section);
        } else {
            let sections = StreamSections { first: section, others: VecDeque::new() };
            self.streams.insert(stream, sections);
        }
        if required > known_received {
            let mut blocking = self.blocking.iter_mut();
            match blocking.find(|blocking| blocking.stream == stream) {
                Some(blocking) => blocking.required = blocking.required.max(required),
                None => self.blocking.push(BlockingStream { stream, required }),
            }
        }
    }

    /// Removes the first section of a stream; returns its Required Insert Count.
    pub(super) fn acknowledge(&mut self, stream: u64) -> Option<u64> {
        let sections = self.streams.get_mut(&stream)?;
        let required = sections.first.required;
        match sections.others.pop_front() {
            Some(next) => sections.first = next,
            None => {
                self.streams.remove(&stream);
            }
        }
        self.count -= 1;
        Some(required)
    }

    /// Removes all sections of a stream.
    pub(super) fn cancel(&mut self, stream: u64) {
        if let Some(sections) = self.streams.remove(&stream) {
            self.count -= 1 + sections.others.len();
            self.blocking.retain(|blocking| blocking.stream != stream);
        }
    }

    /// Forgets which streams were waiting for what the peer is now known to have.
    pub(super) fn set_known_received(&mut self, known_received: u64) {
        self.blocking.retain(|blocking| blocking.required > known_received);
    }

    /// Returns the lowest absolute index that a section refers to.
    pub(super) fn lowest(&self) -> u64 {
        let all = self.streams.values().flat_map(|sections| {
            let others = sections.others.iter().map(|section| section.lowest);
            others.chain([sections.first.lowest])
        });
        all.min().unwrap_or(u64::MAX)
    }
}
