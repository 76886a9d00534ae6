//! A packet in bytes and one of values have the same size and free space, and parse alike.

use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;

use super::strategies::{auth, chunk, data};
use crate::identifier::VerificationTag;
use crate::wire::{
    AuthChunk, ChecksumKind, Chunk, CommonHeader, DataChunk, HeaderShare, PacketSink, PacketWriter,
    StructPacket, StructPackets, UnreadPacket,
};

const HEADER: CommonHeader =
    CommonHeader { source_port: 5001, destination_port: 5002, tag: VerificationTag(0x0102_0304) };

/// The contents of a packet.
#[derive(Clone, Debug)]
struct Contents {
    limit: usize,
    before: Vec<Chunk>,
    auth: Option<AuthChunk>,
    after: Vec<Chunk>,
    data: Vec<DataChunk>,
    checksum: ChecksumKind,
}

fn contents() -> impl Strategy<Value = Contents> {
    (
        prop_oneof![0..200_usize, 200..4000_usize],
        vec(chunk(), 0..3),
        prop::option::of(auth()),
        vec(chunk(), 0..3),
        vec(data(), 0..4),
        prop_oneof![Just(ChecksumKind::Crc32c), Just(ChecksumKind::Zero)],
    )
        .prop_map(|(limit, before, auth, after, data, checksum)| Contents {
            limit,
            before,
            auth,
            after,
            data,
            checksum,
        })
}

/// A stand-in for an HMAC that depends on every covered byte.
fn sign(covered: &mut [u8]) {
    let length = usize::from(u16::from_be_bytes([covered[2], covered[3]]));
    let sum = covered.iter().fold(7_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte));
    covered[AuthChunk::HMAC_AT..length].fill(sum);
}

/// Writes a packet and returns the results of all calls to the writer.
fn write(sink: PacketSink<'_>, contents: &Contents) -> Vec<(bool, usize, usize, bool)> {
    let mut packet = PacketWriter::begin(sink, HEADER, contents.limit);
    let mut outcomes = Vec::new();
    let mut note = |done: bool, packet: &PacketWriter<'_>| {
        outcomes.push((done, packet.len(), packet.room(), packet.is_empty()));
    };
    for chunk in &contents.before {
        let done = packet.append(chunk);
        note(done, &packet);
    }
    if let Some(auth) = &contents.auth {
        packet.authenticate_from_here();
        let done = packet.append(auth);
        note(done, &packet);
        if !done {
            packet.discard();
            return outcomes;
        }
    }
    for chunk in &contents.after {
        let done = packet.append(chunk);
        note(done, &packet);
    }
    for data in &contents.data {
        let done = packet.data(&data.header(), &data.payload, 0..data.payload.len());
        note(done, &packet);
    }
    packet.authenticate(sign);
    outcomes.push((true, packet.finish(contents.checksum), 0, false));
    outcomes
}

proptest! {
    #[test]
    fn bytes_and_values_agree(contents in contents()) {
        let (mut buffer, mut packets) = (BytesMut::new(), StructPackets::default());
        let outcomes = write((&mut buffer).into(), &contents);
        prop_assert_eq!(write((&mut packets).into(), &contents), outcomes);
        prop_assert_eq!(packets.len(), buffer.len());
        let (bytes, values) = (buffer.freeze(), packets.split_to(usize::MAX));
        let encoded: Vec<Bytes> = values.iter().map(StructPacket::encode).collect();
        prop_assert_eq!(encoded.concat(), &bytes[..]);
        let Some(value) = values.first() else { return Ok(()) };
        prop_assert_eq!(value.len(), bytes.len());
        let wire = UnreadPacket::Wire(&bytes, 0..bytes.len());
        let read = UnreadPacket::Struct(value);
        prop_assert_eq!(read.header(), wire.header());
        prop_assert_eq!(read.first_type(), wire.first_type());
        for check in [ChecksumKind::Zero, ChecksumKind::Crc32c] {
            let mut share = HeaderShare::default();
            match (wire.clone().open(check, &mut share), read.clone().open(check, &mut share)) {
                (Ok((left, mut wire)), Ok((right, mut read))) => {
                    prop_assert_eq!(left, right);
                    loop {
                        prop_assert!(read.types().eq(wire.types()));
                        prop_assert_eq!(read.remaining(), wire.remaining());
                        let chunk = wire.next();
                        prop_assert_eq!(read.next(), chunk.clone());
                        if chunk.is_none() {
                            break;
                        }
                    }
                }
                (wire, read) => prop_assert_eq!(wire.err(), read.err()),
            }
        }
    }
}

#[test]
fn packets_as_values_are_split_at_their_ends() {
    let mut packets = StructPackets::default();
    for length in [4, 8, 0] {
        let mut packet = PacketWriter::begin(&mut packets, HEADER, 100);
        assert!(packet.append(&Chunk::Pad { length }));
        packet.finish(ChecksumKind::Crc32c);
    }
    assert_eq!(packets.len(), 20 + 24 + 16);
    let lengths =
        |taken: Vec<StructPacket>| taken.iter().map(StructPacket::len).collect::<Vec<_>>();
    assert_eq!(lengths(packets.split_to(44)), [20, 24]);
    assert_eq!(lengths(packets.split_to(0)), []);
    assert_eq!(lengths(packets.split_to(16)), [16]);
    assert_eq!(packets.len(), 0);
}
