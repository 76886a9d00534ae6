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

use eyas_relay::packet::{self, Packet, Segment, Unreachable};

use super::addresses::{HOST, PEER, like};

/// The maximum number of connections per family, including those that have just ended.
pub const MAX_FLOWS: usize = 16_384;
/// How long a connection that has ended is remembered, if there is space, for segments still in
/// flight (RFC 9293 §3.6.1: twice the maximum segment lifetime).
pub const LINGER: Duration = Duration::from_mins(2);
/// The first port of [`PEER`] that connections come from.
const FIRST_PORT: u16 = 1024;
/// The port of DNS.
const DNS: u16 = 53;

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write this packet to the device.
    Packet(Vec<u8>),
    /// A program opens a connection: [`Translator::grant`] or [`Translator::refuse`] it.
    Open(Flow),
    /// A program sends a DNS query; answer it with [`Translator::datagram`] from `to` to `from`.
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
pub struct Flow {
    /// The program's end.
    pub client: SocketAddr,
    /// The destination.
    pub destination: SocketAddr,
    /// The peer as seen by the listener.
    pub peer: SocketAddr,
}

/// Why a program gets no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Nothing is listening there.
    Reset,
    /// By an ICMP error.
    Unreachable(Unreachable),
}

#[derive(Debug)]
struct Entry {
    flow: Flow,
    stage: Stage,
    /// When the last packet arrived.
    used: Duration,
}

#[derive(Debug)]
enum Stage {
    /// The first segment waits for the outcome of a race.
    Waiting(Vec<u8>),
    Granted,
    Closed,
}

/// The state of all connections.
#[derive(Debug)]
pub struct Translator {
    /// The ports of the listeners, for IPv4 and IPv6.
    listeners: [u16; 2],
    tables: [Table; 2],
    outputs: VecDeque<Output>,
}

#[derive(Debug, Default)]
struct Table {
    /// By the port of [`PEER`].
    entries: HashMap<u16, Entry>,
    ports: HashMap<(SocketAddr, SocketAddr), u16>,
    next: u16,
}

impl Translator {
    /// Creates a translator with listeners at these ports of [`HOST`], for IPv4 and for IPv6.
    pub fn new(listeners: [u16; 2]) -> Self {
        Self { listeners, tables: Default::default(), outputs: VecDeque::new() }
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Processes a packet from the device.
    pub fn handle_packet(&mut self, now: Duration, bytes: &[u8]) {
        match packet::read(bytes) {
            Some(Packet::Tcp { from, to, segment }) => {
                let is_ours = from.ip() == like(from.ip(), HOST);
                let is_answer = to.ip() == like(to.ip(), PEER)
                    && from.port() == self.listeners[usize::from(from.is_ipv6())];
                match (is_ours, is_answer) {
                    (true, true) => self.backward(now, to, &segment),
                    (true, false) => self.forward(now, (from, to), &segment, bytes),
                    (false, _) => {}
                }
            }
            Some(Packet::Udp { from, to, payload }) if to.port() == DNS => {
                let message = payload.to_vec();
                self.outputs.push_back(Output::Question { from, to, message });
            }
            Some(Packet::Udp { to, .. }) => self.unreachable(bytes, to.ip(), Unreachable::Port),
            Some(Packet::Other) => {
                let is_v6 = bytes[0] >> 4 == 6;
                let router = if is_v6 { PEER.1.into() } else { PEER.0.into() };
                self.unreachable(bytes, router, Unreachable::Prohibited);
            }
            None => {}
        }
    }

    /// Accepts a connection whose destination is connected: the listener will see it.
    pub fn grant(&mut self, now: Duration, flow: &Flow) {
        let listener = self.listener(flow.peer);
        let Some(entry) = self.tables[table(flow.peer)].get(flow) else { return };
        let Stage::Waiting(first) = std::mem::replace(&mut entry.stage, Stage::Granted) else {
            return;
        };
        entry.used = now;
        if let Some(Packet::Tcp { segment, .. }) = packet::read(&first) {
            self.push(packet::tcp(flow.peer, listener, &segment));
        }
    }

    /// Refuses a connection, with the reason.
    pub fn refuse(&mut self, flow: &Flow, why: Denial) {
        let table = &mut self.tables[table(flow.peer)];
        if !table.get(flow).is_some_and(|entry| matches!(entry.stage, Stage::Waiting(_))) {
            return;
        }
        let Some(Entry { stage: Stage::Waiting(first), .. }) = table.remove(flow.peer.port())
        else {
            return;
        };
        match (why, packet::read(&first)) {
            (Denial::Reset, Some(Packet::Tcp { from, to, segment })) => {
                self.push(packet::reset(from, to, &segment));
            }
            (Denial::Unreachable(why), _) => self.unreachable(&first, flow.destination.ip(), why),
            _ => {}
        }
    }

    /// Closes a connection that has no more sockets, so that it may be forgotten.
    pub fn close(&mut self, now: Duration, flow: &Flow) {
        if let Some(entry) = self.tables[table(flow.peer)].get(flow) {
            (entry.stage, entry.used) = (Stage::Closed, now);
        }
    }

    /// Sends a datagram to a program.
    pub fn datagram(&mut self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        self.push(packet::udp(from, to, payload));
    }

    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.entries.len()).sum()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Translates a segment from a program to a listener, which takes the place of the destination.
    fn forward(
        &mut self,
        now: Duration,
        (from, to): (SocketAddr, SocketAddr),
        segment: &Segment<'_>,
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
                (Stage::Waiting(first), true) => {
                    *first = bytes.to_vec();
                    return;
                }
                // The program has given up; the race continues for the memory.
                (Stage::Waiting(_), false) => return,
                // A new connection with the same ports.
                (Stage::Closed, true) => _ = table.remove(port),
                (Stage::Granted | Stage::Closed, _) => {
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
            Some(flow) => self.outputs.push_back(Output::Open(flow)),
            None => self.push(packet::reset(from, to, segment)),
        }
    }

    /// Translates a segment from a listener to a program.
    fn backward(&mut self, now: Duration, to: SocketAddr, segment: &Segment<'_>) {
        let Some(entry) = self.tables[table(to)].entries.get_mut(&to.port()) else { return };
        entry.used = now;
        let Flow { client, destination, .. } = entry.flow;
        self.push(packet::tcp(destination, client, segment));
    }

    /// Returns the listener of the same family.
    fn listener(&self, address: SocketAddr) -> SocketAddr {
        let port = self.listeners[usize::from(address.is_ipv6())];
        SocketAddr::new(like(address.ip(), HOST), port)
    }

    fn unreachable(&mut self, refused: &[u8], router: IpAddr, why: Unreachable) {
        self.push(packet::unreachable(refused, router, why));
    }

    fn push(&mut self, packet: Option<Vec<u8>>) {
        self.outputs.extend(packet.map(Output::Packet));
    }
}

fn table(of: SocketAddr) -> usize {
    usize::from(of.is_ipv6())
}

impl Table {
    /// Returns the entry of this connection, but not of a later one with the same port.
    fn get(&mut self, flow: &Flow) -> Option<&mut Entry> {
        self.entries.get_mut(&flow.peer.port()).filter(|entry| entry.flow == *flow)
    }

    fn remove(&mut self, port: u16) -> Option<Entry> {
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
    ) -> Option<Flow> {
        self.make_room(now)?;
        // There are fewer connections than ports.
        while self.next < FIRST_PORT || self.entries.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let port = self.next;
        self.next = self.next.wrapping_add(1);
        let peer = SocketAddr::new(like(client.ip(), PEER), port);
        let flow = Flow { client, destination, peer };
        let entry = Entry { flow, stage: Stage::Waiting(first.to_vec()), used: now };
        self.entries.insert(port, entry);
        self.ports.insert((client, destination), port);
        Some(flow)
    }

    /// If the table is full, removes the connections that ended long ago, or at least the one that ended first.
    fn make_room(&mut self, now: Duration) -> Option<()> {
        if self.entries.len() < MAX_FLOWS {
            return Some(());
        }
        let closed = self.entries.iter().filter(|(_, entry)| matches!(entry.stage, Stage::Closed));
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
