//! ABORT: immediate termination.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.7>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 6    |  Reserved   |T|            Length             |
//! +---------------+---------------+-------------------------------+
//! \                   zero or more Error Causes                   \
//! +---------------------------------------------------------------+
//! ```

use bytes::BytesMut;

use super::{Chunk, ChunkType, ELEMENT_HEADER, EncodeChunk, PacketView, put_header};
use crate::wire::Causes;

/// The T bit.
const REFLECTED: u8 = 1;

/// Why an association ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbortChunk {
    /// Whether the packet carries the receiver's own tag back, because its sender has no
    /// association (the T bit, RFC 9260 §8.5.1).
    pub reflected: bool,
    /// The causes.
    pub causes: Causes,
}

impl AbortChunk {
    pub(super) fn parse(flags: u8, chunk: PacketView<'_>) -> Self {
        Self {
            reflected: flags & REFLECTED != 0,
            causes: Causes::from_bytes(chunk.value().share()),
        }
    }
}

impl EncodeChunk for AbortChunk {
    fn encoded_len(&self) -> usize {
        ELEMENT_HEADER + self.causes.as_bytes().len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        let flags = if self.reflected { REFLECTED } else { 0 };
        put_header(ChunkType::ABORT, flags, self.encoded_len(), buffer);
        buffer.extend_from_slice(self.causes.as_bytes());
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::Abort(self.clone())
    }
}
