//! SHUTDOWN, SHUTDOWN ACK and SHUTDOWN COMPLETE: graceful termination.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.8>,
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.9>,
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.13>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 7    |       0       |          Length = 8           |
//! +---------------+---------------+-------------------------------+
//! |                      Cumulative TSN Ack                       |
//! +---------------------------------------------------------------+
//!
//! +---------------+---------------+-------------------------------+
//! |   Type = 8    |       0       |          Length = 4           |
//! +---------------+---------------+-------------------------------+
//!
//! +---------------+---------------+-------------------------------+
//! |   Type = 14   |  Reserved   |T|          Length = 4           |
//! +---------------+---------------+-------------------------------+
//! ```

use bytes::BytesMut;

use super::{ChunkType, ELEMENT_HEADER, PacketView, put_header};
use crate::serial::Tsn;
use crate::wire::records::WireRecord;

/// Bytes of a SHUTDOWN chunk.
pub(super) const SHUTDOWN_LEN: usize = 8;
/// The T bit of SHUTDOWN COMPLETE.
pub(super) const REFLECTED: u8 = 1;

pub(super) fn parse(chunk: PacketView<'_>) -> Option<Tsn> {
    chunk.u32_at(4).map(Tsn)
}

pub(super) fn encode(cumulative_tsn: Tsn, buffer: &mut BytesMut) {
    put_header(ChunkType::SHUTDOWN, 0, SHUTDOWN_LEN, buffer);
    cumulative_tsn.write(buffer);
}

pub(super) fn encode_complete(reflected: bool, buffer: &mut BytesMut) {
    let flags = if reflected { REFLECTED } else { 0 };
    put_header(ChunkType::SHUTDOWN_COMPLETE, flags, ELEMENT_HEADER, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};

    #[test]
    fn the_three_kinds_are_parsed() {
        let shutdown = [7, 0, 0, 8, 0, 0, 1, 2];
        assert_eq!(parse_one(&shutdown), Chunk::Shutdown { cumulative_tsn: Tsn(0x102) });
        round_trip(&shutdown);
        assert_eq!(parse_one(&[8, 0, 0, 4]), Chunk::ShutdownAck);
        round_trip(&[8, 0, 0, 4]);
        for (flags, reflected) in [(0, false), (1, true)] {
            let complete = [14, flags, 0, 4];
            assert_eq!(parse_one(&complete), Chunk::ShutdownComplete { reflected });
            round_trip(&complete);
        }
    }

    #[test]
    fn a_shutdown_without_a_tsn_is_malformed() {
        let malformed = Chunk::Malformed { chunk_type: ChunkType::SHUTDOWN };
        assert_eq!(parse_one(&[7, 0, 0, 7, 0, 0, 1]), malformed);
    }
}
