//! PAD: padding.
//!
//! <https://www.rfc-editor.org/rfc/rfc4820#section-3>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 132   |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! \                         Padding Data                          \
//! +---------------------------------------------------------------+
//! ```

use bytes::BytesMut;

use super::{ChunkType, ELEMENT_HEADER, PacketView, put_header};

pub(super) fn parse(chunk: PacketView<'_>) -> u16 {
    u16::try_from(chunk.value().len()).unwrap_or(u16::MAX)
}

pub(super) fn encode(length: u16, buffer: &mut BytesMut) {
    let length = usize::from(length);
    put_header(ChunkType::PAD, 0, ELEMENT_HEADER + length, buffer);
    buffer.resize(buffer.len() + length, 0);
}

#[cfg(test)]
mod tests {
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};

    #[test]
    fn only_the_length_is_kept() {
        assert_eq!(parse_one(&[0x84, 0, 0, 6, 9, 9, 0, 0]), Chunk::Pad { length: 2 });
        round_trip(&[0x84, 0, 0, 6, 0, 0, 0, 0]);
        round_trip(&[0x84, 0, 0, 4]);
    }
}
