//! Field sections that wait for entries of the dynamic table.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-2.2.1>

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use crate::qpack::fault::QpackRule;
use crate::qpack::representation::SectionPrefix;

/// How many field sections of one blocked stream are kept: a few interim responses, a response and
/// its trailers. A caller that leaves a blocked stream unread never needs more than one.
pub const MAX_SECTIONS_OF_BLOCKED_STREAM: usize = 8;

/// A field section without its prefix.
#[derive(Clone, Debug)]
pub(super) struct BlockedSection {
    pub(super) prefix: SectionPrefix,
    pub(super) lines: Bytes,
}

/// The sections that wait, and those behind them on the same streams.
#[derive(Debug, Default)]
pub(super) struct BlockedSections {
    streams: BTreeMap<u64, VecDeque<BlockedSection>>,
    /// The Required Insert Count of the first section of each stream, with the stream.
    order: BTreeSet<(u64, u64)>,
}

impl BlockedSections {
    /// Returns whether sections of this stream wait.
    pub(super) fn has(&self, stream: u64) -> bool {
        self.streams.contains_key(&stream)
    }

    /// Returns how many streams wait.
    pub(super) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Adds a section, unless more than `most` streams would wait.
    pub(super) fn push(
        &mut self,
        stream: u64,
        section: BlockedSection,
        most: u64,
    ) -> Result<(), QpackRule> {
        if let Some(sections) = self.streams.get_mut(&stream) {
            if sections.len() >= MAX_SECTIONS_OF_BLOCKED_STREAM {
                return Err(QpackRule::TooManyBlockedSections);
            }
            sections.push_back(section);
            return Ok(());
        }
        if self.streams.len() as u64 >= most {
            return Err(QpackRule::TooManyBlockedStreams);
        }
        self.order.insert((section.prefix.required, stream));
        self.streams.insert(stream, VecDeque::from([section]));
        Ok(())
    }

    /// Returns the section that needs the fewest insertions, if there are as many.
    pub(super) fn pop(&mut self, inserted: u64) -> Option<(u64, BlockedSection)> {
        let first = *self.order.first()?;
        let (required, stream) = first;
        if required > inserted {
            return None;
        }
        self.order.remove(&first);
        let sections = self.streams.get_mut(&stream)?;
        let section = sections.pop_front()?;
        if let Some(next) = sections.front() {
            self.order.insert((next.prefix.required, stream));
        } else {
            self.streams.remove(&stream);
        }
        Some((stream, section))
    }

    /// Forgets the sections of a stream.
    pub(super) fn remove(&mut self, stream: u64) {
        let sections = self.streams.remove(&stream).unwrap_or_default();
        if let Some(first) = sections.front() {
            self.order.remove(&(first.prefix.required, stream));
        }
    }
}
