//! Variable-length integers of QUIC (RFC 9000 §16), from slices and one byte at a time.

use alloc::vec::Vec;

use bytes::Bytes;

/// The largest value.
pub const MAX: u64 = (1 << 62) - 1;

/// The longest encoding, in bytes.
pub const MAX_BYTES: usize = 8;

/// Returns the value that a slice begins with, and what follows it. Encodings may be longer than
/// necessary. `None` if the slice ends too early.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_at_checked(encoded_size(*bytes.first()?))?;
    let value = number.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    Some((value & (MAX >> (62 - (8 * number.len() - 2))), rest))
}

/// Returns the size of the encoding that begins with this byte, in bytes.
const fn encoded_size(first: u8) -> usize {
    1 << (first >> 6)
}

/// Appends a value in its shortest encoding. A value above [`MAX`] has none and is written as `MAX`:
/// callers have checked what a peer or a user chose.
pub fn write(value: u64, out: &mut Vec<u8>) {
    let (bytes, size) = encode(value);
    out.extend_from_slice(&bytes[MAX_BYTES - size..]);
}

/// Returns the shortest encoding as the last bytes of an array, and their number.
pub(crate) const fn encode(value: u64) -> ([u8; MAX_BYTES], usize) {
    let (marked, size) = match value {
        0..0x40 => (value, 1),
        0x40..0x4000 => (value | 0b01 << 14, 2),
        0x4000..0x4000_0000 => (value | 0b10 << 30, 4),
        0x4000_0000..=MAX => (value | 0b11 << 62, 8),
        _ => (u64::MAX, 8),
    };
    (marked.to_be_bytes(), size)
}

/// An integer that arrives in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartialVarint {
    bytes: [u8; MAX_BYTES],
    length: u8,
}

impl PartialVarint {
    /// Nothing of an integer.
    pub const EMPTY: Self = Self { bytes: [0; MAX_BYTES], length: 0 };

    /// Takes bytes off `input` until the value is complete, `None` if they are too few.
    pub fn read(&mut self, input: &mut Bytes) -> Option<u64> {
        let mut count = 0;
        let value = input.iter().find_map(|&byte| {
            count += 1;
            self.push(byte)
        });
        let _ = input.split_to(count);
        value
    }

    /// Adds a byte and returns the value if it is complete; then the next byte begins another.
    pub fn push(&mut self, byte: u8) -> Option<u64> {
        let slot = self.bytes.get_mut(usize::from(self.length))?;
        *slot = byte;
        self.length += 1;
        let (value, _) = parse(&self.bytes[..usize::from(self.length)])?;
        self.length = 0;
        Some(value)
    }

    /// Returns whether no byte of an incomplete value has been added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (bytes, value) in [
            (&b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"[..], 151_288_809_941_952_652),
            (b"\x9d\x7f\x3e\x7d", 494_878_333),
            (b"\x7b\xbd", 15_293),
            (b"\x25", 37),
            (b"\x40\x25", 37),
        ] {
            assert_eq!(parse(bytes), Some((value, &b""[..])));
            for end in 0..bytes.len() {
                assert_eq!(parse(&bytes[..end]), None);
            }
        }
        let mut shortest = Vec::new();
        for value in [0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000, MAX] {
            shortest.clear();
            write(value, &mut shortest);
            assert_eq!(parse(&shortest), Some((value, &b""[..])));
        }
        write(u64::MAX, &mut shortest);
        assert_eq!(shortest[8..], [0xff; 8]);
    }

    proptest! {
        #[test]
        fn parts_and_slices_agree(values in proptest::collection::vec(0..=MAX, 0..8)) {
            let mut bytes = Vec::new();
            values.iter().for_each(|&value| write(value, &mut bytes));
            let mut partial = PartialVarint::default();
            let read: Vec<u64> = bytes.iter().filter_map(|&byte| partial.push(byte)).collect();
            prop_assert_eq!(read, values);
            prop_assert!(partial.is_empty());
        }
    }
}
