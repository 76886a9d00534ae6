//! Two endpoints without a network between them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::io::{Ecn, Input, Output, Received};
use eyas_sctp::serial::Tsn;
use eyas_sctp::wire::{ChecksumKind, Chunk, CommonHeader, PacketParser};

/// The SCTP port that `b` listens on.
pub(crate) const PORT: u16 = 7;

const NOW: Duration = Duration::from_secs(1);

/// A distinct address for each number.
pub(crate) fn socket(number: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from(0x0b00_0000 | (number & 0x00ff_ffff)), 9899))
}

/// `a` connects to `b`; tests send packets to `b`.
pub(crate) struct Pair {
    pub(crate) a: Endpoint,
    pub(crate) b: Endpoint,
    config: AssociationConfig,
    /// The header of `a`'s last packet with a COOKIE ECHO, and the initial TSN of `a`.
    peer: Option<(CommonHeader, Tsn)>,
    next_port: u16,
}

impl Pair {
    pub(crate) fn new(set: impl Fn(&mut AssociationConfig)) -> Self {
        let mut config = EndpointConfig::default();
        config.listen_port = Some(PORT);
        config.association.path_mtu_discovery = false;
        set(&mut config.association);
        let association = config.association.clone();
        let endpoint = |seed| Endpoint::new(config.clone(), [seed; 32], NOW);
        Self { a: endpoint(1), b: endpoint(2), config: association, peer: None, next_port: 1000 }
    }

    /// Opens one more association, which is idle.
    pub(crate) fn associate(&mut self) {
        let mut options = ConnectOptions::new(socket(1), PORT);
        options.association = self.config.clone();
        options.local_port = self.next_port;
        self.next_port += 1;
        self.a.connect(NOW, &options).expect("the options are good");
        let before = self.b.associations().len();
        for _ in 0..3 {
            for packet in outputs(&mut self.a) {
                self.track_handshake(&packet);
                handle_input(&mut self.b, socket(0), packet);
            }
            for packet in outputs(&mut self.b) {
                handle_input(&mut self.a, socket(1), packet);
            }
        }
        assert_eq!(self.b.associations().len(), before + 1);
    }

    fn track_handshake(&mut self, packet: &Bytes) {
        let (header, chunks) = PacketParser::parse(packet, ChecksumKind::Crc32c).expect("a packet");
        let first = chunks.into_iter().find_map(|chunk| match chunk {
            Chunk::Init(init) => Some(init.initial_tsn),
            _ => None,
        });
        let first = first.or(self.peer.map(|(_, first)| first));
        self.peer = first.map(|first| (header, first));
    }

    /// The header for packets to `b` in the name of `a`, and the first TSN to use.
    pub(crate) fn peer(&self) -> (CommonHeader, Tsn) {
        self.peer.expect("there is an association")
    }

    /// Delivers a packet to `b` and drops its replies.
    pub(crate) fn deliver_to_b(&mut self, from: SocketAddr, packet: Bytes) {
        handle_input(&mut self.b, from, packet);
        outputs(&mut self.b);
    }

    /// Reads all messages at `b`, and drops its packets.
    pub(crate) fn read_all(&mut self) {
        for id in self.b.associations() {
            while self.b.receive(NOW, id).is_some() {}
        }
        outputs(&mut self.b);
    }
}

fn handle_input(endpoint: &mut Endpoint, remote: SocketAddr, contents: Bytes) {
    let segment_size = contents.len();
    let received =
        Received { local: None, remote, ecn: Ecn::NotCapable, contents, segment_size, peer: None };
    endpoint.handle_input(NOW, Input::Packets(received));
}

fn outputs(endpoint: &mut Endpoint) -> Vec<Bytes> {
    let mut packets = Vec::new();
    loop {
        match endpoint.poll_output(NOW) {
            Output::Transmit(transmit) => packets.push(transmit.contents),
            Output::Timeout(_) => return packets,
            _ => {}
        }
    }
}
