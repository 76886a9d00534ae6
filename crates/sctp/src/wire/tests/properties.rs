//! For all inputs, parsing terminates, stays within bounds and is consistent; encoded chunks are
//! parsed back to the same values.

use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;

use super::strategies::{auth, cause, chunk, data, parameter};
use crate::identifier::VerificationTag;
use crate::wire::walker::{ELEMENT_HEADER, ElementWalker, PacketView, WalkerStep};
use crate::wire::{
    Causes, ChecksumKind, Chunk, CommonHeader, EncodeChunk, ErrorCause, PACKET_HEADER,
    PacketParser, PacketWriter, Parameter, Parameters, padded,
};

const HEADER: CommonHeader =
    CommonHeader { source_port: 5001, destination_port: 5002, tag: VerificationTag(0x0102_0304) };

/// The known chunk types.
const KINDS: [u8; 24] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 64, 128, 130, 132, 192, 193, 194];

/// The parameter types and cause codes with inner structure.
const TYPES: [u16; 12] = [1, 2, 5, 6, 8, 13, 16, 17, 0x8003, 0xc001, 0xc003, 0xc005];

/// Bytes that resemble chunks often enough to get past the first checks.
fn chunk_like() -> impl Strategy<Value = Vec<u8>> {
    let element = (prop::sample::select(&KINDS[..]), any::<u8>(), inner(), 0_u8..24).prop_map(
        |(kind, flags, body, length_error)| {
            let correct = ELEMENT_HEADER + body.len();
            // About every third has a wrong length.
            let length =
                if length_error < 16 { correct } else { correct + usize::from(length_error) - 20 };
            let [.., high, low] = length.to_be_bytes();
            let mut bytes = [&[kind, flags, high, low][..], &body].concat();
            bytes.resize(padded(bytes.len()), 0);
            bytes
        },
    );
    vec(element, 0..6).prop_map(|elements| elements.concat())
}

/// Bodies that contain parameters or causes, or arbitrary bytes.
fn inner() -> impl Strategy<Value = Vec<u8>> {
    let element = (prop::sample::select(&TYPES[..]), 0_u16..20, vec(any::<u8>(), 0..16)).prop_map(
        |(number, length, body)| [&number.to_be_bytes()[..], &length.to_be_bytes(), &body].concat(),
    );
    let elements = vec(element, 0..4).prop_map(|elements| elements.concat());
    prop_oneof![
        vec(any::<u8>(), 0..40),
        elements.clone(),
        (vec(any::<u8>(), 16), elements).prop_map(|(fixed, elements)| [fixed, elements].concat()),
    ]
}

/// The chunks of a packet with `contents` after its header.
fn read(contents: &[u8]) -> Vec<Chunk> {
    let packet = Bytes::from([&HEADER.encode()[..], contents].concat());
    let (_, chunks) = PacketParser::parse(&packet, ChecksumKind::Zero).expect("a header");
    chunks.collect()
}

fn write(chunk: &impl EncodeChunk) -> Bytes {
    let mut buffer = BytesMut::new();
    let mut packet = PacketWriter::begin(&mut buffer, HEADER, 1 << 17);
    assert!(packet.append(chunk), "there is room");
    assert_eq!(packet.len(), PACKET_HEADER + padded(chunk.encoded_len()));
    packet.finish(ChecksumKind::Crc32c);
    buffer.freeze()
}

/// Parses everything inside a chunk.
fn parse_nested(chunk: &Chunk) {
    match chunk {
        Chunk::Init(init) | Chunk::InitAck(init) => check_parameters(&init.parameters),
        Chunk::Asconf(asconf) => check_parameters(&asconf.parameters),
        Chunk::AsconfAck(ack) => check_parameters(&ack.parameters),
        Chunk::Reconfig(reconfig) => check_parameters(&reconfig.parameters),
        Chunk::Abort(abort) => check_causes(&abort.causes),
        Chunk::Error(error) => check_causes(&error.causes),
        Chunk::Sack(sack) => {
            let lists = [sack.gap_blocks().len(), sack.nr_gap_blocks().len()];
            assert_eq!(sack.gap_blocks().chain(sack.nr_gap_blocks()).count(), lists[0] + lists[1]);
            assert_eq!(sack.duplicates().count(), sack.duplicates().len());
        }
        Chunk::ForwardTsn(forward) => assert!(forward.skipped().count() < 1 << 14),
        Chunk::IForwardTsn(forward) => assert!(forward.skipped().count() < 1 << 13),
        _ => {}
    }
}

/// There are as many parameters as the walker takes steps, and they encode to the same bytes.
fn check_parameters(parameters: &Parameters) {
    let list: Vec<Parameter> = parameters.iter().collect();
    assert_eq!(list.len(), steps(parameters.as_bytes()));
    for parameter in &list {
        match parameter {
            Parameter::Malformed { .. } => continue,
            Parameter::ErrorCauseIndication { causes, .. } => check_causes(causes),
            _ => {}
        }
        let again = Parameters::from_bytes(parameter.to_bytes());
        assert!(again.iter().eq([parameter.clone()]));
    }
}

fn check_causes(causes: &Causes) {
    let list: Vec<ErrorCause> = causes.iter().collect();
    assert_eq!(list.len(), steps(causes.as_bytes()));
    for cause in list {
        if !matches!(cause, ErrorCause::Malformed { .. }) {
            let again = Causes::from(cause.clone());
            assert!(again.iter().eq([cause]));
        }
    }
}

/// Steps of the walker through `bytes`; each goes forward, and all stay inside.
fn steps(bytes: &Bytes) -> usize {
    let mut walker = ElementWalker::new(PacketView::whole(bytes));
    let (mut count, mut before) = (0, bytes.len());
    while let Some(step) = walker.next() {
        count += 1;
        let left = walker.rest().len();
        let length = match step {
            WalkerStep::Element(view) => view.len(),
            WalkerStep::Broken(view) => view.len(),
        };
        assert!(left < before, "every step consumes input");
        assert_eq!(before - left, padded(length).min(before));
        before = left;
    }
    assert_eq!(before, 0, "the end is reached");
    count
}

/// AUTH contains the bytes after it, which another packet does not repeat.
fn without_covered_bytes(chunk: Chunk) -> Chunk {
    match chunk {
        Chunk::Auth(mut auth) => {
            auth.covered = Bytes::new();
            Chunk::Auth(auth)
        }
        chunk => chunk,
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_the_end(bytes in prop_oneof![chunk_like(), vec(any::<u8>(), 0..200)]) {
        let chunks = read(&bytes);
        prop_assert_eq!(chunks.len(), steps(&Bytes::from(bytes)));
        for chunk in chunks {
            parse_nested(&chunk);
            if matches!(chunk, Chunk::Malformed { .. }) {
                continue;
            }
            let written = write(&chunk);
            let again = read(&written[PACKET_HEADER..]).into_iter().map(without_covered_bytes);
            prop_assert!(again.eq([without_covered_bytes(chunk)]));
        }
    }

    #[test]
    fn types_are_those_of_the_chunks(bytes in chunk_like()) {
        let packet = Bytes::from([&HEADER.encode()[..], &bytes].concat());
        let (_, chunks) = PacketParser::parse(&packet, ChecksumKind::Zero).expect("a header");
        let types: Vec<_> = chunks.types().collect();
        let read: Vec<_> = chunks.map(|chunk| chunk.chunk_type()).take(types.len()).collect();
        prop_assert_eq!(read, types);
    }

    #[test]
    fn a_chunk_comes_back(chunk in chunk()) {
        let written = write(&chunk);
        prop_assert!(ChecksumKind::Crc32c.accepts(&written));
        parse_nested(&chunk);
        prop_assert_eq!(read(&written[PACKET_HEADER..]), [chunk]);
    }

    #[test]
    fn auth_comes_back_with_what_it_covers(auth in auth(), after in chunk()) {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, HEADER, 1 << 17);
        prop_assert!(packet.append(&Chunk::CookieAck) && packet.append(&auth) && packet.append(&after));
        packet.finish(ChecksumKind::Zero);
        let mut expected = auth;
        expected.covered = Bytes::copy_from_slice(&buffer[PACKET_HEADER + 4..]);
        let expected = [Chunk::CookieAck, Chunk::Auth(expected), after];
        prop_assert_eq!(read(&buffer[PACKET_HEADER..]), expected);
    }

    #[test]
    fn both_ways_of_writing_data_agree(data in data()) {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, HEADER, 1000);
        prop_assert!(packet.data(&data.header(), &data.payload, 0..data.payload.len()));
        packet.finish(ChecksumKind::Crc32c);
        prop_assert_eq!(&buffer[..], &write(&data)[..]);
    }

    #[test]
    fn lists_come_back(parameters in vec(parameter(), 0..8), causes in vec(cause(), 0..8)) {
        let list: Parameters = parameters.iter().cloned().collect();
        prop_assert!(list.iter().eq(parameters));
        check_parameters(&list);
        let list: Causes = causes.iter().cloned().collect();
        prop_assert!(list.iter().eq(causes));
        check_causes(&list);
    }

    #[test]
    fn a_cut_packet_gives_no_more_chunks(chunk in chunk(), cut: prop::sample::Index) {
        let written = write(&chunk);
        let cut = cut.index(written.len());
        let contents = written.get(PACKET_HEADER..cut).unwrap_or_default();
        let chunks = read(contents);
        prop_assert!(chunks.len() <= 1);
        chunks.iter().for_each(parse_nested);
    }
}
