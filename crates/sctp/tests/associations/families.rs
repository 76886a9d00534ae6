//! The address families that both sides list (RFC 9260 §3.3.2.1, §5.1.2).

use crate::associations::world::{
    A, B, World, address, init, listening, ms, multihomed, packet, socket,
};
use bytes::Bytes;
use eyas_sctp::wire::parameter::SupportedAddressTypes;
use eyas_sctp::wire::{ChecksumKind, Chunk, InitChunk, PacketParser, Parameter, Parameters};
use std::net::IpAddr;

fn parameters_of(packet: &Bytes) -> Vec<Parameter> {
    let (_, chunks) = PacketParser::parse(packet, ChecksumKind::Crc32c).expect("a packet");
    let parameters = |chunk| match chunk {
        Chunk::Init(init) | Chunk::InitAck(init) => Some(init.parameters),
        _ => None,
    };
    chunks
        .filter_map(parameters)
        .flat_map(|all: Parameters| all.iter().collect::<Vec<_>>())
        .collect()
}

//= rfc9260 §3.3.2.1.5
//# INIT ACK lists only address types that the peer supports
#[test]
fn an_init_ack_lists_usable_addresses() {
    let six: IpAddr = "2001:db8::2".parse().unwrap();
    for (types, expected) in [
        (None, vec![address(B, 0), address(B, 1), six]),
        (Some((true, true)), vec![address(B, 0), address(B, 1), six]),
        (Some((true, false)), vec![address(B, 0), address(B, 1)]),
    ] {
        let mut config = multihomed(B, 2);
        config.addresses.push(six);
        let mut world = World::with(listening(), config);
        let named = types.map(|(ipv4, ipv6)| SupportedAddressTypes { ipv4, ipv6 });
        world.tap.keep = Some("INIT-ACK");
        let parameters = named.map(Parameter::SupportedAddressTypes).into_iter().collect();
        let init = InitChunk { parameters, ..init(77) };
        world.inject(B, socket(A, 0), packet(0, &[Chunk::Init(init)]));
        world.run_for(ms(1));
        let all = parameters_of(world.tap.kept.as_ref().expect("the INIT ACK"));
        let listed: Vec<IpAddr> = all.iter().filter_map(Parameter::address).collect();
        assert_eq!(listed, expected, "{types:?}");
    }
}

#[test]
fn addresses_of_an_unused_family_are_ignored() {
    let six: IpAddr = "2001:db8::2".parse().unwrap();
    let mut config = multihomed(B, 2);
    config.addresses.push(six);
    let mut world = World::with(listening(), config);
    let (a, _) = world.connected();
    let status = world.hosts[A].status(a);
    let paths: Vec<IpAddr> = status.paths.iter().map(|path| path.remote.ip()).collect();
    assert_eq!(paths, [address(B, 0), address(B, 1)]);
    assert_eq!(world.hosts[A].endpoint.counters().addresses_ignored, 1);
}
