//! AUTH: authentication of the rest of the packet.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895#section-4.1>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 15   |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! |     Shared Key Identifier     |        HMAC Identifier        |
//! +-------------------------------+-------------------------------+
//! \                             HMAC                              \
//! +---------------------------------------------------------------+
//! ```

use bytes::{Bytes, BytesMut};

use super::{Chunk, ChunkType, EncodeChunk, PacketView, put_header};
use crate::wire::records::WireRecord;

/// Bytes of the chunk before its HMAC.
const FIXED: usize = 8;

/// An AUTH chunk, with what it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthChunk {
    /// The identifier of the endpoint pair's key.
    pub shared_key_id: u16,
    /// The identifier of the algorithm.
    pub hmac_id: u16,
    /// The HMAC.
    pub hmac: Bytes,
    /// The chunk itself and all that follows it in the packet, as received; empty in a chunk to be
    /// sent.
    pub covered: Bytes,
}

impl AuthChunk {
    /// The offset of the HMAC in the chunk.
    pub const HMAC_AT: usize = FIXED;

    /// Creates a chunk to be sent, with `hmac_len` zeros as its HMAC.
    #[must_use]
    pub fn unsigned(shared_key_id: u16, hmac_id: u16, hmac_len: usize) -> Self {
        let hmac = BytesMut::zeroed(hmac_len).freeze();
        Self { shared_key_id, hmac_id, hmac, covered: Bytes::new() }
    }

    pub(super) fn parse(chunk: PacketView<'_>, rest: PacketView<'_>) -> Option<Self> {
        Some(Self {
            shared_key_id: chunk.u16_at(4)?,
            hmac_id: chunk.u16_at(6)?,
            hmac: chunk.skip(FIXED)?.share(),
            covered: chunk.until_end_of(rest).share(),
        })
    }
}

impl EncodeChunk for AuthChunk {
    fn encoded_len(&self) -> usize {
        FIXED + self.hmac.len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        put_header(ChunkType::AUTH, 0, self.encoded_len(), buffer);
        self.shared_key_id.write(buffer);
        self.hmac_id.write(buffer);
        buffer.extend_from_slice(&self.hmac);
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::Auth(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_all, round_trip};

    const AUTH: &[u8] = &[15, 0, 0, 12, 0, 1, 0, 3, 9, 9, 9, 9];

    #[test]
    fn what_follows_is_covered() {
        let follow = [11, 0, 0, 4];
        let bytes = [AUTH, &follow].concat();
        let auth = AuthChunk {
            shared_key_id: 1,
            hmac_id: 3,
            hmac: Bytes::from_static(&[9; 4]),
            covered: bytes.clone().into(),
        };
        assert_eq!(parse_all(&bytes), [Chunk::Auth(auth), Chunk::CookieAck]);
        round_trip(AUTH);
    }

    #[test]
    fn an_unsigned_chunk_has_room_for_the_hmac() {
        let chunk = AuthChunk::unsigned(1, 3, 4);
        let mut buffer = BytesMut::new();
        chunk.encode(&mut buffer);
        assert_eq!(buffer[..], [15, 0, 0, 12, 0, 1, 0, 3, 0, 0, 0, 0]);
        assert_eq!(buffer[AuthChunk::HMAC_AT..], [0; 4]);
    }
}
