//! The decoder: field sections and the peer's encoder stream in, field lines and instructions out (RFC 9204 §2.2).
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-2.2>

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::mem;

use bytes::{Bytes, BytesMut};

use super::fault::{QpackFault, QpackRule};
use super::field::FieldLine;
use super::huffman::{self, HuffmanFault};
use super::instruction::{DecoderInstruction, EncoderInstruction, PartialInstruction};
use super::primitive::{ReadFault, Reader, StringLiteral};
use super::representation::SectionPrefix;
use super::static_table;
use super::table::{DynamicTable, Entry};
use blocked::{BlockedSection, BlockedSections};

mod blocked;
mod section;

pub use blocked::MAX_SECTIONS_OF_BLOCKED_STREAM;

/// What a decoder allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderSetup {
    /// The most octets of the dynamic table: SETTINGS_QPACK_MAX_TABLE_CAPACITY. At 0, the decoder
    /// sends no instructions.
    pub max_capacity: u64,
    /// How many streams may wait for entries: SETTINGS_QPACK_BLOCKED_STREAMS.
    pub max_blocked_streams: u64,
    /// The most octets of a decoded field section, with 32 for each line:
    /// SETTINGS_MAX_FIELD_SECTION_SIZE (RFC 9114 §4.2.2).
    pub max_section_size: u64,
}

impl Default for DecoderSetup {
    /// A dynamic table of 4,096 octets, 16 blocked streams, and field sections of 64 KiB.
    fn default() -> Self {
        Self { max_capacity: 4096, max_blocked_streams: 16, max_section_size: 64 << 10 }
    }
}

/// What became of a field section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Its lines, in order.
    Ready(Vec<FieldLine>),
    /// It needs entries that have not arrived; [`Decoder::unblocked`] returns it later. What follows
    /// on the stream should stay unread until then (RFC 9204 §2.2.1).
    Blocked,
}

/// The decoder of a connection.
///
/// Its memory is bounded by the [`DecoderSetup`], apart from the sections of blocked streams, each of
/// which is as long as its caller lets it be.
#[derive(Debug)]
pub struct Decoder {
    setup: DecoderSetup,
    table: DynamicTable,
    partial: PartialInstruction,
    blocked: BlockedSections,
    instructions: Vec<u8>,
    /// The Known Received Count: how many insertions the peer's encoder knows of, once it has
    /// received what was taken.
    known_received: u64,
}

impl Decoder {
    /// Makes a decoder. Its setup has to be what the SETTINGS of this end say.
    #[must_use]
    pub fn new(setup: DecoderSetup) -> Self {
        Self {
            setup,
            table: DynamicTable::default(),
            partial: PartialInstruction::default(),
            blocked: BlockedSections::default(),
            instructions: Vec::new(),
            known_received: 0,
        }
    }

    /// Executes what the peer's encoder stream continues with. An instruction may be split anywhere.
    /// Call [`unblocked`](Self::unblocked) afterwards.
    ///
    /// # Errors
    ///
    /// [`QpackFault::EncoderStream`].
    pub fn handle_encoder_stream(&mut self, input: &[u8]) -> Result<(), QpackFault> {
        let Self { setup, table, partial, .. } = self;
        partial
            .continue_with(input, |octets, reader| {
                let instruction = EncoderInstruction::read(reader, table.capacity())?;
                Ok(execute(instruction, octets, table, setup.max_capacity)?)
            })
            .map_err(QpackFault::EncoderStream)
    }

    /// Decodes a field section that arrived on a stream.
    ///
    /// # Errors
    ///
    /// [`QpackFault::DecompressionFailed`], and [`QpackFault::FieldSectionTooLarge`].
    pub fn decode(&mut self, stream: u64, section: Bytes) -> Result<Decoded, QpackFault> {
        let (max_capacity, inserted) = (self.setup.max_capacity, self.table.inserted());
        let mut reader = Reader::new(&section);
        let prefix = SectionPrefix::read(&mut reader, max_capacity, inserted).map_err(failed)?;
        let lines = section.slice(reader.position()..);
        if prefix.required > inserted || self.blocked.has(stream) {
            let section = BlockedSection { prefix, lines };
            self.blocked
                .push(stream, section, self.setup.max_blocked_streams)
                .map_err(QpackFault::DecompressionFailed)?;
            return Ok(Decoded::Blocked);
        }
        self.decode_lines(stream, prefix, &lines).map(Decoded::Ready)
    }

    /// Returns a field section that was blocked and has what it needs now, with its stream. Those of
    /// one stream are returned in the order of their arrival.
    pub fn unblocked(&mut self) -> Option<(u64, Result<Vec<FieldLine>, QpackFault>)> {
        let (stream, section) = self.blocked.pop(self.table.inserted())?;
        Some((stream, self.decode_lines(stream, section.prefix, &section.lines)))
    }

    /// Forgets the blocked field sections of a stream, and tells the peer's encoder that no more of
    /// the stream is decoded (RFC 9204 §2.2.2.2). Call it when the stream was reset, or its reading
    /// was stopped, before its end. Nothing of the stream may be decoded afterwards: its encoder would
    /// not expect the acknowledgment.
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.remove(stream);
        if self.setup.max_capacity > 0 {
            DecoderInstruction::StreamCancellation { stream }.write(&mut self.instructions);
        }
    }

    /// Returns what the decoder stream has to continue with, and forgets it.
    ///
    /// Nothing bounds what a peer makes the decoder say: a driver whose decoder stream has no credit
    /// should read no more field sections (RFC 9204 §7.3).
    #[must_use]
    pub fn take_instructions(&mut self) -> Bytes {
        let increment = self.table.inserted() - self.known_received;
        if increment > 0 {
            self.known_received = self.table.inserted();
            DecoderInstruction::InsertCountIncrement { increment }.write(&mut self.instructions);
        }
        mem::take(&mut self.instructions).into()
    }

    /// Returns the size of the dynamic table, in octets.
    #[must_use]
    pub fn table_size(&self) -> u64 {
        self.table.size()
    }

    /// Returns how many streams are blocked.
    #[must_use]
    pub fn blocked_streams(&self) -> usize {
        self.blocked.streams()
    }

    /// Returns how many octets of an instruction wait for its end.
    #[must_use]
    pub fn partial_octets(&self) -> usize {
        self.partial.len()
    }

    /// Decodes the lines of a section that has what it needs, and acknowledges it.
    fn decode_lines(
        &mut self,
        stream: u64,
        prefix: SectionPrefix,
        lines: &Bytes,
    ) -> Result<Vec<FieldLine>, QpackFault> {
        let fields = section::decode(lines, prefix, &self.table, self.setup.max_section_size);
        // A section that is too large is not looked at again: its references are not needed either.
        let is_done = matches!(fields, Ok(_) | Err(QpackFault::FieldSectionTooLarge));
        if is_done && prefix.required > 0 {
            self.known_received = self.known_received.max(prefix.required);
            DecoderInstruction::SectionAcknowledgment { stream }.write(&mut self.instructions);
        }
        fields
    }
}

fn failed(fault: ReadFault) -> QpackFault {
    QpackFault::DecompressionFailed(match fault {
        ReadFault::Incomplete => QpackRule::SectionTruncated,
        ReadFault::Broken(rule) => rule,
    })
}

/// Executes an instruction that was read from these octets.
fn execute(
    instruction: EncoderInstruction,
    octets: &[u8],
    table: &mut DynamicTable,
    max_capacity: u64,
) -> Result<(), QpackRule> {
    let entry = match instruction {
        EncoderInstruction::SetCapacity(capacity) if capacity > max_capacity => {
            return Err(QpackRule::CapacityAboveMaximum);
        }
        EncoderInstruction::SetCapacity(capacity) => {
            table.set_capacity(capacity);
            return Ok(());
        }
        EncoderInstruction::InsertWithStaticName { index, value } => {
            let (name, _) = static_table::entry(index).ok_or(QpackRule::NoStaticEntry)?;
            Entry::new(name, &string(octets, &value, table.capacity())?)
        }
        EncoderInstruction::InsertWithDynamicName { relative, value } => {
            let value = string(octets, &value, table.capacity())?;
            Entry::new(relative_entry(table, relative)?.name(), &value)
        }
        EncoderInstruction::InsertWithLiteralName { name, value } => {
            let name = string(octets, &name, table.capacity())?;
            Entry::new(&name, &string(octets, &value, table.capacity())?)
        }
        EncoderInstruction::Duplicate { relative } => relative_entry(table, relative)?.clone(),
    };
    if table.insert(entry) { Ok(()) } else { Err(QpackRule::EntryLargerThanTable) }
}

fn relative_entry(table: &DynamicTable, relative: u64) -> Result<&Entry, QpackRule> {
    let absolute = table.inserted().checked_sub(relative).and_then(|rest| rest.checked_sub(1));
    absolute.and_then(|absolute| table.entry(absolute)).ok_or(QpackRule::NoDynamicEntry)
}

/// Returns a string of an instruction.
fn string<'a>(
    octets: &'a [u8],
    literal: &StringLiteral,
    capacity: u64,
) -> Result<Cow<'a, [u8]>, QpackRule> {
    let text = octets.get(literal.place.clone()).unwrap_or_default();
    if !literal.is_huffman {
        return Ok(Cow::Borrowed(text));
    }
    let mut decoded = BytesMut::new();
    let limit = usize::try_from(capacity).unwrap_or(usize::MAX);
    match huffman::decode(text, limit, &mut decoded) {
        Ok(()) => Ok(Cow::Owned(decoded.into())),
        Err(HuffmanFault::Invalid(rule)) => Err(rule),
        Err(HuffmanFault::TooLong) => Err(QpackRule::EntryLargerThanTable),
    }
}

#[cfg(test)]
mod tests;
