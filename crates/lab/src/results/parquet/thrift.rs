//! Structs in Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>), as far as
//! Parquet's headers need it.

/// Types of fields and of elements.
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct under construction. Fields must be added in ascending order of their numbers.
#[derive(Default)]
pub(super) struct ThriftStruct {
    bytes: Vec<u8>,
    last: u8,
}

impl ThriftStruct {
    fn field(&mut self, number: u8, kind: u8) {
        debug_assert!(
            number > self.last && number - self.last < 16,
            "fields are in order, and near"
        );
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    /// A 32-bit integer, or an enumeration value.
    pub(super) fn int(mut self, number: u8, value: usize) -> Self {
        self.field(number, I32);
        zigzag(value, &mut self.bytes);
        self
    }

    /// A 64-bit integer.
    pub(super) fn long(mut self, number: u8, value: usize) -> Self {
        self.field(number, I64);
        zigzag(value, &mut self.bytes);
        self
    }

    /// An 8-bit integer.
    pub(super) fn byte(mut self, number: u8, value: u8) -> Self {
        self.field(number, BYTE);
        self.bytes.push(value);
        self
    }

    /// The boolean `false`.
    pub(super) fn no(mut self, number: u8) -> Self {
        self.field(number, FALSE);
        self
    }

    pub(super) fn text(mut self, number: u8, text: &str) -> Self {
        self.field(number, BINARY);
        binary(text, &mut self.bytes);
        self
    }

    pub(super) fn inner(mut self, number: u8, inner: Self) -> Self {
        self.field(number, STRUCT);
        self.bytes.extend(inner.end());
        self
    }

    /// A list of structs.
    pub(super) fn structs(mut self, number: u8, list: Vec<Self>) -> Self {
        self.list(number, STRUCT, list.len());
        self.bytes.extend(list.into_iter().flat_map(Self::end));
        self
    }

    /// A list of enumeration values.
    pub(super) fn ints(mut self, number: u8, list: &[usize]) -> Self {
        self.list(number, I32, list.len());
        for value in list {
            zigzag(*value, &mut self.bytes);
        }
        self
    }

    pub(super) fn texts(mut self, number: u8, list: &[&str]) -> Self {
        self.list(number, BINARY, list.len());
        for text in list {
            binary(text, &mut self.bytes);
        }
        self
    }

    fn list(&mut self, number: u8, kind: u8, length: usize) {
        self.field(number, LIST);
        match u8::try_from(length) {
            Ok(short @ 0..15) => self.bytes.push(short << 4 | kind),
            _ => {
                self.bytes.push(0xF0 | kind);
                varint(length, &mut self.bytes);
            }
        }
    }

    /// Returns the encoded struct.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

/// Encodes seven bits per byte, least significant first.
pub(super) fn varint(mut value: usize, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Signed numbers alternate: 0, -1, 1, -2. None of ours is negative.
fn zigzag(value: usize, bytes: &mut Vec<u8>) {
    varint(value << 1, bytes);
}

fn binary(text: &str, bytes: &mut Vec<u8>) {
    varint(text.len(), bytes);
    bytes.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_encoded_as_the_protocol_requires() {
        let inner = ThriftStruct::default().byte(1, 64).no(2).end();
        assert_eq!(inner, [0x13, 64, 0x12, 0]);
        let bytes = ThriftStruct::default()
            .int(1, 2)
            .long(3, 300)
            .text(4, "ab")
            .inner(5, ThriftStruct::default())
            .texts(6, &["c"])
            .ints(9, &[0, 8])
            .structs(10, vec![ThriftStruct::default().int(1, 1)])
            .end();
        let expected = [
            [0x15, 4].as_slice(),
            &[0x26, 0xD8, 0x04],
            &[0x18, 2, b'a', b'b'],
            &[0x1C, 0],
            &[0x19, 0x18, 1, b'c'],
            &[0x39, 0x25, 0, 16],
            &[0x19, 0x1C, 0x15, 2, 0],
            &[0],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn long_lists_have_a_separate_length() {
        let bytes = ThriftStruct::default().ints(1, &[0; 200]).end();
        assert_eq!(bytes[..4], [0x19, 0xF5, 0xC8, 0x01]);
    }
}
