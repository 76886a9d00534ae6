//! Two endpoints, and an attacker between them.

use super::*;
use crate::identifier::VerificationTag;
use crate::wire::{
    AuthChunk, ChecksumKind, Chunk, ChunkType, CommonHeader, PACKET_HEADER, PacketParser,
    PacketWriter, Parameter, Parameters,
};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

const HEADER: CommonHeader =
    CommonHeader { source_port: 5001, destination_port: 5002, tag: VerificationTag(7) };
const CHUNKS: [ChunkType; 2] = [ChunkType::ASCONF, ChunkType::ASCONF_ACK];

fn offer(byte: u8) -> AuthOffer {
    AuthOffer::new([byte; RANDOM_LEN], &CHUNKS)
}

fn keys(secret: &'static [u8]) -> SharedKeys {
    let mut keys = SharedKeys::default();
    keys.set(7, Bytes::from_static(secret)).expect("there is room");
    keys.activate(7).expect("it was added");
    keys
}

fn pair(
    secret: &'static [u8],
    other: &'static [u8],
) -> (AssociationAuthentication, AssociationAuthentication) {
    let a = AssociationAuthentication::new(offer(1), &offer(2), keys(secret))
        .expect("SHA-256 is known");
    let b =
        AssociationAuthentication::new(offer(2), &offer(1), keys(other)).expect("SHA-256 is known");
    (a, b)
}

/// A COOKIE ACK that is not covered, AUTH, and a SHUTDOWN ACK that is covered.
fn signed(by: &AssociationAuthentication) -> Bytes {
    let mut buffer = BytesMut::new();
    let mut packet = PacketWriter::begin(&mut buffer, HEADER, 1000);
    assert!(packet.append(&Chunk::CookieAck));
    packet.authenticate_from_here();
    assert!(packet.append(&by.chunk()));
    assert!(packet.append(&Chunk::ShutdownAck));
    packet.authenticate(|covered| by.sign(covered));
    packet.finish(ChecksumKind::Crc32c);
    buffer.freeze()
}

fn auth_of(packet: &Bytes) -> Option<AuthChunk> {
    let (_, mut chunks) = PacketParser::parse(packet, ChecksumKind::Zero).ok()?;
    chunks.find_map(|chunk| match chunk {
        Chunk::Auth(auth) => Some(auth),
        _ => None,
    })
}

fn verify(by: &AssociationAuthentication, packet: &Bytes) -> AuthVerification {
    by.verify(&auth_of(packet).expect("there is an AUTH chunk"))
}

#[test]
fn each_side_verifies_the_other() {
    let (a, b) = pair(b"secret", b"secret");
    assert_eq!(verify(&b, &signed(&a)), AuthVerification::Authentic);
    assert_eq!(verify(&a, &signed(&b)), AuthVerification::Authentic);
    assert!(a.expects(ChunkType::ASCONF) && a.wants(ChunkType::ASCONF_ACK));
    assert!(!a.expects(ChunkType::DATA) && !a.wants(ChunkType::AUTH));
}

#[test]
fn a_different_key_is_refused() {
    let (a, b) = pair(b"secret", b"Secret");
    assert_eq!(verify(&b, &signed(&a)), AuthVerification::Forged);
    let (_, without_key) = pair(b"secret", b"secret");
    let mut without_key = without_key;
    without_key.activate_key(0).expect("the empty key");
    without_key.remove_key(7).expect("no longer active");
    assert_eq!(verify(&without_key, &signed(&a)), AuthVerification::UnknownKey);
}

#[test]
fn without_a_shared_key_the_random_bytes_are_the_key() {
    let new = |ours, theirs| {
        AssociationAuthentication::new(offer(ours), &offer(theirs), SharedKeys::default())
            .expect("known")
    };
    assert_eq!(verify(&new(2, 1), &signed(&new(1, 2))), AuthVerification::Authentic);
    assert_eq!(verify(&new(2, 3), &signed(&new(1, 2))), AuthVerification::Forged);
}

#[test]
fn the_peer_chooses_the_algorithm() {
    let sha1_only: Parameters = [
        Parameter::Random(Bytes::from_static(&[3; 32])),
        Parameter::RequestedHmacs(Bytes::from_static(&[0, 1])),
    ]
    .into_iter()
    .collect();
    let old = AuthOffer::from_parameters(&sha1_only).expect("SHA-1 is known");
    let new_side =
        AssociationAuthentication::new(offer(1), &old, keys(b"k")).expect("SHA-1 is known");
    let old_side =
        AssociationAuthentication::new(old, &offer(1), keys(b"k")).expect("SHA-256 is known");
    assert_eq!((new_side.chunk().hmac_id, new_side.chunk_len()), (1, 28));
    assert_eq!(verify(&old_side, &signed(&new_side)), AuthVerification::Authentic);
    assert_eq!(old_side.chunk().hmac_id, 3);
    let (sha256, _) = pair(b"k", b"k");
    assert_eq!(verify(&old_side, &signed(&sha256)), AuthVerification::UnsupportedHmac);
}

#[test]
fn an_hmac_of_another_length_is_forged() {
    let (a, b) = pair(b"k", b"k");
    let mut auth = auth_of(&signed(&a)).expect("there is one");
    auth.hmac = auth.hmac.slice(1..);
    assert_eq!(b.verify(&auth), AuthVerification::Forged);
    let short = AuthChunk { covered: Bytes::from_static(&[15, 0, 0, 8]), ..auth };
    assert_eq!(b.verify(&short), AuthVerification::Forged);
}

proptest! {
    #[test]
    fn every_bit_that_is_covered_counts(at: prop::sample::Index, bit in 0_u32..8) {
        let (a, b) = pair(b"secret", b"secret");
        let packet = signed(&a);
        let from = PACKET_HEADER + 4;
        let at = from + at.index(packet.len() - from);
        let mut changed = packet.to_vec();
        changed[at] ^= 1 << bit;
        changed[8..12].fill(0);
        let changed = Bytes::from(changed);
        let verdict = auth_of(&changed).map(|auth| b.verify(&auth));
        prop_assert_ne!(verdict, Some(AuthVerification::Authentic));
    }

    #[test]
    fn flags_and_the_checksum_are_not_covered(flags: u8) {
        let (a, b) = pair(b"secret", b"secret");
        let mut changed = signed(&a).to_vec();
        changed[PACKET_HEADER + 1] = flags;
        changed[8..12].fill(0);
        prop_assert_eq!(verify(&b, &changed.into()), AuthVerification::Authentic);
    }
}
