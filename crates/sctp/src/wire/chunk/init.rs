//! INIT and INIT ACK: the parameters of each side.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.2>,
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.3>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! | Type = 1 or 2 |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! |                         Initiate Tag                          |
//! +---------------------------------------------------------------+
//! |          Advertised Receiver Window Credit (a_rwnd)           |
//! +-------------------------------+-------------------------------+
//! |  Number of Outbound Streams   |   Number of Inbound Streams   |
//! +-------------------------------+-------------------------------+
//! |                          Initial TSN                          |
//! +---------------------------------------------------------------+
//! \                          Parameters                           \
//! +---------------------------------------------------------------+
//! ```

use bytes::BytesMut;

use super::{ChunkType, PacketView, put_header};
use crate::identifier::VerificationTag;
use crate::serial::Tsn;
use crate::wire::Parameters;

/// Bytes of the chunk before its parameters.
const FIXED: usize = 20;

/// The contents of an INIT or INIT ACK chunk, not validated: a tag of zero and zero streams are
/// errors that the receiver has to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitChunk {
    /// The tag that packets to its sender must carry; not zero.
    pub initiate_tag: VerificationTag,
    /// The window of its sender, in bytes.
    pub a_rwnd: u32,
    /// The number of streams that its sender wants to send on; not zero.
    pub outbound_streams: u16,
    /// The number of streams that its sender allows the other side; not zero.
    pub inbound_streams: u16,
    /// The first TSN that its sender will use.
    pub initial_tsn: Tsn,
    /// Addresses, extensions, and in an INIT ACK the cookie.
    pub parameters: Parameters,
}

impl InitChunk {
    pub(super) fn parse(chunk: PacketView<'_>) -> Option<Self> {
        Some(Self {
            initiate_tag: VerificationTag(chunk.u32_at(4)?),
            a_rwnd: chunk.u32_at(8)?,
            outbound_streams: chunk.u16_at(12)?,
            inbound_streams: chunk.u16_at(14)?,
            initial_tsn: Tsn(chunk.u32_at(16)?),
            parameters: Parameters::from_bytes(chunk.skip(FIXED)?.share()),
        })
    }

    pub(super) fn encoded_len(&self) -> usize {
        FIXED + self.parameters.as_bytes().len()
    }

    pub(super) fn encode(&self, chunk_type: ChunkType, buffer: &mut BytesMut) {
        put_header(chunk_type, 0, self.encoded_len(), buffer);
        buffer.extend_from_slice(&self.initiate_tag.0.to_be_bytes());
        buffer.extend_from_slice(&self.a_rwnd.to_be_bytes());
        buffer.extend_from_slice(&self.outbound_streams.to_be_bytes());
        buffer.extend_from_slice(&self.inbound_streams.to_be_bytes());
        buffer.extend_from_slice(&self.initial_tsn.0.to_be_bytes());
        buffer.extend_from_slice(self.parameters.as_bytes());
    }
}
