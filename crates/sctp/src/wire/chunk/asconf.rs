//! ASCONF and ASCONF-ACK: addresses added and removed while the association exists.
//!
//! <https://www.rfc-editor.org/rfc/rfc5061#section-4.1>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 193   |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! |                         Serial Number                         |
//! +---------------------------------------------------------------+
//! \                Address Parameter (IPv4 or IPv6)               \
//! +---------------------------------------------------------------+
//! \                 one or more ASCONF Parameters                 \
//! +---------------------------------------------------------------+
//!
//! +---------------+---------------+-------------------------------+
//! |  Type = 128   |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! |                         Serial Number                         |
//! +---------------------------------------------------------------+
//! \         zero or more ASCONF Parameter Responses               \
//! +---------------------------------------------------------------+
//! ```

use bytes::BytesMut;
use core::net::IpAddr;

use super::{Chunk, ChunkType, EncodeChunk, PacketView, put_header};
use crate::serial::AsconfNumber;
use crate::wire::parameter::address;
use crate::wire::records::WireRecord;
use crate::wire::walker::{ElementWalker, WalkerStep};
use crate::wire::{Parameter, Parameters};

/// Bytes of either chunk before its parameters.
const FIXED: usize = 8;

/// A request for address changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsconfChunk {
    /// The number of the request.
    pub serial: AsconfNumber,
    /// An address of the sender in the association, for lookup.
    pub address: IpAddr,
    /// The requests: addresses to add or delete, the primary address to set.
    pub parameters: Parameters,
}

impl AsconfChunk {
    pub(super) fn parse(chunk: PacketView<'_>) -> Option<Self> {
        let serial = AsconfNumber(chunk.u32_at(4)?);
        let mut walker = ElementWalker::new(chunk.skip(FIXED)?);
        let Some(WalkerStep::Element(first)) = walker.next() else { return None };
        let address = Parameter::parse(first).address()?;
        let parameters = Parameters::from_bytes(walker.rest().share());
        Some(Self { serial, address, parameters })
    }
}

impl EncodeChunk for AsconfChunk {
    fn encoded_len(&self) -> usize {
        FIXED + address::encoded_len(self.address) + self.parameters.as_bytes().len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        put_header(ChunkType::ASCONF, 0, self.encoded_len(), buffer);
        self.serial.0.write(buffer);
        Parameter::Address(self.address).encode(buffer);
        buffer.extend_from_slice(self.parameters.as_bytes());
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::Asconf(self.clone())
    }
}

/// The outcome of an ASCONF's requests. A request without a response succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsconfAckChunk {
    /// The number of the request.
    pub serial: AsconfNumber,
    /// Success indications and error causes, by correlation identifier.
    pub parameters: Parameters,
}

impl AsconfAckChunk {
    pub(super) fn parse(chunk: PacketView<'_>) -> Option<Self> {
        Some(Self {
            serial: AsconfNumber(chunk.u32_at(4)?),
            parameters: Parameters::from_bytes(chunk.skip(FIXED)?.share()),
        })
    }
}

impl EncodeChunk for AsconfAckChunk {
    fn encoded_len(&self) -> usize {
        FIXED + self.parameters.as_bytes().len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        put_header(ChunkType::ASCONF_ACK, 0, self.encoded_len(), buffer);
        self.serial.0.write(buffer);
        buffer.extend_from_slice(self.parameters.as_bytes());
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::AsconfAck(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};
    use crate::wire::parameter::AddressRequest;

    /// Adds 10.0.0.2; sent by 10.0.0.1.
    const ASCONF: &[u8] = &[
        0xc1, 0x00, 0x00, 0x20, 0, 0, 0, 7, 0, 5, 0, 8, 10, 0, 0, 1, 0xc0, 1, 0, 16, 0, 0, 0, 9, 0,
        5, 0, 8, 10, 0, 0, 2,
    ];

    #[test]
    fn a_request_is_parsed() {
        let request = AddressRequest { correlation: 9, address: [10, 0, 0, 2].into() };
        let expected = AsconfChunk {
            serial: AsconfNumber(7),
            address: [10, 0, 0, 1].into(),
            parameters: [Parameter::AddAddress(request)].into_iter().collect(),
        };
        assert_eq!(parse_one(ASCONF), Chunk::Asconf(expected));
        round_trip(ASCONF);
    }

    #[test]
    fn a_response_is_parsed() {
        let ack = [0x80, 0, 0, 16, 0, 0, 0, 7, 0xc0, 5, 0, 8, 0, 0, 0, 9];
        let success = Parameter::SuccessIndication { correlation: 9 };
        let expected =
            AsconfAckChunk { serial: AsconfNumber(7), parameters: [success].into_iter().collect() };
        assert_eq!(parse_one(&ack), Chunk::AsconfAck(expected));
        round_trip(&ack);
    }

    #[test]
    fn a_request_without_an_address_is_malformed() {
        let malformed = Chunk::Malformed { chunk_type: ChunkType::ASCONF };
        assert_eq!(parse_one(&[0xc1, 0, 0, 8, 0, 0, 0, 7]), malformed);
        let cookie = [0xc1, 0, 0, 16, 0, 0, 0, 7, 0, 7, 0, 8, 10, 0, 0, 1];
        assert_eq!(parse_one(&cookie), malformed);
    }
}
