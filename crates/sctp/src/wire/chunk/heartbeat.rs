//! HEARTBEAT and HEARTBEAT ACK: probes of an address and its RTT.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.5>,
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.6>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! | Type = 4 or 5 |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! |   Heartbeat Info Type = 1     |          Info Length          |
//! +-------------------------------+-------------------------------+
//! \            Sender-Specific Heartbeat Information              \
//! +---------------------------------------------------------------+
//! ```

use bytes::{Bytes, BytesMut};

use super::{ChunkType, ELEMENT_HEADER, PacketView, put_header};
use crate::wire::ParameterType;
use crate::wire::walker::{ElementWalker, WalkerStep};

/// Information to be echoed unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatChunk {
    /// The information, which only its sender understands.
    pub info: Bytes,
}

impl HeartbeatChunk {
    pub(super) fn parse(chunk: PacketView<'_>) -> Option<Self> {
        let WalkerStep::Element(parameter) = ElementWalker::new(chunk.value()).next()? else {
            return None;
        };
        (parameter.u16_at(0)? == ParameterType::HEARTBEAT_INFO.0)
            .then(|| Self { info: parameter.value().share() })
    }

    pub(super) fn encoded_len(&self) -> usize {
        ELEMENT_HEADER + ELEMENT_HEADER + self.info.len()
    }

    pub(super) fn encode(&self, chunk_type: ChunkType, buffer: &mut BytesMut) {
        put_header(chunk_type, 0, self.encoded_len(), buffer);
        ParameterType::HEARTBEAT_INFO.put_header(self.info.len(), buffer);
        buffer.extend_from_slice(&self.info);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};

    const HEARTBEAT: &[u8] =
        &[0x04, 0x00, 0x00, 0x0d, 0x00, 0x01, 0x00, 0x09, 0x01, 0x02, 0x03, 0x04, 0x05, 0, 0, 0];

    #[test]
    fn the_information_comes_back() {
        let info = Bytes::from_static(&[1, 2, 3, 4, 5]);
        assert_eq!(parse_one(HEARTBEAT), Chunk::Heartbeat(HeartbeatChunk { info: info.clone() }));
        round_trip(HEARTBEAT);
        let mut ack = HEARTBEAT.to_vec();
        ack[0] = 5;
        assert_eq!(parse_one(&ack), Chunk::HeartbeatAck(HeartbeatChunk { info }));
        round_trip(&ack);
    }

    #[test]
    fn anything_but_the_information_is_malformed() {
        let wrong_type = [4, 0, 0, 8, 0, 2, 0, 4];
        let too_long = [4, 0, 0, 8, 0, 1, 0, 5];
        let none = [4, 0, 0, 4];
        for bytes in [&wrong_type[..], &too_long, &none] {
            assert_eq!(parse_one(bytes), Chunk::Malformed { chunk_type: ChunkType::HEARTBEAT });
        }
    }
}
