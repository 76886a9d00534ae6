//! Encodes values for pages (<https://parquet.apache.org/docs/file-format/data-pages/encodings/>).

use std::collections::HashMap;

use super::thrift::varint;

/// The distinct strings of a column.
#[derive(Debug, Default, PartialEq)]
pub(super) struct StringDictionary {
    /// Their number.
    pub(super) texts: usize,
    pub(super) bytes: Vec<u8>,
}

impl StringDictionary {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Returns the dictionary of some strings, and the encoded index of each of them.
pub(super) fn dictionary(texts: &[String]) -> (StringDictionary, Vec<u8>) {
    let mut dictionary = StringDictionary::default();
    let mut indices: HashMap<&str, usize> = HashMap::new();
    let mut places = Vec::with_capacity(texts.len());
    for text in texts {
        let index = *indices.entry(text).or_insert_with(|| {
            dictionary.bytes.extend((text.len() as u32).to_le_bytes());
            dictionary.bytes.extend(text.as_bytes());
            dictionary.texts += 1;
            dictionary.texts - 1
        });
        places.push(index);
    }
    // At least one bit, because not every reader supports a width of zero.
    let width = (usize::BITS - dictionary.texts.saturating_sub(1).leading_zeros()).max(1);
    let mut bytes = vec![width as u8];
    packed(&places, width, &mut bytes);
    (dictionary, bytes)
}

pub(super) fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Encodes which values are present, and then those values.
pub(super) fn maybe_doubles(values: &[Option<f64>]) -> Vec<u8> {
    let levels: Vec<usize> = values.iter().map(|value| usize::from(value.is_some())).collect();
    let mut present = Vec::new();
    packed(&levels, 1, &mut present);
    let mut bytes = (present.len() as u32).to_le_bytes().to_vec();
    bytes.extend(present);
    bytes.extend(values.iter().flatten().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Encodes numbers with this many bits each, least significant bit first: one bit-packed run of the
/// hybrid encoding, which consists of whole groups of eight.
fn packed(numbers: &[usize], width: u32, bytes: &mut Vec<u8>) {
    varint(numbers.len().div_ceil(8) << 1 | 1, bytes);
    let (mut kept, mut bits) = (0_u64, 0);
    let padding = numbers.len().next_multiple_of(8) - numbers.len();
    for number in numbers.iter().copied().chain(std::iter::repeat_n(0, padding)) {
        kept |= (number as u64) << bits;
        bits += width;
        while bits >= 8 {
            bytes.push(kept as u8);
            kept >>= 8;
            bits -= 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_as_the_format_requires() {
        // The example of the format: 0 to 7 by three bits.
        let mut bytes = Vec::new();
        packed(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut bytes);
        assert_eq!(bytes, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn unused_bits_of_a_group_are_zero() {
        let mut bytes = Vec::new();
        packed(&[1, 0, 1], 1, &mut bytes);
        assert_eq!(bytes, [0b11, 0b101]);
    }

    #[test]
    fn texts_are_written_once() {
        let texts = ["a", "b", "a", "", "b"].map(str::to_owned);
        let (dictionary, places) = dictionary(&texts);
        assert_eq!(dictionary.texts, 3);
        assert_eq!(dictionary.bytes, b"\x01\0\0\0a\x01\0\0\0b\0\0\0\0");
        assert_eq!(places, [2, 0b11, 0b1000_0100, 0b01]);
        assert_eq!(super::dictionary(&texts[..1]).1, [1, 0b11, 0]);
    }

    #[test]
    fn missing_values_take_no_space() {
        let bytes = maybe_doubles(&[None, Some(1.0), None]);
        assert_eq!(bytes, [&[2, 0, 0, 0, 0b11, 0b010][..], &1.0_f64.to_le_bytes()].concat());
    }
}
