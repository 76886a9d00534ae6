//! I-DATA negotiated or not (RFC 8260 §2.2.1): peers that number fragments differently are
//! recognised by the extensions that they do not offer.

use crate::associations::world::{A, B, PORT, World, init, ms, packet, socket};
use bytes::{Bytes, BytesMut};
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::identifier::VerificationTag;
use eyas_sctp::wire::{
    ChecksumKind, Chunk, ChunkType, CommonHeader, InitChunk, PacketParser, PacketWriter, Parameter,
    Parameters,
};

/// The chunk types that a packet with an INIT or INIT ACK lists, and its initiate tag.
fn listed(packet: &Bytes) -> (Vec<u8>, VerificationTag) {
    let (_, mut chunks) = PacketParser::parse(packet, ChecksumKind::Crc32c).expect("a packet");
    let Some(Chunk::Init(init) | Chunk::InitAck(init)) = chunks.next() else {
        panic!("neither INIT nor INIT ACK");
    };
    let types = init.parameters.iter().find_map(|parameter| match parameter {
        Parameter::SupportedExtensions(types) => Some(types.to_vec()),
        _ => None,
    });
    (types.unwrap_or_default(), init.initiate_tag)
}

fn offers_interleaving(packet: &Bytes) -> bool {
    listed(packet).0.contains(&ChunkType::I_DATA.0)
}

/// The parameters that Linux sends, with or without I-DATA.
fn like_linux(interleaving: bool) -> Vec<Parameter> {
    let mut all = vec![Parameter::ForwardTsnSupported];
    if interleaving {
        all.push(Parameter::SupportedExtensions(vec![ChunkType::I_DATA.0].into()));
    }
    all
}

/// `B` replies to the captured INIT with or without I-DATA.
fn answer(world: &mut World, tag: u32, interleaving: bool) {
    let (_, to) = listed(world.tap.kept.as_ref().expect("the INIT"));
    let mut parameters = vec![Parameter::StateCookie(Bytes::from_static(b"cookie"))];
    parameters.extend(like_linux(interleaving));
    let ack = InitChunk { parameters: parameters.into_iter().collect(), ..init(tag) };
    let local_port = world.hosts[A].status(world.hosts[A].only()).local_port;
    let header = CommonHeader { source_port: PORT, destination_port: local_port, tag: to };
    let mut buffer = BytesMut::new();
    let mut packet = PacketWriter::begin(&mut buffer, header, 1000);
    assert!(packet.append(&Chunk::InitAck(ack)));
    packet.finish(ChecksumKind::Crc32c);
    world.inject(A, socket(B, 0), buffer.freeze());
    world.drain();
}

//= rfc8260 §2.3.1
//# a peer with I-DATA and without I-FORWARD-TSN gets DATA, at the cost of a round trip
#[test]
fn interleaving_is_withdrawn_if_the_peer_lacks_i_forward_tsn() {
    let mut world = World::new();
    (world.network.cut, world.tap.keep) = (vec![0], Some("INIT"));
    let id = world.connect();
    world.drain();
    assert!(offers_interleaving(world.tap.kept.as_ref().unwrap()));
    answer(&mut world, 70, true);
    assert_eq!(world.tap.ladder, ["A -> B  INIT (lost)", "A -> B  INIT (lost)"]);
    assert!(!offers_interleaving(world.tap.kept.as_ref().unwrap()));
    // The reply to the first INIT arrived twice.
    answer(&mut world, 70, true);
    assert_eq!(world.hosts[A].state(), AssociationState::CookieWait);
    answer(&mut world, 71, false);
    assert_eq!(world.tap.ladder[2..], ["A -> B  COOKIE-ECHO (lost)"]);
    assert!(!world.hosts[A].status(id).agreed.interleaving);
    assert!(world.hosts[A].status(id).agreed.partial_reliability);
}

#[test]
fn a_peer_that_always_lists_i_data_is_finally_accepted() {
    let mut world = World::new();
    (world.network.cut, world.tap.keep) = (vec![0], Some("INIT"));
    let id = world.connect();
    world.drain();
    answer(&mut world, 70, true);
    answer(&mut world, 71, true);
    assert_eq!(world.hosts[A].state(), AssociationState::CookieWait);
    world.run_for(ms(1500));
    answer(&mut world, 72, true);
    assert_eq!(world.hosts[A].state(), AssociationState::CookieEchoed);
    assert!(!world.hosts[A].status(id).agreed.interleaving);
}

#[test]
fn an_init_ack_lists_i_data_only_for_peers_with_i_forward_tsn() {
    let both = vec![ChunkType::I_DATA.0, ChunkType::I_FORWARD_TSN.0];
    let whole = vec![Parameter::ForwardTsnSupported, Parameter::SupportedExtensions(both.into())];
    let unskipped = vec![Parameter::SupportedExtensions(vec![ChunkType::I_DATA.0].into())];
    for (parameters, expected) in
        [(like_linux(true), false), (like_linux(false), false), (whole, true), (unskipped, true)]
    {
        let mut world = World::new();
        world.tap.keep = Some("INIT-ACK");
        let parameters: Parameters = parameters.into_iter().collect();
        let init = InitChunk { parameters, ..init(77) };
        world.inject(B, socket(A, 0), packet(0, &[Chunk::Init(init)]));
        world.run_for(ms(1));
        let ack = world.tap.kept.as_ref().expect("the INIT ACK");
        assert_eq!(offers_interleaving(ack), expected);
    }
}
