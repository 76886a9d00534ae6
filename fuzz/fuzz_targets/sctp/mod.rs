//! Shared code of the targets for SCTP associations: a host in virtual time.

use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{AssociationConfig, EndpointConfig};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::{Ecn, Input, Output, Received, Transmit, Unreachable};
use eyas_sctp::message::Message;
use std::net::{IpAddr, SocketAddr};

/// The SCTP port of both sides.
pub const PORT: u16 = 7;

/// The maximum outputs for one input; more are an endless loop.
const MAX_OUTPUTS: usize = 20_000;

/// How much of a packet an ICMP message quotes.
const QUOTED: usize = 28;

/// The first two octets, and the third on the first network.
const NETWORK: [u8; 3] = [192, 0, 2];

/// Returns the address of a side on a network, with the UDP encapsulation port.
pub fn socket(side: usize, network: u8) -> SocketAddr {
    let host = if side == 0 { 1 } else { 2 };
    SocketAddr::from(([NETWORK[0], NETWORK[1], NETWORK[2] + network, host], 9899))
}

/// Returns the network of an address.
fn network_of(address: SocketAddr) -> u8 {
    let IpAddr::V4(address) = address.ip() else { return 0 };
    address.octets()[2].saturating_sub(NETWORK[2])
}

/// Returns a configuration with buffers small enough to be filled.
pub fn association(bits: u8) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.send_buffer = 1 << 16;
    config.receive_buffer = 1 << 15;
    config.outbound_streams = 20;
    config.max_inbound_streams = 30;
    config.extensions.interleaving = bits & 1 != 0;
    config.extensions.partial_reliability = bits & 2 != 0;
    config.extensions.nr_sack = bits & 4 != 0;
    config.extensions.ecn = bits & 8 != 0;
    config.path_mtu_discovery = bits & 16 != 0;
    config.nagle = bits & 32 != 0;
    config.congestion_control = match bits >> 6 {
        0 => eyas_sctp::config::CongestionControlKind::NewReno,
        1 => eyas_sctp::config::CongestionControlKind::Bbr,
        _ => eyas_sctp::config::CongestionControlKind::Cubic,
    }
    .into();
    if bits >> 6 == 2 {
        config.loss_detection = eyas_sctp::config::LossDetection::Classic;
    }
    config
}

/// An endpoint and its outputs.
pub struct Host {
    pub endpoint: Endpoint,
    pub packets: Vec<Transmit>,
    pub events: Vec<(AssociationId, Event)>,
    pub timeout: Option<Duration>,
}

impl Host {
    /// Creates a host that announces these addresses.
    pub fn new(association: AssociationConfig, addresses: Vec<IpAddr>, seed: u8) -> Self {
        let mut config = EndpointConfig::default();
        config.listen_port = Some(PORT);
        config.association = association;
        config.addresses = addresses;
        Self {
            endpoint: Endpoint::new(config, [seed; 32], Duration::ZERO),
            packets: Vec::new(),
            events: Vec::new(),
            timeout: None,
        }
    }

    /// Handles one received packet.
    pub fn handle_packet(&mut self, now: Duration, remote: SocketAddr, contents: Bytes) {
        let segment_size = contents.len().max(1);
        let ecn = Ecn::NotCapable;
        let received = Received { local: None, remote, ecn, contents, segment_size, peer: None };
        self.endpoint.handle_input(now, Input::Packets(received));
    }

    /// Reports by ICMP that a packet to `remote` did not arrive; the packet is quoted as in ICMP.
    pub fn report_unreachable(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        kind: u8,
        quoted: Option<Bytes>,
    ) {
        let reason = match kind % 4 {
            0 => Unreachable::Protocol,
            1 => Unreachable::Route,
            2 => Unreachable::Local,
            _ => Unreachable::TooBig(u16::from(kind) * 8),
        };
        let quoted = quoted.map(|packet| packet.slice(..packet.len().min(QUOTED)));
        self.endpoint.handle_input(now, Input::Unreachable { remote, reason, quoted });
    }

    /// Collects all outputs.
    pub fn drain(&mut self, now: Duration) {
        for _ in 0..MAX_OUTPUTS {
            match self.endpoint.poll_output(now) {
                Output::Transmit(transmit) => {
                    assert!(transmit.segment_size > 0 && !transmit.contents.is_empty());
                    self.packets.push(transmit);
                }
                Output::Event(id, event) => self.events.push((id, event)),
                Output::Timeout(at) => {
                    assert!(at.is_none_or(|at| at > now), "a timeout in the past: {at:?} {now:?}");
                    self.timeout = at;
                    return;
                }
                _ => {}
            }
        }
        panic!("too many outputs");
    }

    /// Returns the packets to send one by one, each with its network.
    pub fn take_packets(&mut self) -> Vec<(u8, Bytes)> {
        let mut packets = Vec::new();
        for transmit in self.packets.drain(..) {
            let (size, network) = (transmit.segment_size, network_of(transmit.remote));
            for start in (0..transmit.contents.len()).step_by(size) {
                let end = transmit.contents.len().min(start + size);
                packets.push((network, transmit.contents.slice(start..end)));
            }
        }
        packets
    }

    /// Returns all messages that can be received.
    pub fn receive(&mut self, now: Duration) -> Vec<Message> {
        let mut messages = Vec::new();
        for id in self.endpoint.associations() {
            messages.extend(std::iter::from_fn(|| self.endpoint.receive(now, id)));
        }
        messages
    }
}
