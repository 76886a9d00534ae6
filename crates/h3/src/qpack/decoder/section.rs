//! The field lines of a section that has all the entries that it needs.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-4.5>

use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use super::failed;
use crate::qpack::fault::{QpackFault, QpackRule};
use crate::qpack::field::FieldLine;
use crate::qpack::huffman::{self, HuffmanFault};
use crate::qpack::primitive::{Reader, StringLiteral};
use crate::qpack::representation::{Reference, Representation, SectionPrefix};
use crate::qpack::static_table;
use crate::qpack::table::{self, DynamicTable};

/// For how many lines there is room at first.
const FIRST_LINES: usize = 16;

/// Decodes the lines of a section whose decoded size is at most `max_size`, in octets.
pub(super) fn decode(
    lines: &Bytes,
    prefix: SectionPrefix,
    table: &DynamicTable,
    max_size: u64,
) -> Result<Vec<FieldLine>, QpackFault> {
    let mut section = Section { lines, prefix, table, room: max_size, decoded: BytesMut::new() };
    let mut reader = Reader::new(lines);
    let mut fields = Vec::with_capacity(FIRST_LINES.min(lines.len()));
    while !reader.is_empty() {
        let line = Representation::read(&mut reader).map_err(failed)?;
        let left = lines.len() - reader.position();
        fields.push(section.field(line, left)?);
    }
    Ok(fields)
}

/// A section while it is decoded.
struct Section<'a> {
    lines: &'a Bytes,
    prefix: SectionPrefix,
    table: &'a DynamicTable,
    /// How many octets the lines that are left may have.
    room: u64,
    /// Memory for strings in the Huffman code: all of a section share it.
    decoded: BytesMut,
}

impl Section<'_> {
    /// Returns the field of a line, after which this many octets of the section are left.
    fn field(&mut self, line: Representation, left: usize) -> Result<FieldLine, QpackFault> {
        let field = match line {
            Representation::Indexed(reference) => {
                let (name, value) = self.entry(reference)?;
                FieldLine { name, value, sensitive: false }
            }
            Representation::WithNameReference { name, value, is_never_indexed } => {
                let name = self.name(name)?;
                let value = self.string(&value, name.len(), left)?;
                FieldLine { name, value, sensitive: is_never_indexed }
            }
            Representation::WithLiteralName { name, value, is_never_indexed } => {
                let name = self.string(&name, 0, left + value.place.len())?;
                let value = self.string(&value, name.len(), left)?;
                FieldLine { name, value, sensitive: is_never_indexed }
            }
        };
        let size = table::size(&field.name, &field.value);
        self.room = self.room.checked_sub(size).ok_or(QpackFault::FieldSectionTooLarge)?;
        Ok(field)
    }

    fn entry(&self, reference: Reference) -> Result<(Bytes, Bytes), QpackFault> {
        match reference {
            Reference::Static(index) => {
                let (name, value) = static_entry(index)?;
                Ok((Bytes::from_static(name), Bytes::from_static(value)))
            }
            Reference::Dynamic(reference) => {
                let absolute = self.prefix.absolute(reference);
                let absolute = absolute.map_err(QpackFault::DecompressionFailed)?;
                let entry = self.table.entry(absolute);
                let missing = QpackFault::DecompressionFailed(QpackRule::NoDynamicEntry);
                Ok(entry.ok_or(missing)?.parts())
            }
        }
    }

    fn name(&self, reference: Reference) -> Result<Bytes, QpackFault> {
        match reference {
            Reference::Static(index) => {
                static_entry(index).map(|entry| Bytes::from_static(entry.0))
            }
            Reference::Dynamic(_) => self.entry(reference).map(|entry| entry.0),
        }
    }

    /// Returns a string of the section: a part of it, or decoded. `before` is the length of the
    /// line's name, if this is its value; `left` is how many octets of the section follow.
    fn string(
        &mut self,
        literal: &StringLiteral,
        before: usize,
        left: usize,
    ) -> Result<Bytes, QpackFault> {
        let place = literal.place.clone();
        let length = place.len();
        let room = self.room.checked_sub(before as u64 + table::ENTRY_OVERHEAD);
        let room = room.ok_or(QpackFault::FieldSectionTooLarge)?;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if !literal.is_huffman {
            return if length > room {
                Err(QpackFault::FieldSectionTooLarge)
            } else {
                Ok(self.lines.slice(place))
            };
        }
        if self.decoded.capacity() == 0 {
            // Once for this string and all that may follow it.
            let most = huffman::most_decoded(length + left);
            self.decoded.reserve(most.min(room).saturating_add(1));
        }
        match huffman::decode(&self.lines[place], room, &mut self.decoded) {
            Ok(()) => Ok(self.decoded.split().freeze()),
            Err(HuffmanFault::TooLong) => Err(QpackFault::FieldSectionTooLarge),
            Err(HuffmanFault::Invalid(rule)) => Err(QpackFault::DecompressionFailed(rule)),
        }
    }
}

fn static_entry(index: u64) -> Result<(&'static [u8], &'static [u8]), QpackFault> {
    let missing = QpackFault::DecompressionFailed(QpackRule::NoStaticEntry);
    static_table::entry(index).ok_or(missing)
}
