//! Host `A` sends as much as it can to host `B`, over one link for each network that joins them.
//!
//! Each message contains the time at which it was queued and its number within its stream.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use eyas_netem::link::LinkConfig;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::{Endpoint, Status};
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::io::Ecn;
use eyas_sctp::message::SendInfo;

use crate::network::{
    self, A, B, Datagram, Network, OutgoingPacket, PORT, Tap, address, address_v6,
};

/// Two hosts and the network between them.
pub(crate) type World = network::World<Host, Arrivals>;

/// The behaviour of the sending user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// Queues a message on each stream in turn as long as they are accepted.
    InTurn,
    /// The same, but skips streams that have their share of the send buffer queued.
    ByQueueInfo,
    /// Has nothing more to send.
    Silent,
}

/// The configuration of an association and its traffic.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    pub(crate) config: AssociationConfig,
    pub(crate) user: User,
    pub(crate) streams: usize,
    /// The bytes of a message.
    pub(crate) message: usize,
    /// The UDP encapsulation port; 0 means directly over IP.
    pub(crate) udp: u16,
    pub(crate) ipv6: bool,
    /// The number of networks on which hosts have addresses, and of those that the receiver
    /// announces.
    pub(crate) networks: u8,
    /// See [`Self::networks`].
    pub(crate) announced: u8,
    /// Whether the receiver sends as much.
    pub(crate) both_ways: bool,
}

impl Traffic {
    /// Messages that take several packets, on one stream.
    pub(crate) fn new(config: &AssociationConfig, networks: usize) -> Self {
        let networks = networks as u8;
        Self {
            config: config.clone(),
            user: User::InTurn,
            streams: 1,
            message: 10_000,
            udp: network::UDP,
            ipv6: false,
            networks,
            announced: networks,
            both_ways: false,
        }
    }

    pub(crate) fn address(&self, host: usize, network: u8) -> SocketAddr {
        let address = if self.ipv6 { address_v6 } else { address };
        SocketAddr::new(address(host, network), self.udp)
    }

    /// The sender, which connects over the first network, and the receiver.
    pub(crate) fn hosts(self, seed: u8) -> [Host; 2] {
        let endpoint = |host: usize| {
            let mut config = EndpointConfig::default();
            config.listen_port = Some(PORT);
            config.association = self.config.clone();
            let networks = if host == A { self.networks } else { self.announced };
            config.addresses = (0..networks).map(|on| self.address(host, on).ip()).collect();
            Endpoint::new(config, [seed.wrapping_add(host as u8); 32], Duration::ZERO)
        };
        let mut endpoints = [endpoint(A), endpoint(B)];
        let mut options = ConnectOptions::new(self.address(B, 0), PORT);
        options.association = self.config.clone();
        if self.udp == 0 {
            options.remotes = (0..self.announced).map(|network| self.address(B, network)).collect();
        }
        let id = endpoints[A].connect(Duration::ZERO, &options).expect("the options are good");
        let [sender, receiver] = endpoints;
        [Host::new(sender, Some(id), self.clone()), Host::new(receiver, None, self)]
    }
}

/// What arrived on one stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) messages: u64,
    delays: Duration,
}

impl Tally {
    /// The mean time from queueing a message to its delivery, in milliseconds.
    pub(crate) fn mean_delay(&self) -> f64 {
        self.delays.as_secs_f64() * 1000.0 / self.messages.max(1) as f64
    }
}

/// The sender or the receiver.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) user: User,
    /// The events, with their times.
    pub(crate) events: Vec<(Duration, Event)>,
    /// Messages queued so far, by stream.
    pub(crate) queued: Vec<u64>,
    /// Messages delivered so far, by stream.
    pub(crate) delivered: Vec<u64>,
    /// Messages delivered since this was last cleared, by stream.
    pub(crate) tallies: Vec<Tally>,
    /// The bytes of user data received, with their times, in order of arrival.
    pub(crate) deliveries: Vec<(Duration, usize)>,
    traffic: Traffic,
    /// The association on which it sends.
    association: Option<AssociationId>,
    turn: usize,
    /// The received bytes of the current message of each stream.
    parts: Vec<BytesMut>,
}

impl Host {
    fn new(endpoint: Endpoint, association: Option<AssociationId>, traffic: Traffic) -> Self {
        let streams = traffic.streams;
        Self {
            endpoint,
            user: traffic.user,
            events: Vec::new(),
            queued: vec![0; streams],
            delivered: vec![0; streams],
            tallies: vec![Tally::default(); streams],
            deliveries: Vec::new(),
            traffic,
            association,
            turn: 0,
            parts: vec![BytesMut::new(); streams],
        }
    }

    /// The bytes of user data received in an interval.
    pub(crate) fn delivered(&self, from: Duration, to: Duration) -> usize {
        let within = |(at, _): &&(Duration, usize)| *at >= from && *at < to;
        self.deliveries.iter().filter(within).map(|(_, bytes)| bytes).sum()
    }

    /// The user sends.
    fn send_messages(&mut self, now: Duration, id: AssociationId) {
        let Traffic { streams, message, ref config, .. } = self.traffic;
        let mut skipped = 0;
        while self.user != User::Silent && skipped < streams {
            let stream = StreamId(self.turn as u16);
            let queued = || self.endpoint.stream_queue(id, stream).map_or(0, |it| it.total());
            if self.user == User::ByQueueInfo && queued() >= config.send_buffer / streams {
                self.turn = (self.turn + 1) % streams;
                skipped += 1;
                continue;
            }
            let mut data = BytesMut::with_capacity(message);
            data.put_u64(now.as_nanos() as u64);
            data.put_u64(self.queued[self.turn]);
            data.resize(message, 0x5a);
            let info = SendInfo { stream, ..SendInfo::default() };
            if self.endpoint.send(now, id, &info, data.freeze()).is_err() {
                break;
            }
            self.queued[self.turn] += 1;
            self.turn = (self.turn + 1) % streams;
            skipped = 0;
        }
    }

    /// The user receives: each message once, in the order of its stream.
    fn read(&mut self, now: Duration) {
        for id in self.endpoint.associations() {
            while let Some(message) = self.endpoint.receive(now, id) {
                self.deliveries.push((now, message.len()));
                let (stream, ends) = (usize::from(message.stream.0), message.ends);
                let mut bytes = message.into_bytes();
                let part = &mut self.parts[stream];
                if !ends || !part.is_empty() {
                    part.extend_from_slice(&bytes);
                    if !ends {
                        continue;
                    }
                    bytes = std::mem::take(part).freeze();
                }
                self.count(now, stream, &bytes);
            }
        }
    }

    fn count(&mut self, now: Duration, stream: usize, message: &Bytes) {
        assert_eq!(message.len(), self.traffic.message);
        let number = |at: usize| message[at..at + 8].try_into().map(u64::from_be_bytes);
        let (sent, count) = (number(0).expect("8 bytes"), number(8).expect("8 bytes"));
        assert_eq!(count, self.delivered[stream], "stream {stream}");
        self.delivered[stream] += 1;
        self.tallies[stream].messages += 1;
        self.tallies[stream].delays += now - Duration::from_nanos(sent);
    }
}

impl network::Host for Host {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn port(&self) -> u16 {
        self.traffic.udp
    }

    fn act(&mut self, now: Duration) {
        if self.association.is_none() || self.traffic.both_ways {
            self.read(now);
        }
        let accepted = || self.endpoint.associations().first().copied();
        let sends = self.association.or_else(|| accepted().filter(|_| self.traffic.both_ways));
        if let Some(id) = sends {
            self.send_messages(now, id);
        }
    }

    fn on_event(&mut self, now: Duration, _id: AssociationId, event: Event) {
        if self.association.is_some() {
            self.events.push((now, event));
        }
    }
}

/// Records arrivals, and models routers that drop ECN-capable packets.
pub(crate) struct Arrivals {
    /// For each network, the times at which packets with data arrived at the receiver.
    pub(crate) data: Vec<Vec<Duration>>,
    /// For each network, the times at which the sender sent heartbeats.
    pub(crate) heartbeats: Vec<Vec<Duration>>,
    /// Whether ECN-capable packets are dropped.
    pub(crate) drops_markable: bool,
    /// A host whose packets are all lost.
    pub(crate) unheard: Option<usize>,
}

impl Arrivals {
    pub(crate) fn on(networks: usize) -> Self {
        let none = vec![Vec::new(); networks];
        Self { data: none.clone(), heartbeats: none, drops_markable: false, unheard: None }
    }
}

impl Tap for Arrivals {
    fn on_sent(&mut self, packet: &mut OutgoingPacket) -> bool {
        let OutgoingPacket { now, from, network: Some(network), datagram } = packet else {
            return true;
        };
        if *from == A && datagram.contents.get(12) == Some(&4) {
            self.heartbeats[usize::from(*network)].push(*now);
        }
        self.unheard != Some(*from) && (!self.drops_markable || datagram.ecn == Ecn::NotCapable)
    }

    fn on_arrival(&mut self, now: Duration, to: usize, packet: &Datagram) {
        // DATA or I-DATA.
        if to == B && matches!(packet.contents.get(12), Some(0 | 64)) {
            self.data[usize::from(packet.network)].push(now);
        }
    }
}

impl World {
    /// Connects over the first network; the hosts announce all addresses to each other.
    pub(crate) fn connected(config: &AssociationConfig, links: &[LinkConfig]) -> Self {
        Self::with(Traffic::new(config, links.len()), links, 1)
    }

    /// The same with custom traffic.
    pub(crate) fn with(traffic: Traffic, links: &[LinkConfig], seed: u8) -> Self {
        let mut network = Network::of_two(links);
        network.seed(seed.into());
        Self::between(traffic.hosts(seed).into(), network, Arrivals::on(links.len()))
    }

    /// The association at the sender.
    pub(crate) fn id(&self) -> AssociationId {
        self.hosts[A].association.expect("connected")
    }

    /// The status of the sender's association.
    pub(crate) fn status(&self) -> Status {
        self.hosts[A].endpoint.status(self.id()).expect("it is alive")
    }

    /// The bytes of user data delivered in an interval.
    pub(crate) fn delivered(&self, from: Duration, to: Duration) -> usize {
        self.hosts[B].delivered(from, to)
    }
}
