//! A node of the world with an SCTP endpoint and the application on top of it.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas_emulator::middlebox::BoxedMiddlebox;
use eyas_netem::middlebox::MiddleboxNode;
use eyas_netem::node::{Node, NodeInput, NodeOutput};
use eyas_netem::packet::{Packet, PacketPayload as _, protocol};
use eyas_netem::router::Router;
use eyas_sctp::config::{ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::{Ecn, Fragmentation, Input, Output, Received, StructPacket, Transmit};

use super::application::{MessageSink, SaturatedSender};
use super::payload::SctpPayload;

/// The SCTP port of every receiver.
pub(super) const PORT: u16 = 7;

/// An interface of a host: one network, with one address on either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostInterface {
    /// The number in the world.
    pub(super) number: u32,
    /// This host's address.
    pub(super) local: IpAddr,
    /// The peer's address on the same path.
    pub(super) peer: IpAddr,
}

impl HostInterface {
    /// Returns the interface at the other end of the path.
    pub(super) const fn mirrored(&self) -> Self {
        Self { number: self.number, local: self.peer, peer: self.local }
    }
}

/// What a host does with its association.
#[derive(Debug, Default)]
pub(super) struct HostTask {
    /// When it opens one, and how; otherwise it waits for one.
    pub(super) opens: Option<(Duration, Box<ConnectOptions>)>,
    /// What it sends.
    pub(super) sender: Option<SaturatedSender>,
    /// What it receives.
    pub(super) sink: Option<MessageSink>,
}

/// A host with one endpoint and one association.
#[derive(Debug)]
pub(super) struct SimulatedHost {
    endpoint: Endpoint,
    interfaces: Vec<HostInterface>,
    role: HostTask,
    association: Option<AssociationId>,
    is_up: bool,
    /// Added addresses that have not been announced to the peer yet.
    unannounced: Vec<IpAddr>,
    outgoing: VecDeque<(u32, Packet<SctpPayload>)>,
}

impl SimulatedHost {
    pub(super) fn new(
        config: EndpointConfig,
        interfaces: Vec<HostInterface>,
        role: HostTask,
        seed: [u8; 32],
    ) -> Self {
        Self {
            endpoint: Endpoint::new(config, seed, Duration::ZERO),
            interfaces,
            role,
            association: None,
            is_up: false,
            unannounced: Vec::new(),
            outgoing: VecDeque::new(),
        }
    }

    /// Returns what was received, if this is a receiver.
    pub(super) const fn sink(&self) -> Option<&MessageSink> {
        self.role.sink.as_ref()
    }

    /// Starts counting, if this is a receiver.
    pub(super) fn begin_measuring(&mut self, now: Duration) {
        if let Some(sink) = &mut self.role.sink {
            sink.begin(now);
        }
    }

    /// Adds an interface to the host, and announces its address to the peer (RFC 5061) as soon as
    /// there is an association.
    pub(super) fn join(&mut self, now: Duration, interface: HostInterface) {
        self.interfaces.push(interface);
        self.unannounced.push(interface.local);
        if self.is_up {
            self.announce_addresses(now);
        }
    }

    fn announce_addresses(&mut self, now: Duration) {
        let Some(id) = self.association else { return };
        for address in self.unannounced.drain(..) {
            // A peer that does not accept addresses leaves the association as it is.
            let association = self.endpoint.association_mut(now, id);
            let _ = association.and_then(|mut association| association.add_address(address));
        }
    }

    fn open(&mut self, now: Duration) {
        if let Some((at, options)) = &self.role.opens
            && self.association.is_none()
            && now >= *at
        {
            self.association = self.endpoint.connect(now, options).ok();
        }
    }

    fn handle_packet(&mut self, now: Duration, packet: Packet<SctpPayload>) {
        if packet.protocol != protocol::SCTP || packet.is_empty() {
            return;
        }
        let header = packet.with_payload(());
        let segment_size = packet.payload.len();
        let input = match packet.payload {
            SctpPayload::Wire(contents) => {
                Input::Packets(received(&header, contents, segment_size))
            }
            SctpPayload::Struct(contents) => {
                Input::Struct(received(&header, Arc::unwrap_or_clone(contents), segment_size))
            }
        };
        self.endpoint.handle_input(now, input);
    }

    /// Runs the application after an event.
    fn run_application(&mut self, now: Duration) {
        let Some(id) = self.association.filter(|_| self.is_up) else { return };
        if let Some(sender) = &mut self.role.sender {
            sender.fill(now, &mut self.endpoint, id);
        }
        if let Some(sink) = &mut self.role.sink {
            while let Some(message) = self.endpoint.receive(now, id) {
                sink.receive(now, &message);
            }
        }
    }

    /// Sends messages that may follow the packets that have just left, and returns whether there were
    /// any.
    fn send_following(&mut self, now: Duration) -> bool {
        let Some(id) = self.association.filter(|_| self.is_up) else { return false };
        match &mut self.role.sender {
            Some(sender) if sender.refills_immediately() => {
                sender.fill(now, &mut self.endpoint, id)
            }
            _ => false,
        }
    }

    fn handle_event(&mut self, now: Duration, id: AssociationId, event: &Event) {
        match event {
            Event::Up { .. } => {
                self.association = Some(id);
                self.is_up = true;
                self.announce_addresses(now);
                self.run_application(now);
            }
            Event::Readable | Event::Writable => self.run_application(now),
            Event::Lost(_) | Event::Closed => self.is_up = false,
            _ => {}
        }
    }

    /// Packets are sent over the network of their destination.
    fn send<C>(&mut self, transmit: &Transmit<C>, packets: impl Iterator<Item = SctpPayload>) {
        let destination = transmit.remote.ip();
        // Behind a NAT the peer has another address of the same network.
        let is_reached =
            |interface: &&HostInterface| network(interface.peer) == network(destination);
        let interface_to = self.interfaces.iter().find(is_reached);
        let Some(interface) = interface_to.copied() else { return };
        let outgoing = packets.map(|payload| {
            let packet = Packet {
                source: interface.local,
                destination,
                protocol: protocol::SCTP,
                ecn: transmit.ecn.bits(),
                dont_fragment: transmit.fragmentation != Fragmentation::Allowed,
                payload,
            };
            (interface.number, packet)
        });
        self.outgoing.extend(outgoing);
    }

    fn send_bytes(&mut self, transmit: &Transmit) {
        let (size, length) = (transmit.segment_size.max(1), transmit.contents.len());
        let packets = (0..length).step_by(size).map(|from| {
            SctpPayload::Wire(transmit.contents.slice(from..(from + size).min(length)))
        });
        self.send(transmit, packets);
    }

    fn send_structs(&mut self, mut transmit: Transmit<Vec<StructPacket>>) {
        let packets = std::mem::take(&mut transmit.contents);
        let packets = packets.into_iter().map(|packet| SctpPayload::Struct(Arc::new(packet)));
        self.send(&transmit, packets);
    }
}

/// Returns the number of the path in an address.
const fn network(address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V4(address) => Some(address.octets()[1]),
        IpAddr::V6(_) => None,
    }
}

/// Converts a packet for the endpoint.
fn received<C>(header: &Packet<()>, contents: C, segment_size: usize) -> Received<C> {
    Received {
        local: Some(header.destination),
        remote: SocketAddr::new(header.source, 0),
        ecn: Ecn::from_bits(header.ecn),
        peer: None,
        contents,
        segment_size,
    }
}

impl Node<SctpPayload> for SimulatedHost {
    fn handle_input(&mut self, now: Duration, input: NodeInput<SctpPayload>) {
        match input {
            NodeInput::Start => {}
            NodeInput::Arrived { packet, .. } => self.handle_packet(now, packet),
            NodeInput::Timer => {
                self.open(now);
                self.endpoint.handle_input(now, Input::Tick);
            }
        }
        // A sender that skips streams was never refused, and is not notified of room. Receivers are
        // notified of data.
        if self.role.sender.is_some() {
            self.run_application(now);
        }
    }

    fn poll_output(&mut self, now: Duration) -> NodeOutput<SctpPayload> {
        loop {
            if let Some((interface, packet)) = self.outgoing.pop_front() {
                return NodeOutput::Transmit { interface, packet };
            }
            match self.endpoint.poll_output(now) {
                Output::Transmit(transmit) => self.send_bytes(&transmit),
                Output::TransmitStructs(transmit) => self.send_structs(transmit),
                Output::Event(id, event) => self.handle_event(now, id, &event),
                Output::Timeout(_) if self.send_following(now) => {}
                Output::Timeout(time) => {
                    let opens = self.role.opens.as_ref().filter(|_| self.association.is_none());
                    let keystroke = self.role.sender.as_ref().and_then(|it| it.next_keystroke(now));
                    let own = opens.map(|(at, _)| *at).into_iter().chain(keystroke);
                    return NodeOutput::Timeout(time.into_iter().chain(own).min());
                }
            }
        }
    }
}

/// A node of the world.
pub(super) enum SimulatedNode {
    /// A host.
    Host(Box<SimulatedHost>),
    /// A router.
    Router(Router<SctpPayload>),
    /// A middlebox.
    Middlebox(MiddleboxNode<BoxedMiddlebox>),
}

impl Node<SctpPayload> for SimulatedNode {
    fn handle_input(&mut self, now: Duration, input: NodeInput<SctpPayload>) {
        match self {
            Self::Host(host) => host.handle_input(now, input),
            Self::Router(router) => router.handle_input(now, input),
            Self::Middlebox(middlebox) => middlebox.handle_input(now, input),
        }
    }

    fn poll_output(&mut self, now: Duration) -> NodeOutput<SctpPayload> {
        match self {
            Self::Host(host) => host.poll_output(now),
            Self::Router(router) => router.poll_output(now),
            Self::Middlebox(middlebox) => middlebox.poll_output(now),
        }
    }
}
