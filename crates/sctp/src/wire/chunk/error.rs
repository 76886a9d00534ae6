//! ERROR: errors that do not end the association.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.10>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 9    |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! \                   one or more Error Causes                    \
//! +---------------------------------------------------------------+
//! ```

use bytes::BytesMut;

use super::{Chunk, ChunkType, ELEMENT_HEADER, EncodeChunk, PacketView, put_header};
use crate::wire::Causes;

/// The errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorChunk {
    /// One or more causes.
    pub causes: Causes,
}

impl ErrorChunk {
    pub(super) fn parse(chunk: PacketView<'_>) -> Self {
        Self { causes: Causes::from_bytes(chunk.value().share()) }
    }
}

impl EncodeChunk for ErrorChunk {
    fn encoded_len(&self) -> usize {
        ELEMENT_HEADER + self.causes.as_bytes().len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        put_header(ChunkType::ERROR, 0, self.encoded_len(), buffer);
        buffer.extend_from_slice(self.causes.as_bytes());
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::Error(self.clone())
    }
}
