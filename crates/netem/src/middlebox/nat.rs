//! Network address and port translation: one address on the outside for many on the inside.
//!
//! TCP and UDP, and therefore SCTP over UDP, get a port of the outside address, which is kept until
//! the mapping has been idle for a while. [`SctpTranslation`] decides about SCTP directly over IP:
//! its checksum covers the ports and is expensive to update, so boxes that support it at all do not
//! change its ports. Everything else is dropped.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;

use bytes::{Bytes, BytesMut};

use super::checksum::updated;
use super::flow::{FlowEndpoint, PacketFlow};
use super::{Middlebox, MiddleboxCounters, MiddleboxSide, OutgoingPackets};
use crate::packet::{Packet, protocol};
use crate::time::{EpochNanos, nanos};

/// The maximum number of peers remembered for one mapping; a further one makes the box forget the
/// others.
pub const MAX_PEERS: usize = 1024;

/// Which peers share a mapping, and whose packets it admits (RFC 4787 §4.1, §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndpointDependence {
    /// All peers.
    #[default]
    Independent,
    /// Each address and port on its own.
    AddressAndPort,
}

/// The treatment of protocol 132.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SctpTranslation {
    /// Drop it, as most home routers do.
    #[default]
    Drop,
    /// Translate the address but not the port, so that two hosts with the same port collide: the
    /// packets of the second are dropped. Addresses inside an INIT are not changed.
    AddressOnly,
}

/// The configuration of a NAT.
#[derive(Clone, Debug)]
pub struct NatConfig {
    /// Its address on the outside.
    pub address: IpAddr,
    /// The ports that it allocates. A host's own port is kept if it is free and in this range.
    pub ports: RangeInclusive<u16>,
    /// Which peers share a mapping.
    pub mapping: EndpointDependence,
    /// Whose packets a mapping admits: anyone's, or only those of peers that the host has sent to.
    pub filtering: EndpointDependence,
    /// The treatment of protocol 132.
    pub sctp: SctpTranslation,
    /// How long a UDP or SCTP mapping is kept without a packet from the inside (RFC 4787 §4.3
    /// requires at least 2 minutes; many boxes have less).
    pub idle: Duration,
    /// The same for TCP (RFC 5382 §5 requires 2 hours and 4 minutes).
    pub idle_tcp: Duration,
}

impl NatConfig {
    /// Creates the configuration recommended by the RFCs: endpoint-independent mapping, filtering
    /// by peer, 5 minutes for UDP, 2 hours and 4 minutes for TCP. It drops protocol 132.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self {
            address,
            ports: 1024..=65_535,
            mapping: EndpointDependence::Independent,
            filtering: EndpointDependence::AddressAndPort,
            sctp: SctpTranslation::Drop,
            idle: Duration::from_secs(300),
            idle_tcp: Duration::from_secs(7440),
        }
    }
}

/// A host's endpoint and, if mappings depend on it, the peer's.
type MappingKey = (u8, FlowEndpoint, Option<FlowEndpoint>);

#[derive(Clone, Debug)]
struct NatMapping {
    key: MappingKey,
    last: EpochNanos,
    /// The peers that the host has sent to; empty if all peers are admitted.
    peers: BTreeSet<FlowEndpoint>,
}

/// A NAT.
#[derive(Clone, Debug)]
pub struct Nat {
    config: NatConfig,
    /// The outside port of each key. Bounded by the number of ports.
    ports: BTreeMap<MappingKey, u16>,
    /// By protocol and port on the outside.
    mappings: BTreeMap<(u8, u16), NatMapping>,
    /// Where the search for a free port continues.
    next_port: u16,
    outgoing: OutgoingPackets,
}

impl Nat {
    /// Creates a NAT without mappings.
    #[must_use]
    pub fn new(config: NatConfig) -> Self {
        let next_port = *config.ports.start();
        let (ports, mappings) = (BTreeMap::new(), BTreeMap::new());
        Self { config, ports, mappings, next_port, outgoing: OutgoingPackets::default() }
    }

    /// Returns whether packets of this protocol are translated at all.
    fn translates(&self, protocol: u8) -> bool {
        match protocol {
            protocol::TCP | protocol::UDP => true,
            protocol::SCTP => self.config.sctp != SctpTranslation::Drop,
            _ => false,
        }
    }

    fn idle(&self, protocol: u8) -> EpochNanos {
        let is_tcp = protocol == protocol::TCP;
        nanos(if is_tcp { self.config.idle_tcp } else { self.config.idle })
    }

    /// Forgets the mapping if nothing has used it for too long.
    fn expire(&mut self, now: EpochNanos, protocol: u8, port: u16) {
        let idle = self.idle(protocol);
        let external = (protocol, port);
        let is_old = |mapping: &NatMapping| now.saturating_sub(mapping.last) > idle;
        if self.mappings.get(&external).is_some_and(is_old)
            && let Some(mapping) = self.mappings.remove(&external)
        {
            self.ports.remove(&mapping.key);
        }
    }

    fn translate_outwards(&mut self, now: EpochNanos, packet: &Packet) -> Option<Packet> {
        let flow = PacketFlow::from_packet(MiddleboxSide::Inside, packet);
        let depends = self.config.mapping == EndpointDependence::AddressAndPort;
        let key = (flow.protocol, flow.inside, depends.then_some(flow.outside));
        if let Some(port) = self.ports.get(&key).copied() {
            self.expire(now, flow.protocol, port);
        }
        let port = match self.ports.get(&key) {
            Some(port) => *port,
            None => self.open(now, key)?,
        };
        let mapping = self.mappings.get_mut(&(flow.protocol, port))?;
        mapping.last = now;
        if self.config.filtering == EndpointDependence::AddressAndPort {
            if mapping.peers.len() >= MAX_PEERS {
                mapping.peers.clear();
            }
            mapping.peers.insert(flow.outside);
        }
        let external = (self.config.address, port);
        translated(packet, MiddleboxSide::Inside, flow.inside, external)
    }

    /// Creates a mapping: with the host's own port if it is available, otherwise the next free one.
    fn open(&mut self, now: EpochNanos, key: MappingKey) -> Option<u16> {
        let (protocol, (_, host_port), _) = key;
        self.expire(now, protocol, host_port);
        let is_sctp = protocol == protocol::SCTP;
        let is_in_range = is_sctp || self.config.ports.contains(&host_port);
        let port = if is_in_range && !self.mappings.contains_key(&(protocol, host_port)) {
            host_port
        } else if is_sctp {
            return None;
        } else {
            self.free_port(now, protocol)?
        };
        let mapping = NatMapping { key, last: now, peers: BTreeSet::new() };
        self.mappings.insert((protocol, port), mapping);
        self.ports.insert(key, port);
        Some(port)
    }

    fn free_port(&mut self, now: EpochNanos, protocol: u8) -> Option<u16> {
        for _ in self.config.ports.clone() {
            let port = self.next_port;
            let is_last = port >= *self.config.ports.end();
            self.next_port = if is_last { *self.config.ports.start() } else { port + 1 };
            self.expire(now, protocol, port);
            if !self.mappings.contains_key(&(protocol, port)) {
                return Some(port);
            }
        }
        None
    }

    fn translate_inwards(&mut self, now: EpochNanos, packet: &Packet) -> Option<Packet> {
        let flow = PacketFlow::from_packet(MiddleboxSide::Outside, packet);
        if flow.inside.0 != self.config.address {
            return None;
        }
        let port = flow.inside.1;
        self.expire(now, flow.protocol, port);
        let mapping = self.mappings.get(&(flow.protocol, port))?;
        let filters = self.config.filtering == EndpointDependence::AddressAndPort;
        let (_, host, peer) = mapping.key;
        let is_unknown_peer = filters && !mapping.peers.contains(&flow.outside);
        if is_unknown_peer || peer.is_some_and(|peer| peer != flow.outside) {
            return None;
        }
        translated(packet, MiddleboxSide::Outside, flow.inside, host)
    }
}

/// The packet with its source (if it comes from the inside) or its destination replaced.
fn translated(
    packet: &Packet,
    from: MiddleboxSide,
    old: FlowEndpoint,
    new: FlowEndpoint,
) -> Option<Packet> {
    if old.0.is_ipv4() != new.0.is_ipv4() {
        return None;
    }
    let mut changed = packet.clone();
    let port = match from {
        MiddleboxSide::Inside => {
            changed.source = new.0;
            0
        }
        MiddleboxSide::Outside => {
            changed.destination = new.0;
            2
        }
    };
    let checksum = match packet.protocol {
        protocol::TCP => 16,
        protocol::UDP => 6,
        // SCTP: the checksum does not cover addresses, and the port stays.
        _ => return Some(changed),
    };
    let mut payload = BytesMut::from(&packet.payload[..]);
    payload.get_mut(port..port + 2)?.copy_from_slice(&new.1.to_be_bytes());
    let field = payload.get_mut(checksum..checksum + 2)?;
    let value = u16::from_be_bytes([field[0], field[1]]);
    // In UDP a zero means that there is no checksum (RFC 768).
    let is_udp = packet.protocol == protocol::UDP;
    if !(is_udp && value == 0) {
        let value = match updated(value, old, new) {
            0 if is_udp => u16::MAX,
            value => value,
        };
        field.copy_from_slice(&value.to_be_bytes());
    }
    changed.payload = Bytes::from(payload);
    Some(changed)
}

impl Middlebox for Nat {
    fn handle_packet(&mut self, now: Duration, from: MiddleboxSide, packet: Packet) {
        self.outgoing.counters.received += 1;
        let now = nanos(now);
        let translated = match from {
            _ if !self.translates(packet.protocol) => None,
            MiddleboxSide::Inside => self.translate_outwards(now, &packet),
            MiddleboxSide::Outside => self.translate_inwards(now, &packet),
        };
        match translated {
            Some(packet) => self.outgoing.pass(from, packet),
            None => self.outgoing.drop(&packet),
        }
    }

    fn poll(&mut self, _now: Duration) -> Option<(MiddleboxSide, Packet)> {
        self.outgoing.next()
    }

    fn counters(&self) -> MiddleboxCounters {
        self.outgoing.counters
    }

    fn entries(&self) -> usize {
        self.mappings.len()
    }
}
