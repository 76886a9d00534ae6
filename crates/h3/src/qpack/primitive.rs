//! Prefixed integers and string literals.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-4.1>,
//! <https://www.rfc-editor.org/rfc/rfc7541#section-5>
//!
//! ```text
//!   0   1   2   3   4   5   6   7
//! +---+---+---+---+---+---+---+---+
//! |   flags   | 1   1   1   1   1 |   a value that does not fit the prefix:
//! +---+---+---+-------------------+   its rest in groups of seven bits, the lowest first
//! | 1 |    seven bits             |
//! +---+---------------------------+
//! | 0 |    seven bits             |
//! +---+---------------------------+
//! ```

use alloc::vec::Vec;
use core::ops::Range;

use super::fault::QpackRule;
use super::huffman;

/// The largest integer that is read (RFC 9204 §4.1.1).
pub(super) const MAX_INTEGER: u64 = (1 << 62) - 1;

/// The most octets of an integer after the first: nine groups have 63 bits (RFC 9204 §7.4).
const MAX_CONTINUATION: u32 = 9;

/// Appends an integer with a prefix of this many bits, whose octet begins with these flags.
pub(super) fn write_integer(flags: u8, prefix: u32, value: u64, out: &mut Vec<u8>) {
    let most = (1_u64 << prefix) - 1;
    if value < most {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a string literal whose octet begins with these flags, and has this many bits for the
/// length, after the bit for the Huffman code. Uses that code where it is shorter.
pub(super) fn write_string(flags: u8, prefix: u32, text: &[u8], out: &mut Vec<u8>) {
    let encoded = huffman::encoded_length(text);
    if encoded < text.len() {
        write_integer(flags | 1 << prefix, prefix, encoded as u64, out);
        huffman::encode(text, out);
    } else {
        write_integer(flags, prefix, text.len() as u64, out);
        out.extend_from_slice(text);
    }
}

/// Why nothing could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFault {
    /// More octets are needed.
    Incomplete,
    /// A rule is broken.
    Broken(QpackRule),
}

impl From<QpackRule> for ReadFault {
    fn from(rule: QpackRule) -> Self {
        Self::Broken(rule)
    }
}

/// Where a string literal is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StringLiteral {
    /// Whether it is in the Huffman code.
    pub(super) is_huffman: bool,
    /// Its octets, by their place in what is read.
    pub(super) place: Range<usize>,
}

/// Reads octets from the first to the last.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    octets: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Self {
        Self { octets, position: 0 }
    }

    /// Returns how many octets were read.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn is_empty(&self) -> bool {
        self.position >= self.octets.len()
    }

    /// Returns the next octet, which is still to be read.
    pub(super) fn peek(&self) -> Result<u8, ReadFault> {
        self.octets.get(self.position).copied().ok_or(ReadFault::Incomplete)
    }

    fn octet(&mut self) -> Result<u8, ReadFault> {
        let octet = self.peek()?;
        self.position += 1;
        Ok(octet)
    }

    /// Reads an integer with a prefix of this many bits.
    pub(super) fn integer(&mut self, prefix: u32) -> Result<u64, ReadFault> {
        let most = (1_u64 << prefix) - 1;
        let mut value = u64::from(self.octet()?) & most;
        if value < most {
            return Ok(value);
        }
        for group in 0..MAX_CONTINUATION {
            let octet = self.octet()?;
            value += u64::from(octet & 0x7f) << (7 * group);
            if value > MAX_INTEGER {
                break;
            }
            if octet & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(QpackRule::IntegerTooLarge.into())
    }

    /// Reads a string literal with this many bits for its length, if all of it is there. `allows`
    /// says of the length, and whether it is in the Huffman code, what is wrong with it, before the
    /// string is waited for.
    pub(super) fn string(
        &mut self,
        prefix: u32,
        allows: impl FnOnce(u64, bool) -> Result<(), QpackRule>,
    ) -> Result<StringLiteral, ReadFault> {
        let is_huffman = self.peek()? >> prefix & 1 == 1;
        let length = self.integer(prefix)?;
        allows(length, is_huffman)?;
        let left = self.octets.len() - self.position;
        let length = usize::try_from(length).map_err(|_| ReadFault::Incomplete)?;
        if length > left {
            return Err(ReadFault::Incomplete);
        }
        let place = self.position..self.position + length;
        self.position = place.end;
        Ok(StringLiteral { is_huffman, place })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn written(flags: u8, prefix: u32, value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write_integer(flags, prefix, value, &mut out);
        out
    }

    #[test]
    fn integers_of_rfc_7541_appendix_c_are_exact() {
        assert_eq!(written(0, 5, 10), [10]);
        assert_eq!(written(0, 5, 1337), [31, 154, 10]);
        assert_eq!(written(0, 8, 42), [42]);
        assert_eq!(Reader::new(&[0xff, 154, 10]).integer(5), Ok(1337));
    }

    //= rfc9204 §4.1.1, §7.4
    //# MUST decode 62 bits; no more, in at most ten octets
    #[test]
    fn an_integer_has_at_most_62_bits_in_ten_octets() {
        let largest = written(0, 3, MAX_INTEGER);
        assert_eq!(Reader::new(&largest).integer(3), Ok(MAX_INTEGER));
        let too_large = Err(ReadFault::Broken(QpackRule::IntegerTooLarge));
        let one_more = written(0, 3, MAX_INTEGER + 1);
        assert_eq!(Reader::new(&one_more).integer(3), too_large);
        assert_eq!(Reader::new(&[0xff; 10]).integer(3), too_large);
        // Zeros may be in front, within the bound.
        let zeros = |count| [&[0x07][..], &vec![0x80; count], &[0]].concat();
        assert_eq!(Reader::new(&zeros(8)).integer(3), Ok(7));
        assert_eq!(Reader::new(&zeros(9)).integer(3), too_large);
    }

    #[test]
    fn a_string_is_refused_before_it_has_arrived() {
        let refuse = |_, _| Err(QpackRule::EntryLargerThanTable);
        let refused = Err(ReadFault::Broken(QpackRule::EntryLargerThanTable));
        assert_eq!(Reader::new(&[0x7e]).string(7, refuse), refused);
        assert_eq!(Reader::new(&[0x7e]).string(7, |_, _| Ok(())), Err(ReadFault::Incomplete));
        assert_eq!(Reader::new(&[]).string(7, refuse), Err(ReadFault::Incomplete));
    }

    proptest! {
        #[test]
        fn integers_are_read_as_written(
            prefix in 3_u32..=8,
            bits in 0_u32..=62,
            random in any::<u64>(),
        ) {
            let value = random & ((1 << bits) - 1);
            let flags = if prefix == 8 { 0 } else { 0xff << prefix };
            let octets = written(flags as u8, prefix, value);
            let mut reader = Reader::new(&octets);
            prop_assert_eq!(reader.integer(prefix), Ok(value));
            prop_assert!(reader.is_empty());
            for length in 0..octets.len() {
                let mut reader = Reader::new(&octets[..length]);
                prop_assert_eq!(reader.integer(prefix), Err(ReadFault::Incomplete));
            }
        }

        #[test]
        fn strings_are_read_as_written(
            prefix in 3_u32..=7,
            text in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let mut octets = Vec::new();
            write_string(0, prefix, &text, &mut octets);
            let literal = Reader::new(&octets).string(prefix, |_, _| Ok(()));
            let literal = literal.expect("the string is whole");
            prop_assert_eq!(literal.place.end, octets.len());
            prop_assert_eq!(literal.is_huffman, huffman::encoded_length(&text) < text.len());
            for length in 0..octets.len() {
                let literal = Reader::new(&octets[..length]).string(prefix, |_, _| Ok(()));
                prop_assert_eq!(literal, Err(ReadFault::Incomplete));
            }
        }
    }
}
