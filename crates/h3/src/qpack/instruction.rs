//! The instructions of encoders and decoders, on their streams.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-4.3>,
//! <https://www.rfc-editor.org/rfc/rfc9204#section-4.4>
//!
//! ```text
//! encoder stream                                        decoder stream
//! 1T......  Insert with Name Reference, then a value    1.......  Section Acknowledgment
//! 01H.....  Insert with Literal Name, then a value      01......  Stream Cancellation
//! 001.....  Set Dynamic Table Capacity                  00......  Insert Count Increment
//! 000.....  Duplicate
//! ```

use alloc::vec::Vec;
use core::mem;

use super::fault::QpackRule;
use super::huffman;
use super::primitive::{ReadFault, Reader, StringLiteral, write_integer, write_string};
use super::table::ENTRY_OVERHEAD;

/// The bit of a reference to the static table.
const STATIC: u8 = 0x40;
/// The most octets that a buffer keeps allocated while it holds nothing.
const MAX_IDLE_BUFFER: usize = 1024;

/// An instruction to a decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EncoderInstruction {
    /// Changes the capacity of the dynamic table.
    SetCapacity(u64),
    /// Inserts an entry with the name of an entry of the static table.
    InsertWithStaticName { index: u64, value: StringLiteral },
    /// Inserts an entry with the name of an entry of the dynamic table, by its relative index.
    InsertWithDynamicName { relative: u64, value: StringLiteral },
    /// Inserts an entry with another name.
    InsertWithLiteralName { name: StringLiteral, value: StringLiteral },
    /// Inserts an entry of the dynamic table again.
    Duplicate { relative: u64 },
}

impl EncoderInstruction {
    /// Reads an instruction to a decoder whose table has this capacity.
    pub(super) fn read(reader: &mut Reader<'_>, capacity: u64) -> Result<Self, ReadFault> {
        let fits = |length: u64, is_huffman: bool| {
            let octets = if is_huffman { huffman::fewest_decoded(length) } else { length };
            match capacity.checked_sub(ENTRY_OVERHEAD) {
                Some(room) if octets <= room => Ok(()),
                _ => Err(QpackRule::EntryLargerThanTable),
            }
        };
        let first = reader.peek()?;
        if first & 0x80 != 0 {
            let index = reader.integer(6)?;
            let value = reader.string(7, fits)?;
            return Ok(if first & STATIC != 0 {
                Self::InsertWithStaticName { index, value }
            } else {
                Self::InsertWithDynamicName { relative: index, value }
            });
        }
        if first & 0x40 != 0 {
            let name = reader.string(5, fits)?;
            let value = reader.string(7, fits)?;
            return Ok(Self::InsertWithLiteralName { name, value });
        }
        let number = reader.integer(5)?;
        Ok(if first & 0x20 != 0 {
            Self::SetCapacity(number)
        } else {
            Self::Duplicate { relative: number }
        })
    }
}

/// Appends Set Dynamic Table Capacity.
pub(super) fn write_set_capacity(capacity: u64, out: &mut Vec<u8>) {
    write_integer(0x20, 5, capacity, out);
}

/// Appends Duplicate.
pub(super) fn write_duplicate(relative: u64, out: &mut Vec<u8>) {
    write_integer(0, 5, relative, out);
}

/// Appends Insert with Name Reference to the static table.
pub(super) fn write_insert_with_static_name(index: u64, value: &[u8], out: &mut Vec<u8>) {
    write_integer(0x80 | STATIC, 6, index, out);
    write_string(0, 7, value, out);
}

/// Appends Insert with Name Reference to the dynamic table.
pub(super) fn write_insert_with_dynamic_name(relative: u64, value: &[u8], out: &mut Vec<u8>) {
    write_integer(0x80, 6, relative, out);
    write_string(0, 7, value, out);
}

/// Appends Insert with Literal Name.
pub(super) fn write_insert_with_literal_name(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    write_string(0x40, 5, name, out);
    write_string(0, 7, value, out);
}

/// An instruction to an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecoderInstruction {
    /// The oldest field section of a stream with references was decoded.
    SectionAcknowledgment { stream: u64 },
    /// Nothing of a stream is decoded any more.
    StreamCancellation { stream: u64 },
    /// More entries have arrived.
    InsertCountIncrement { increment: u64 },
}

impl DecoderInstruction {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ReadFault> {
        let first = reader.peek()?;
        if first & 0x80 != 0 {
            return Ok(Self::SectionAcknowledgment { stream: reader.integer(7)? });
        }
        let number = reader.integer(6)?;
        Ok(if first & 0x40 != 0 {
            Self::StreamCancellation { stream: number }
        } else {
            Self::InsertCountIncrement { increment: number }
        })
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::SectionAcknowledgment { stream } => write_integer(0x80, 7, stream, out),
            Self::StreamCancellation { stream } => write_integer(0x40, 6, stream, out),
            Self::InsertCountIncrement { increment } => write_integer(0, 6, increment, out),
        }
    }
}

/// The beginning of an instruction whose end has not arrived. It holds less than one instruction,
/// because strings that are too long are refused by their length.
#[derive(Debug, Default)]
pub(super) struct PartialInstruction(Vec<u8>);

impl PartialInstruction {
    /// Executes the whole instructions of a stream that continues with `input`, and keeps the rest.
    /// `execute` reads one instruction from its reader, and executes it if it is complete.
    pub(super) fn continue_with(
        &mut self,
        input: &[u8],
        mut execute: impl FnMut(&[u8], &mut Reader<'_>) -> Result<(), ReadFault>,
    ) -> Result<(), QpackRule> {
        let mut held = mem::take(&mut self.0);
        let is_new = held.is_empty();
        if !is_new {
            held.extend_from_slice(input);
        }
        let octets = if is_new { input } else { &held[..] };
        let mut done = 0;
        loop {
            let rest = &octets[done..];
            let mut reader = Reader::new(rest);
            match execute(rest, &mut reader) {
                Ok(()) => done += reader.position(),
                Err(ReadFault::Incomplete) => break,
                Err(ReadFault::Broken(rule)) => return Err(rule),
            }
        }
        if is_new {
            held.extend_from_slice(&input[done..]);
        } else {
            held.drain(..done);
            if held.is_empty() && held.capacity() > MAX_IDLE_BUFFER {
                held = Vec::new();
            }
        }
        self.0 = held;
        Ok(())
    }

    /// Returns how many octets wait for the rest of their instruction.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
