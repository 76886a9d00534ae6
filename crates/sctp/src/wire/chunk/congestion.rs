//! ECNE and CWR: echoes of congestion marks, and the response to them.
//!
//! <https://www.rfc-editor.org/rfc/rfc4960#appendix-A>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |Type = 12 or 13|       0       |          Length = 8           |
//! +---------------+---------------+-------------------------------+
//! |                       Lowest TSN Number                       |
//! +---------------------------------------------------------------+
//! ```
//!
//! Some senders append a count of packets to ECNE; it is ignored.

use bytes::BytesMut;

use super::{ChunkType, PacketView, put_header};
use crate::serial::Tsn;
use crate::wire::records::WireRecord;

/// Bytes of either chunk.
pub(super) const LEN: usize = 8;

pub(super) fn parse(chunk: PacketView<'_>) -> Option<Tsn> {
    chunk.u32_at(4).map(Tsn)
}

pub(super) fn encode(chunk_type: ChunkType, lowest_tsn: Tsn, buffer: &mut BytesMut) {
    put_header(chunk_type, 0, LEN, buffer);
    lowest_tsn.write(buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};

    #[test]
    fn both_name_a_tsn() {
        let lowest_tsn = Tsn(0x0102_0304);
        let ecne = [12, 0, 0, 8, 1, 2, 3, 4];
        assert_eq!(parse_one(&ecne), Chunk::Ecne { lowest_tsn });
        round_trip(&ecne);
        let cwr = [13, 0, 0, 8, 1, 2, 3, 4];
        assert_eq!(parse_one(&cwr), Chunk::Cwr { lowest_tsn });
        round_trip(&cwr);
    }

    #[test]
    fn a_count_of_packets_is_ignored() {
        let counted = [12, 0, 0, 12, 1, 2, 3, 4, 0, 0, 0, 9];
        assert_eq!(parse_one(&counted), Chunk::Ecne { lowest_tsn: Tsn(0x0102_0304) });
        let short = Chunk::Malformed { chunk_type: ChunkType::CWR };
        assert_eq!(parse_one(&[13, 0, 0, 7, 1, 2, 3]), short);
    }
}
