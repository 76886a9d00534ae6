//! RE-CONFIG: streams reset and added.
//!
//! <https://www.rfc-editor.org/rfc/rfc6525#section-3.1>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 130   |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! \                 Re-configuration Parameter                    \
//! +---------------------------------------------------------------+
//! \            Re-configuration Parameter (optional)              \
//! +---------------------------------------------------------------+
//! ```

use bytes::BytesMut;

use super::{Chunk, ChunkType, ELEMENT_HEADER, EncodeChunk, PacketView, put_header};
use crate::wire::Parameters;

/// One or two requests or responses, in one of the combinations of RFC 6525 §3.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconfigChunk {
    /// The requests or responses.
    pub parameters: Parameters,
}

impl ReconfigChunk {
    pub(super) fn parse(chunk: PacketView<'_>) -> Self {
        Self { parameters: Parameters::from_bytes(chunk.value().share()) }
    }
}

impl EncodeChunk for ReconfigChunk {
    fn encoded_len(&self) -> usize {
        ELEMENT_HEADER + self.parameters.as_bytes().len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        put_header(ChunkType::RE_CONFIG, 0, self.encoded_len(), buffer);
        buffer.extend_from_slice(self.parameters.as_bytes());
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::Reconfig(self.clone())
    }
}
