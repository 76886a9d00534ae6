//! Chunks of unknown types.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.2>

use bytes::{Bytes, BytesMut};

use super::{Chunk, ChunkType, ELEMENT_HEADER, EncodeChunk, PacketView, put_header};
use crate::wire::UnknownAction;

/// A received chunk of unknown type, which may have to be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownChunk {
    /// Its type.
    pub chunk_type: ChunkType,
    /// Its flags.
    pub flags: u8,
    /// The content after its header.
    pub value: Bytes,
}

impl UnknownChunk {
    pub(super) fn parse(chunk_type: ChunkType, flags: u8, chunk: PacketView<'_>) -> Self {
        Self { chunk_type, flags, value: chunk.value().share() }
    }

    /// Returns the action that its type requests.
    #[must_use]
    pub const fn action(&self) -> UnknownAction {
        UnknownAction::of_chunk(self.chunk_type)
    }

    /// Returns the chunk with its header, for the cause "unrecognized chunk type".
    #[must_use]
    pub fn whole(&self) -> Bytes {
        let mut buffer = BytesMut::with_capacity(self.encoded_len());
        self.encode(&mut buffer);
        buffer.freeze()
    }
}

impl EncodeChunk for UnknownChunk {
    fn encoded_len(&self) -> usize {
        ELEMENT_HEADER + self.value.len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        put_header(self.chunk_type, self.flags, self.encoded_len(), buffer);
        buffer.extend_from_slice(&self.value);
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::Unknown(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};

    #[test]
    fn an_unknown_chunk_is_kept_as_it_is() {
        let bytes = [0xfe, 0x55, 0, 7, 1, 2, 3, 0];
        let Chunk::Unknown(unknown) = parse_one(&bytes) else { panic!("254 has no meaning") };
        assert_eq!((unknown.chunk_type, unknown.flags), (ChunkType(0xfe), 0x55));
        assert_eq!(unknown.value[..], [1, 2, 3]);
        assert_eq!(unknown.whole()[..], bytes[..7]);
        assert_eq!(unknown.action(), UnknownAction::SkipAndReport);
        round_trip(&bytes);
    }
}
