//! Redirects the connections of programs to listeners: a NAT (RFC 3022) for one host.
//!
//! ```text
//!  program            device              Translator              device          listener
//!  HOST:40000 ──SYN──▶  ══▶  to 192.0.2.1:443 waits
//!                            Open ───────▶ a race is run
//!                            ◀──── grant
//!                            PEER:1024 ──▶ HOST:listener  ══════════════▶  accepts PEER:1024
//!  HOST:40000 ◀───────  ◀══  192.0.2.1:443 ◀── PEER:1024  ◀══════════════  SYN ACK
//! ```
//!
//! The kernel implements TCP at both ends. A program's connect succeeds once its destination is
//! connected, and otherwise fails with the same error as without interception.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use eyas_relay::packet::{self, ParsedPacket, TcpSegment, UnreachableCause};

use super::addresses::{HOST, PEER, like};

/// The maximum number of connections per family, including those that have just ended.
pub(super) const MAX_FLOWS: usize = 16_384;
/// How long a connection that has ended is remembered, if there is space, for segments still in
/// flight (RFC 9293 §3.6.1: twice the maximum segment lifetime).
pub(super) const LINGER: Duration = Duration::from_mins(2);
/// The first port of [`PEER`] that connections come from.
const FIRST_PORT: u16 = 1024;
/// The port of DNS.
const DNS: u16 = 53;

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranslatorOutput {
    /// Write this packet to the device.
    Packet(Vec<u8>),
    /// A program opens a connection: [`FlowTranslator::grant`] or [`FlowTranslator::refuse`] it.
    Open(ProgramFlow),
    /// A program sends a DNS query; answer it with [`FlowTranslator::datagram`] from `to` to `from`.
    Question {
        /// The destination of the answer.
        from: SocketAddr,
        /// The address that was queried.
        to: SocketAddr,
        /// The message.
        message: Vec<u8>,
    },
}

/// A connection of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramFlow {
    /// The program's end.
    pub client: SocketAddr,
    /// The destination.
    pub destination: SocketAddr,
    /// The peer as seen by the listener.
    pub peer: SocketAddr,
}

/// Why a program gets no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowDenial {
    /// Nothing is listening there.
    Reset,
    /// By an ICMP error.
    Unreachable(UnreachableCause),
}

#[derive(Debug)]
struct FlowEntry {
    flow: ProgramFlow,
    stage: FlowStage,
    /// When the last packet arrived.
    used: Duration,
}

#[derive(Debug)]
enum FlowStage {
    /// The first segment waits for the outcome of a race.
    Waiting(Vec<u8>),
    Granted,
    Closed,
}

/// The state of all connections.
#[derive(Debug)]
pub struct FlowTranslator {
    /// The ports of the listeners, for IPv4 and IPv6.
    listeners: [u16; 2],
    tables: [FlowTable; 2],
    outputs: VecDeque<TranslatorOutput>,
}

#[derive(Debug, Default)]
struct FlowTable {
    /// By the port of [`PEER`].
    entries: HashMap<u16, FlowEntry>,
    ports: HashMap<(SocketAddr, SocketAddr), u16>,
    next: u16,
}

impl FlowTranslator {
    /// Creates a translator with listeners at these ports of [`HOST`], for IPv4 and for IPv6.
    pub fn new(listeners: [u16; 2]) -> Self {
        Self { listeners, tables: Default::default(), outputs: VecDeque::new() }
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<TranslatorOutput> {
        self.outputs.pop_front()
    }

    /// Processes a packet from the device.
    pub fn handle_packet(&mut self, now: Duration, bytes: &[u8]) {
        match packet::read(bytes) {
            Some(ParsedPacket::Tcp { from, to, segment }) => {
                let is_ours = from.ip() == like(from.ip(), HOST);
                let is_answer = to.ip() == like(to.ip(), PEER)
                    && from.port() == self.listeners[usize::from(from.is_ipv6())];
                match (is_ours, is_answer) {
                    (true, true) => self.backward(now, to, &segment),
                    (true, false) => self.forward(now, (from, to), &segment, bytes),
                    (false, _) => {}
                }
            }
            Some(ParsedPacket::Udp { from, to, payload }) if to.port() == DNS => {
                let message = payload.to_vec();
                self.outputs.push_back(TranslatorOutput::Question { from, to, message });
            }
            Some(ParsedPacket::Udp { to, .. }) => {
                self.unreachable(bytes, to.ip(), UnreachableCause::Port)
            }
            Some(ParsedPacket::Other) => {
                let is_v6 = bytes[0] >> 4 == 6;
                let router = if is_v6 { PEER.1.into() } else { PEER.0.into() };
                self.unreachable(bytes, router, UnreachableCause::Prohibited);
            }
            None => {}
        }
    }

    /// Accepts a connection whose destination is connected: the listener will see it.
    pub fn grant(&mut self, now: Duration, flow: &ProgramFlow) {
        let listener = self.listener(flow.peer);
        let Some(entry) = self.tables[table(flow.peer)].get(flow) else { return };
        let FlowStage::Waiting(first) = std::mem::replace(&mut entry.stage, FlowStage::Granted)
        else {
            return;
        };
        entry.used = now;
        if let Some(ParsedPacket::Tcp { segment, .. }) = packet::read(&first) {
            self.push(packet::tcp(flow.peer, listener, &segment));
        }
    }

    /// Refuses a connection, with the reason.
    pub fn refuse(&mut self, flow: &ProgramFlow, why: FlowDenial) {
        let table = &mut self.tables[table(flow.peer)];
        if !table.get(flow).is_some_and(|entry| matches!(entry.stage, FlowStage::Waiting(_))) {
            return;
        }
        let Some(FlowEntry { stage: FlowStage::Waiting(first), .. }) =
            table.remove(flow.peer.port())
        else {
            return;
        };
        match (why, packet::read(&first)) {
            (FlowDenial::Reset, Some(ParsedPacket::Tcp { from, to, segment })) => {
                self.push(packet::reset(from, to, &segment));
            }
            (FlowDenial::Unreachable(why), _) => {
                self.unreachable(&first, flow.destination.ip(), why)
            }
            _ => {}
        }
    }

    /// Closes a connection that has no more sockets, so that it may be forgotten.
    pub fn close(&mut self, now: Duration, flow: &ProgramFlow) {
        if let Some(entry) = self.tables[table(flow.peer)].get(flow) {
            (entry.stage, entry.used) = (FlowStage::Closed, now);
        }
    }

    /// Sends a datagram to a program.
    pub fn datagram(&mut self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        self.push(packet::udp(from, to, payload));
    }

    /// Returns the number of connections.
    #[cfg(any(test, feature = "internals"))]
    pub fn flow_count(&self) -> usize {
        self.tables.iter().map(|table| table.entries.len()).sum()
    }

    /// Translates a segment from a program to a listener, which takes the place of the destination.
    fn forward(
        &mut self,
        now: Duration,
        (from, to): (SocketAddr, SocketAddr),
        segment: &TcpSegment<'_>,
        bytes: &[u8],
    ) {
        let listener = self.listener(from);
        let table = &mut self.tables[table(from)];
        let is_first = segment.header.syn && !segment.header.ack;
        let known = table.ports.get(&(from, to)).copied();
        if let Some((port, entry)) =
            known.and_then(|port| Some((port, table.entries.get_mut(&port)?)))
        {
            match (&mut entry.stage, is_first) {
                (FlowStage::Waiting(first), true) => {
                    *first = bytes.to_vec();
                    return;
                }
                // The program has given up; the race continues for the memory.
                (FlowStage::Waiting(_), false) => return,
                // A new connection with the same ports.
                (FlowStage::Closed, true) => _ = table.remove(port),
                (FlowStage::Granted | FlowStage::Closed, _) => {
                    entry.used = now;
                    let peer = entry.flow.peer;
                    return self.push(packet::tcp(peer, listener, segment));
                }
            }
        }
        if !is_first {
            return self.push(packet::reset(from, to, segment));
        }
        match table.insert(now, (from, to), bytes) {
            Some(flow) => self.outputs.push_back(TranslatorOutput::Open(flow)),
            None => self.push(packet::reset(from, to, segment)),
        }
    }

    /// Translates a segment from a listener to a program.
    fn backward(&mut self, now: Duration, to: SocketAddr, segment: &TcpSegment<'_>) {
        let Some(entry) = self.tables[table(to)].entries.get_mut(&to.port()) else { return };
        entry.used = now;
        let ProgramFlow { client, destination, .. } = entry.flow;
        self.push(packet::tcp(destination, client, segment));
    }

    /// Returns the listener of the same family.
    fn listener(&self, address: SocketAddr) -> SocketAddr {
        let port = self.listeners[usize::from(address.is_ipv6())];
        SocketAddr::new(like(address.ip(), HOST), port)
    }

    fn unreachable(&mut self, refused: &[u8], router: IpAddr, why: UnreachableCause) {
        self.push(packet::unreachable(refused, router, why));
    }

    fn push(&mut self, packet: Option<Vec<u8>>) {
        self.outputs.extend(packet.map(TranslatorOutput::Packet));
    }
}

fn table(of: SocketAddr) -> usize {
    usize::from(of.is_ipv6())
}

impl FlowTable {
    /// Returns the entry of this connection, but not of a later one with the same port.
    fn get(&mut self, flow: &ProgramFlow) -> Option<&mut FlowEntry> {
        self.entries.get_mut(&flow.peer.port()).filter(|entry| entry.flow == *flow)
    }

    fn remove(&mut self, port: u16) -> Option<FlowEntry> {
        let entry = self.entries.remove(&port)?;
        self.ports.remove(&(entry.flow.client, entry.flow.destination));
        Some(entry)
    }

    /// Adds a connection, if there is room.
    fn insert(
        &mut self,
        now: Duration,
        (client, destination): (SocketAddr, SocketAddr),
        first: &[u8],
    ) -> Option<ProgramFlow> {
        self.make_room(now)?;
        // There are fewer connections than ports.
        while self.next < FIRST_PORT || self.entries.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let port = self.next;
        self.next = self.next.wrapping_add(1);
        let peer = SocketAddr::new(like(client.ip(), PEER), port);
        let flow = ProgramFlow { client, destination, peer };
        let entry = FlowEntry { flow, stage: FlowStage::Waiting(first.to_vec()), used: now };
        self.entries.insert(port, entry);
        self.ports.insert((client, destination), port);
        Some(flow)
    }

    /// If the table is full, removes the connections that ended long ago, or at least the one that ended first.
    fn make_room(&mut self, now: Duration) -> Option<()> {
        if self.entries.len() < MAX_FLOWS {
            return Some(());
        }
        let closed =
            self.entries.iter().filter(|(_, entry)| matches!(entry.stage, FlowStage::Closed));
        let mut closed: Vec<(Duration, u16)> =
            closed.map(|(port, entry)| (entry.used, *port)).collect();
        closed.sort_unstable();
        let is_old = |used: Duration| now.saturating_sub(used) >= LINGER;
        let old = closed.iter().take_while(|(used, _)| is_old(*used)).count();
        for (_, port) in closed.iter().take(old.max(1)) {
            self.remove(*port);
        }
        (self.entries.len() < MAX_FLOWS).then_some(())
    }
}
