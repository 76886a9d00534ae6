//! The encoder: field lines and the peer's decoder stream in, field sections and instructions out (RFC 9204 §2.1).
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-2.1>

use alloc::vec::Vec;
use core::mem;

use bytes::Bytes;

use super::fault::{QpackFault, QpackRule};
use super::field::Sensitivity;
use super::instruction::{
    DecoderInstruction, PartialInstruction, write_duplicate, write_insert_with_dynamic_name,
    write_insert_with_literal_name, write_insert_with_static_name, write_set_capacity,
};
use super::representation::{
    Reference, SectionPrefix, write_indexed, write_with_literal_name, write_with_name_reference,
};
use super::static_table;
use super::table;
use marked::{MarkedTable, mark, name_mark};
use outstanding::{OutstandingSection, OutstandingSections};
use policy::{Habit, RecentFields};

mod marked;
mod outstanding;
mod policy;

/// An entry has at most one part in this many of the table's capacity: a larger one would evict too
/// much for what it saves.
const MIN_ENTRIES: u64 = 4;

/// How an encoder uses what its peer allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderSetup {
    /// The most octets of the dynamic table, if the peer allows as many. At 0, only the static table
    /// is used, and the encoder sends no instructions.
    pub max_capacity: u64,
    /// How many streams may wait at the peer for entries that are still on their way, if the peer
    /// allows as many. At 0, no stream ever waits, and an entry is used from the moment when the
    /// peer has acknowledged it. Some decoders acknowledge sections alone and no insertions; with
    /// those, the dynamic table is used only if a stream may wait.
    pub max_blocked_streams: u64,
}

impl EncoderSetup {
    /// Only the static table.
    pub const STATIC_ONLY: Self = Self { max_capacity: 0, max_blocked_streams: 0 };
}

impl Default for EncoderSetup {
    /// A dynamic table of 4,096 octets, and no blocked streams.
    fn default() -> Self {
        Self { max_capacity: 4096, max_blocked_streams: 0 }
    }
}

/// The encoder of a connection.
///
/// It inserts fields that repeat from one message to the next: at once those that usually do, such as
/// `user-agent`, others when they are seen again, such as `:path`, and never those that differ each
/// time, such as `date`.
///
/// No field that is [`Sensitivity::Sensitive`] is ever inserted, nor are `authorization` and short
/// cookies. All messages share the table: who can choose fields of one message and see its length can
/// find out whether a guess of another's whole value is right (RFC 9204 §7.1). Mark what is secret and
/// can be guessed.
///
/// What is unacknowledged is bounded by the table's capacity, since nothing unacknowledged is evicted,
/// and by 4,096 field sections, beyond which sections refer to the static table alone.
#[derive(Debug)]
pub struct Encoder {
    setup: EncoderSetup,
    /// What the peer allows: its maximum capacity, and how many streams may wait.
    peer_capacity: u64,
    max_blocked: u64,
    table: MarkedTable,
    /// Whether the peer has been told of the table's capacity.
    is_capacity_sent: bool,
    known_received: u64,
    outstanding: OutstandingSections,
    recent: RecentFields,
    partial: PartialInstruction,
    instructions: Vec<u8>,
}

/// A section while it is encoded.
struct OpenSection {
    base: u64,
    /// What it refers to is below this absolute index.
    limit: u64,
    required: u64,
    lowest: u64,
}

impl OpenSection {
    /// Returns the reference to an entry, and keeps that it is used.
    fn refer_to(&mut self, absolute: u64) -> Reference {
        self.required = self.required.max(absolute + 1);
        self.lowest = self.lowest.min(absolute);
        Reference::Dynamic(SectionPrefix::reference(self.base, absolute))
    }
}

impl Encoder {
    /// Makes an encoder, which uses the static table until it knows the peer's limits.
    #[must_use]
    pub fn new(setup: EncoderSetup) -> Self {
        Self {
            setup,
            peer_capacity: 0,
            max_blocked: 0,
            table: MarkedTable::default(),
            is_capacity_sent: false,
            known_received: 0,
            outstanding: OutstandingSections::default(),
            recent: RecentFields::default(),
            partial: PartialInstruction::default(),
            instructions: Vec::new(),
        }
    }

    /// Takes the limits of the peer's decoder from its SETTINGS, or from those that are remembered for
    /// 0-RTT and then from its SETTINGS: SETTINGS_QPACK_MAX_TABLE_CAPACITY, in octets, and
    /// SETTINGS_QPACK_BLOCKED_STREAMS. If 0-RTT was rejected, begin with another encoder.
    ///
    /// # Errors
    ///
    /// [`QpackFault::DecoderStream`] if the capacity was not 0 and changes (RFC 9204 §3.2.3).
    pub fn set_peer_limits(
        &mut self,
        max_table_capacity: u64,
        max_blocked_streams: u64,
    ) -> Result<(), QpackFault> {
        if self.peer_capacity != 0 && self.peer_capacity != max_table_capacity {
            return Err(QpackFault::DecoderStream(QpackRule::CapacityNotAsRemembered));
        }
        self.peer_capacity = max_table_capacity;
        self.max_blocked = self.setup.max_blocked_streams.min(max_blocked_streams);
        let capacity = self.setup.max_capacity.min(max_table_capacity);
        if self.table.capacity() == 0 {
            self.table.set_capacity(capacity);
        }
        Ok(())
    }

    /// Appends the encoded field section of a message on this stream. The fields keep their order.
    /// Sections of one stream have to be sent in the order in which they were encoded, all of them
    /// unless the stream is reset: what a section refers to stays in the table until the peer has
    /// acknowledged the section or cancelled the stream.
    ///
    /// Take the [instructions](Self::take_instructions) afterwards.
    pub fn encode<'a>(
        &mut self,
        stream: u64,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8], Sensitivity)>,
        out: &mut Vec<u8>,
    ) {
        let limit = if self.outstanding.is_full() {
            0
        } else if self.outstanding.may_block(stream, self.max_blocked) {
            u64::MAX
        } else {
            self.known_received
        };
        let base = self.table.inserted();
        let mut section = OpenSection { base, limit, required: 0, lowest: u64::MAX };
        let start = out.len();
        for (name, value, sensitivity) in fields {
            match sensitivity {
                Sensitivity::Ordinary => self.encode_line(&mut section, name, value, out),
                Sensitivity::Sensitive => match static_table::find_name(name) {
                    Some(index) => {
                        let name = Reference::Static(index.into());
                        write_with_name_reference(name, value, true, out);
                    }
                    None => write_with_literal_name(name, value, true, out),
                },
            }
        }
        let OpenSection { required, lowest, .. } = section;
        // The prefix, which is in front, is known once the lines are.
        let end = out.len();
        SectionPrefix { required, base }.write(self.peer_capacity, out);
        let prefix = out.len() - end;
        out[start..].rotate_right(prefix);
        if required > 0 {
            let section = OutstandingSection { required, lowest };
            self.outstanding.push(stream, section, self.known_received);
        }
    }

    /// Executes what the peer's decoder stream continues with. An instruction may be split anywhere.
    ///
    /// # Errors
    ///
    /// [`QpackFault::DecoderStream`].
    pub fn handle_decoder_stream(&mut self, input: &[u8]) -> Result<(), QpackFault> {
        let mut partial = mem::take(&mut self.partial);
        let executed = partial.continue_with(input, |_, reader| {
            let instruction = DecoderInstruction::read(reader)?;
            Ok(self.execute(instruction)?)
        });
        self.partial = partial;
        executed.map_err(QpackFault::DecoderStream)
    }

    fn execute(&mut self, instruction: DecoderInstruction) -> Result<(), QpackRule> {
        match instruction {
            DecoderInstruction::SectionAcknowledgment { stream } => {
                let required = self.outstanding.acknowledge(stream);
                let required = required.ok_or(QpackRule::NothingToAcknowledge)?;
                self.known_received = self.known_received.max(required);
            }
            DecoderInstruction::StreamCancellation { stream } => self.outstanding.cancel(stream),
            DecoderInstruction::InsertCountIncrement { increment: 0 } => {
                return Err(QpackRule::IncrementOfZero);
            }
            DecoderInstruction::InsertCountIncrement { increment } => {
                if increment > self.table.inserted() - self.known_received {
                    return Err(QpackRule::IncrementBeyondInsertions);
                }
                self.known_received += increment;
            }
        }
        self.outstanding.set_known_received(self.known_received);
        Ok(())
    }

    /// Returns what the encoder stream has to continue with, and forgets it. Nothing waits for it but
    /// sections that may block: it can be sent after the section beside which it was made.
    #[must_use]
    pub fn take_instructions(&mut self) -> Bytes {
        mem::take(&mut self.instructions).into()
    }

    /// Returns the size of the dynamic table, in octets.
    #[must_use]
    pub fn table_size(&self) -> u64 {
        self.table.size()
    }

    /// Returns how many field sections with references are not acknowledged.
    #[must_use]
    pub fn outstanding_sections(&self) -> usize {
        self.outstanding.len()
    }

    /// Returns how many streams may be waiting at the peer.
    #[must_use]
    pub fn blocking_streams(&self) -> usize {
        self.outstanding.blocking_streams()
    }

    /// Encodes a line that may be in the dynamic table.
    fn encode_line(
        &mut self,
        section: &mut OpenSection,
        name: &[u8],
        value: &[u8],
        out: &mut Vec<u8>,
    ) {
        let static_name = static_table::find_name(name);
        if let Some(first) = static_name
            && let Some(index) = static_table::find_value(first, value)
        {
            return write_indexed(Reference::Static(index.into()), out);
        }
        let found = if self.table.capacity() == 0 {
            None
        } else {
            self.dynamic_entry(section, static_name, name, value)
        };
        let reference = match (found, static_name) {
            (Some(absolute), _) => return write_indexed(section.refer_to(absolute), out),
            (None, Some(index)) => Some(Reference::Static(index.into())),
            (None, None) => {
                let mut named = self.table.entries_named(name_mark(name), name);
                let usable = named.find(|absolute| *absolute < section.limit);
                usable.map(|absolute| section.refer_to(absolute))
            }
        };
        match reference {
            Some(name) => write_with_name_reference(name, value, false, out),
            None => write_with_literal_name(name, value, false, out),
        }
    }

    /// Returns the entry with this field to which the section may refer. Inserts the field if it is
    /// not in the table and likely to come again.
    fn dynamic_entry(
        &mut self,
        section: &OpenSection,
        static_name: Option<u8>,
        name: &[u8],
        value: &[u8],
    ) -> Option<u64> {
        if table::size(name, value) > self.table.capacity() / MIN_ENTRIES {
            return None;
        }
        let is_usable = |absolute: &u64| *absolute < section.limit;
        let mut entries = self.table.entries(mark(name, value), name, value);
        let newest = entries.next();
        let usable = newest.filter(is_usable).or_else(|| entries.find(is_usable));
        drop(entries);
        if let Some(usable) = usable {
            if newest > Some(usable) || !self.table.is_draining(usable) {
                return Some(usable);
            }
            // RFC 9204 §2.1.1.1: an entry that is soon evicted is inserted again.
            let again = self.duplicate(section, usable);
            return again.filter(is_usable).or(Some(usable));
        }
        let habit = Habit::of_field(name, value);
        if newest.is_some() || habit == Habit::Differs {
            // What is in the table is on its way.
            return None;
        }
        let is_first = || self.table.entries_named(name_mark(name), name).next().is_none();
        let is_wanted = habit == Habit::Repeats && is_first() || self.recent.has_seen(name, value);
        if !is_wanted {
            return None;
        }
        self.insert(section, static_name, name, value).filter(is_usable)
    }

    /// Inserts a field, if that is permitted; returns its absolute index.
    fn insert(
        &mut self,
        section: &OpenSection,
        static_name: Option<u8>,
        name: &[u8],
        value: &[u8],
    ) -> Option<u64> {
        let oldest = self.oldest_beside(section, table::size(name, value))?;
        self.send_capacity();
        let relative_name = || {
            let mut named = self.table.entries_named(name_mark(name), name);
            let kept = named.next().filter(|absolute| *absolute >= oldest)?;
            Some(self.table.inserted() - kept - 1)
        };
        if let Some(index) = static_name {
            write_insert_with_static_name(index.into(), value, &mut self.instructions);
        } else if let Some(relative) = relative_name() {
            write_insert_with_dynamic_name(relative, value, &mut self.instructions);
        } else {
            write_insert_with_literal_name(name, value, &mut self.instructions);
        }
        self.table.insert(name, value)
    }

    /// Inserts an entry again, if that is permitted and does not evict it.
    fn duplicate(&mut self, section: &OpenSection, absolute: u64) -> Option<u64> {
        let size = self.table.size_of_entry(absolute)?;
        self.oldest_beside(section, size).filter(|oldest| *oldest <= absolute)?;
        self.send_capacity();
        let relative = self.table.inserted() - absolute - 1;
        write_duplicate(relative, &mut self.instructions);
        self.table.insert_again(absolute)
    }

    /// Returns which entry would be the oldest beside a new one of this size, unless one would have to
    /// be evicted that is unacknowledged or referenced (RFC 9204 §2.1.1).
    fn oldest_beside(&self, section: &OpenSection, size: u64) -> Option<u64> {
        let excess = (self.table.size() + size).saturating_sub(self.table.capacity());
        let mut oldest = self.table.oldest();
        if excess == 0 {
            return Some(oldest);
        }
        let kept = self.known_received.min(section.lowest).min(self.outstanding.lowest());
        let mut evicted = 0;
        while evicted < excess {
            if oldest >= kept {
                return None;
            }
            evicted += self.table.size_of_entry(oldest)?;
            oldest += 1;
        }
        Some(oldest)
    }

    /// Tells the peer of the capacity, before the first insertion.
    fn send_capacity(&mut self) {
        if !self.is_capacity_sent {
            self.is_capacity_sent = true;
            write_set_capacity(self.table.capacity(), &mut self.instructions);
        }
    }
}

#[cfg(test)]
mod tests;
