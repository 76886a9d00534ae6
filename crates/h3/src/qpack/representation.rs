//! The prefix of an encoded field section, and its field lines.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-4.5>
//!
//! ```text
//! 1T......  Indexed Field Line
//! 01NT....  Literal Field Line with Name Reference, then a value
//! 001NH...  Literal Field Line with Literal Name, then a value
//! 0001....  Indexed Field Line with Post-Base Index
//! 0000N...  Literal Field Line with Post-Base Name Reference, then a value
//! ```

use alloc::vec::Vec;

use super::fault::QpackRule;
use super::primitive::{ReadFault, Reader, StringLiteral, write_integer, write_string};
use super::table::ENTRY_OVERHEAD;

/// What a field section is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SectionPrefix {
    /// The Required Insert Count: the fewest insertions with which the section can be decoded.
    pub(super) required: u64,
    /// The Base, to which indices are relative.
    pub(super) base: u64,
}

impl SectionPrefix {
    /// Appends the prefix of a section for a decoder with this maximum capacity.
    pub(super) fn write(self, max_capacity: u64, out: &mut Vec<u8>) {
        let Self { required, base } = self;
        let full_range = 2 * (max_capacity / ENTRY_OVERHEAD);
        if required == 0 || full_range == 0 {
            out.extend_from_slice(&[0, 0]);
            return;
        }
        write_integer(0, 8, required % full_range + 1, out);
        match base.checked_sub(required) {
            Some(delta) => write_integer(0, 7, delta, out),
            None => write_integer(0x80, 7, required - base - 1, out),
        }
    }

    /// Reads the prefix of a section at a decoder with this maximum capacity, which has this many
    /// insertions.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        max_capacity: u64,
        inserted: u64,
    ) -> Result<Self, ReadFault> {
        let required = required_insert_count(reader.integer(8)?, max_capacity, inserted)?;
        let is_negative = reader.peek()? & 0x80 != 0;
        let delta = reader.integer(7)?;
        let base = if is_negative {
            required.checked_sub(delta).and_then(|rest| rest.checked_sub(1))
        } else {
            required.checked_add(delta)
        };
        Ok(Self { required, base: base.ok_or(QpackRule::NegativeBase)? })
    }

    /// Returns the absolute index of this entry of the dynamic table.
    pub(super) fn absolute(self, reference: DynamicReference) -> Result<u64, QpackRule> {
        let absolute = match reference {
            DynamicReference::Relative(index) => {
                self.base.checked_sub(index).and_then(|rest| rest.checked_sub(1))
            }
            DynamicReference::PostBase(index) => self.base.checked_add(index),
        };
        let absolute = absolute.ok_or(QpackRule::NoDynamicEntry)?;
        if absolute < self.required {
            Ok(absolute)
        } else {
            Err(QpackRule::BeyondRequiredInsertCount)
        }
    }

    /// Returns the reference to the entry with this absolute index.
    pub(super) fn reference(base: u64, absolute: u64) -> DynamicReference {
        match absolute.checked_sub(base) {
            Some(index) => DynamicReference::PostBase(index),
            None => DynamicReference::Relative(base - absolute - 1),
        }
    }
}

/// Returns the Required Insert Count that was encoded modulo twice the most entries of the table
/// (RFC 9204 §4.5.1.1).
fn required_insert_count(encoded: u64, max_capacity: u64, inserted: u64) -> Result<u64, QpackRule> {
    let most_entries = max_capacity / ENTRY_OVERHEAD;
    let full_range = 2 * most_entries;
    if encoded == 0 {
        return Ok(0);
    }
    if encoded > full_range {
        return Err(QpackRule::RequiredInsertCount);
    }
    let most = inserted + most_entries;
    let wrapped = most / full_range * full_range;
    let mut required = wrapped + encoded - 1;
    if required > most {
        required = required.checked_sub(full_range).ok_or(QpackRule::RequiredInsertCount)?;
    }
    if required == 0 { Err(QpackRule::RequiredInsertCount) } else { Ok(required) }
}

/// An entry of the dynamic table, relative to the Base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DynamicReference {
    /// One before the Base, counted from the last of them.
    Relative(u64),
    /// One from the Base on.
    PostBase(u64),
}

/// The name of a field line, or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// An entry of the static table.
    Static(u64),
    /// An entry of the dynamic table.
    Dynamic(DynamicReference),
}

/// How a field line is represented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Representation {
    /// By an entry.
    Indexed(Reference),
    /// By the name of an entry and a value.
    WithNameReference { name: Reference, value: StringLiteral, is_never_indexed: bool },
    /// By a name and a value.
    WithLiteralName { name: StringLiteral, value: StringLiteral, is_never_indexed: bool },
}

impl Representation {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ReadFault> {
        let first = reader.peek()?;
        let reference = |is_static: bool, index: u64| {
            if is_static {
                Reference::Static(index)
            } else {
                Reference::Dynamic(DynamicReference::Relative(index))
            }
        };
        let post_base = |index| Reference::Dynamic(DynamicReference::PostBase(index));
        if first & 0x80 != 0 {
            return Ok(Self::Indexed(reference(first & 0x40 != 0, reader.integer(6)?)));
        }
        if first & 0x40 != 0 {
            let name = reference(first & 0x10 != 0, reader.integer(4)?);
            let value = read_string(reader, 7)?;
            return Ok(Self::WithNameReference {
                name,
                value,
                is_never_indexed: first & 0x20 != 0,
            });
        }
        if first & 0x20 != 0 {
            let name = read_string(reader, 3)?;
            let value = read_string(reader, 7)?;
            return Ok(Self::WithLiteralName { name, value, is_never_indexed: first & 0x10 != 0 });
        }
        if first & 0x10 != 0 {
            return Ok(Self::Indexed(post_base(reader.integer(4)?)));
        }
        let name = post_base(reader.integer(3)?);
        let value = read_string(reader, 7)?;
        Ok(Self::WithNameReference { name, value, is_never_indexed: first & 0x08 != 0 })
    }
}

/// Reads a string of a section, which is whole: what it lacks is never going to arrive.
fn read_string(reader: &mut Reader<'_>, prefix: u32) -> Result<StringLiteral, ReadFault> {
    reader.string(prefix, |_, _| Ok(()))
}

/// Appends an Indexed Field Line.
pub(super) fn write_indexed(reference: Reference, out: &mut Vec<u8>) {
    match reference {
        Reference::Static(index) => write_integer(0xc0, 6, index, out),
        Reference::Dynamic(DynamicReference::Relative(index)) => write_integer(0x80, 6, index, out),
        Reference::Dynamic(DynamicReference::PostBase(index)) => write_integer(0x10, 4, index, out),
    }
}

/// Appends a Literal Field Line with Name Reference.
pub(super) fn write_with_name_reference(
    name: Reference,
    value: &[u8],
    is_never_indexed: bool,
    out: &mut Vec<u8>,
) {
    let never = u8::from(is_never_indexed);
    match name {
        Reference::Static(index) => write_integer(0x50 | never << 5, 4, index, out),
        Reference::Dynamic(DynamicReference::Relative(index)) => {
            write_integer(0x40 | never << 5, 4, index, out);
        }
        Reference::Dynamic(DynamicReference::PostBase(index)) => {
            write_integer(never << 3, 3, index, out);
        }
    }
    write_string(0, 7, value, out);
}

/// Appends a Literal Field Line with Literal Name.
pub(super) fn write_with_literal_name(
    name: &[u8],
    value: &[u8],
    is_never_indexed: bool,
    out: &mut Vec<u8>,
) {
    write_string(0x20 | u8::from(is_never_indexed) << 4, 3, name, out);
    write_string(0, 7, value, out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(octets: &[u8], max_capacity: u64, inserted: u64) -> Result<SectionPrefix, ReadFault> {
        SectionPrefix::read(&mut Reader::new(octets), max_capacity, inserted)
    }

    #[test]
    fn the_required_insert_count_of_the_rfcs_example_wraps() {
        // RFC 9204 §4.5.1.1: modulo 6; with 10 insertions, 4 stands for 9.
        assert_eq!(required_insert_count(4, 100, 10), Ok(9));
        // RFC 9204 §4.5.1.2: a Required Insert Count of 9 and a Delta Base of -2 give a Base of 6.
        let prefix = SectionPrefix { required: 9, base: 6 };
        assert_eq!(read(&[4, 0x82], 100, 10), Ok(prefix));
        assert_eq!(prefix.absolute(DynamicReference::Relative(1)), Ok(4));
        assert_eq!(prefix.absolute(DynamicReference::PostBase(1)), Ok(7));
    }

    //= rfc9204 §4.5.1.1
    //# the Required Insert Count, modulo twice the entries; impossible ones MUST fail
    #[test]
    fn an_impossible_required_insert_count_is_refused() {
        let impossible = Err(QpackRule::RequiredInsertCount);
        assert_eq!(required_insert_count(7, 100, 10), impossible, "more than twice the entries");
        assert_eq!(required_insert_count(1, 0, 0), impossible, "there is no table");
        assert_eq!(required_insert_count(1, 100, 0), impossible, "0 is encoded as 0");
        assert_eq!(required_insert_count(5, 100, 0), impossible, "more than can be inserted");
        assert_eq!(required_insert_count(6, 100, 0), impossible);
        assert_eq!(required_insert_count(4, 100, 0), Ok(3));
    }

    //= rfc9204 §4.5.1.2
    //# a negative Base MUST be invalid
    #[test]
    fn a_negative_base_is_refused() {
        let negative = Err(ReadFault::Broken(QpackRule::NegativeBase));
        assert_eq!(read(&[4, 0x88], 100, 10), Ok(SectionPrefix { required: 9, base: 0 }));
        assert_eq!(read(&[4, 0x89], 100, 10), negative);
        assert_eq!(read(&[0, 0x80], 100, 10), negative);
    }

    #[test]
    fn a_reference_is_below_the_required_insert_count() {
        let prefix = SectionPrefix { required: 5, base: 7 };
        assert_eq!(prefix.absolute(DynamicReference::Relative(2)), Ok(4));
        let beyond = Err(QpackRule::BeyondRequiredInsertCount);
        assert_eq!(prefix.absolute(DynamicReference::Relative(1)), beyond);
        assert_eq!(prefix.absolute(DynamicReference::PostBase(0)), beyond);
        let missing = Err(QpackRule::NoDynamicEntry);
        assert_eq!(prefix.absolute(DynamicReference::Relative(7)), missing);
        assert_eq!(prefix.absolute(DynamicReference::PostBase(u64::MAX)), missing);
    }

    proptest! {
        #[test]
        fn a_prefix_is_read_as_written(
            max_capacity in 32_u64..5000,
            inserted in 0_u64..1000,
            behind in 0_u64..1000,
            base in 0_u64..1200,
        ) {
            let most_entries = max_capacity / 32;
            // What the encoder has inserted is ahead of the decoder by at most a full table, and
            // it refers to nothing that it had to evict for that.
            let required = (inserted + most_entries).saturating_sub(behind % (2 * most_entries));
            let prefix = SectionPrefix { required, base: if required == 0 { 0 } else { base } };
            let mut octets = Vec::new();
            prefix.write(max_capacity, &mut octets);
            prop_assert_eq!(read(&octets, max_capacity, inserted), Ok(prefix));
        }

        #[test]
        fn a_reference_is_read_as_written(base in 0_u64..300, absolute in 0_u64..300) {
            let reference = SectionPrefix::reference(base, absolute);
            let prefix = SectionPrefix { required: 300, base };
            prop_assert_eq!(prefix.absolute(reference), Ok(absolute));
            let mut octets = Vec::new();
            write_indexed(Reference::Dynamic(reference), &mut octets);
            let indexed = Representation::Indexed(Reference::Dynamic(reference));
            prop_assert_eq!(Representation::read(&mut Reader::new(&octets)), Ok(indexed));
            for is_never_indexed in [false, true] {
                let mut octets = Vec::new();
                write_with_name_reference(
                    Reference::Dynamic(reference), b"v", is_never_indexed, &mut octets,
                );
                let end = octets.len();
                let value = StringLiteral { is_huffman: false, place: end - 1..end };
                let name = Reference::Dynamic(reference);
                let line = Representation::WithNameReference { name, value, is_never_indexed };
                prop_assert_eq!(Representation::read(&mut Reader::new(&octets)), Ok(line));
            }
        }
    }
}
