//! Decoding and encoding of chunks.

use super::*;
use crate::identifier::VerificationTag;
use crate::wire::{
    Causes, ChecksumKind, CommonHeader, ErrorCause, PACKET_HEADER, PacketParser, PacketWriter,
    Parameter, Parameters,
};
use alloc::vec::Vec;

const HEADER: CommonHeader =
    CommonHeader { source_port: 5001, destination_port: 5002, tag: VerificationTag(0xdead_beef) };

/// Parses `chunks` as the contents of a packet after the common header.
pub(super) fn parse_all(chunks: &[u8]) -> Vec<Chunk> {
    let mut packet = HEADER.encode().to_vec();
    packet.extend_from_slice(chunks);
    ChecksumKind::Crc32c.patch(&mut packet);
    let packet = Bytes::from(packet);
    let (header, chunks) = PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
    assert_eq!(header, HEADER);
    chunks.collect()
}

/// Parses the bytes of one chunk, with or without padding.
pub(super) fn parse_one(chunk: &[u8]) -> Chunk {
    let chunks = parse_all(chunk);
    assert_eq!(chunks.len(), 1, "{chunks:?}");
    chunks.into_iter().next().expect("there is one")
}

/// Checks that parsing and encoding gives the same bytes; `chunk` includes its padding.
pub(super) fn round_trip(chunk: &[u8]) {
    let mut buffer = BytesMut::new();
    let mut packet = PacketWriter::begin(&mut buffer, HEADER, 1 << 16);
    assert!(packet.append(&parse_one(chunk)));
    packet.finish(ChecksumKind::Crc32c);
    assert_eq!(buffer[PACKET_HEADER..], *chunk);
}

#[test]
fn an_init_is_parsed() {
    let bytes = [
        1, 0, 0, 26, 0xaa, 0xbb, 0xcc, 0xdd, 0, 1, 0, 0, 0, 10, 0xff, 0xff, 0, 0, 0x12, 0x34, 0x80,
        8, 0, 6, 0xc0, 0x82, 0, 0,
    ];
    let extensions = Parameter::SupportedExtensions(Bytes::from_static(&[0xc0, 0x82]));
    let init = InitChunk {
        initiate_tag: VerificationTag(0xaabb_ccdd),
        a_rwnd: 0x1_0000,
        outbound_streams: 10,
        inbound_streams: 0xffff,
        initial_tsn: Tsn(0x1234),
        parameters: [extensions].into_iter().collect(),
    };
    assert_eq!(parse_one(&bytes), Chunk::Init(init.clone()));
    round_trip(&bytes);
    let mut ack = bytes;
    ack[0] = 2;
    assert_eq!(parse_one(&ack), Chunk::InitAck(init));
    round_trip(&ack);
}

#[test]
fn an_init_shorter_than_its_fields_is_malformed() {
    let mut bytes = [0; 19];
    bytes[..4].copy_from_slice(&[1, 0, 0, 19]);
    assert_eq!(parse_one(&bytes), Chunk::Malformed { chunk_type: ChunkType::INIT });
}

#[test]
fn aborts_and_errors_have_causes() {
    let causes = Causes::from(ErrorCause::OutOfResource);
    let abort = [6, 1, 0, 8, 0, 4, 0, 4];
    let expected = AbortChunk { reflected: true, causes: causes.clone() };
    assert_eq!(parse_one(&abort), Chunk::Abort(expected));
    round_trip(&abort);
    assert_eq!(parse_one(&[6, 0, 0, 4]), Chunk::Abort(AbortChunk::default()));
    let error = [9, 0, 0, 8, 0, 4, 0, 4];
    assert_eq!(parse_one(&error), Chunk::Error(ErrorChunk { causes }));
    round_trip(&error);
}

#[test]
fn a_reconfiguration_has_parameters() {
    let bytes = [0x82, 0, 0, 12, 0, 15, 0, 8, 0, 0, 0, 1];
    let request = Parameter::SsnTsnReset { request: crate::serial::ReconfigurationNumber(1) };
    let parameters: Parameters = [request].into_iter().collect();
    assert_eq!(parse_one(&bytes), Chunk::Reconfig(ReconfigChunk { parameters }));
    round_trip(&bytes);
}

#[test]
fn a_length_that_does_not_fit_ends_the_packet() {
    let malformed = Chunk::Malformed { chunk_type: ChunkType::COOKIE_ECHO };
    for length in [0, 3, 9] {
        let bytes = [11, 0, 0, 4, 10, 0, 0, length, 11, 0, 0, 4];
        assert_eq!(parse_all(&bytes), [Chunk::CookieAck, malformed.clone()]);
    }
    assert_eq!(parse_all(&[11, 0, 0, 4, 10]), [Chunk::CookieAck, malformed]);
    assert_eq!(parse_all(&[]), []);
}

#[test]
fn types_are_known_without_parsing_the_chunks() {
    let mut packet = HEADER.encode().to_vec();
    packet.extend_from_slice(&[11, 0, 0, 4, 7, 0, 0, 5, 1, 0, 0, 0, 6, 0, 0, 4, 9, 0, 0, 1]);
    let packet = Bytes::from(packet);
    let (_, chunks) = PacketParser::parse(&packet, ChecksumKind::Zero).expect("a packet");
    let types: Vec<_> = chunks.types().collect();
    assert_eq!(types, [ChunkType::COOKIE_ACK, ChunkType::SHUTDOWN, ChunkType::ABORT]);
    assert_eq!(chunks.remaining(), 20);
}
