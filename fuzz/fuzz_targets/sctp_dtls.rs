//! The DTLS sessions of one socket, clients at several addresses, and a network that loses, mangles,
//! repeats and forges: no state is kept for clients without a cookie, and none is sent more than it has sent
//! before; every packet arrives unchanged, and once; forgeries end no session, timeouts make progress, and
//! once all are silent nothing is left. Each step is four octets, so that every input is valid and a change
//! of one octet changes one step.
#![no_main]

use std::alloc::System;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Once;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use eyas_sctp::io::Unreachable;
use libfuzzer_sys::fuzz_target;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[path = "dtls/address.rs"]
mod address;
#[path = "dtls/client.rs"]
mod client;
#[path = "../../crates/sctp-tokio/src/dtls/mod.rs"]
#[expect(dead_code, unused_imports, reason = "sessions for each path are not fuzzed here")]
mod dtls;
#[path = "dtls/forged.rs"]
mod forged;
#[path = "dtls/hello.rs"]
mod hello;
mod reach;

use address::address;
use client::{Client, identity};
use dtls::{
    DtlsEndReason, MAX_OVERHEAD, Outcome, Role, SessionPath, Sessions, State, looks_like_record,
};
use forged::{junk, mangled};
use reach::Reach;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The maximum steps of one run; more find nothing new.
const MAX_STEPS: usize = 200;
/// The address of the server.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9899);
const CLIENTS: usize = 6;
/// The maximum datagrams in flight to one side; more are lost.
const MAX_IN_FLIGHT: usize = 64;
/// The maximum simultaneous handshakes of one peer (`MAX_HANDSHAKES_PER_PEER` of the sessions).
const MAX_HANDSHAKES: usize = 64;
/// The maximum memory of a session, including its queues.
const SESSION_MEMORY: usize = 256 << 10;
/// The memory that a run may leave allocated: an empty table keeps its capacity.
const MAX_REMAINDER: isize = 64 << 10;
/// How long a cookie can be valid, rounded twice to seconds.
const COOKIE_LIFE: Duration = Duration::from_secs(62);
/// The time limit of a handshake on a network without losses.
const PATIENCE: Duration = Duration::from_secs(90);
/// Silence after which no session is left.
const SILENCE: Duration = Duration::from_secs(180);

thread_local! {
    static REUSED: Cell<Option<(Instant, Sessions)>> = const { Cell::new(None) };
}

static WARM: Once = Once::new();

static REACH: Reach<20> = Reach::new([
    "a DTLS 1.2 cookie is requested",
    "a DTLS 1.3 cookie is requested",
    "a DTLS 1.2 session is established",
    "a DTLS 1.3 session is established",
    "a mangled second hello is ignored",
    "a second hello from another address is ignored",
    "an expired second hello is ignored",
    "a certificate is refused",
    "a flight is retransmitted",
    "a silent handshake times out",
    "a refusal ends a handshake",
    "a refusal ends a handshake at the server",
    "an idle session times out",
    "close_notify ends a session",
    "a packet arrives at the server",
    "a packet arrives at a client",
    "a repeated packet is ignored",
    "a mangled record is ignored",
    "junk is ignored",
    "a handshake is replaced by another of its peer",
]);

/// The origin of a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Origin {
    /// Unchanged, from the client's address.
    Whole,
    /// The same, repeated.
    Repeated,
    Mangled,
    /// From another address.
    Elsewhere,
    /// Not sent by any client.
    Junk,
}

/// A second hello that a client has sent.
struct SecondHello {
    from: SocketAddr,
    at: Instant,
    hello: Bytes,
}

struct World {
    now: Instant,
    server: Sessions,
    clients: [Option<Client>; CLIENTS],
    to_server: [Vec<Bytes>; CLIENTS],
    to_client: [Vec<Bytes>; CLIENTS],
    /// Clients that have sent close_notify, which may be mangled afterwards.
    has_closed: [bool; CLIENTS],
    second_hellos: Vec<SecondHello>,
    /// All addresses with a session, now or before.
    seen: BTreeSet<SocketAddr>,
    /// Packets by their number, and which of them arrived.
    sent: Vec<Bytes>,
    arrived: BTreeSet<usize>,
    has_flooded: bool,
}

/// Returns the prefix that identifies a peer.
fn peer(address: SocketAddr) -> Vec<u8> {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets()[..8].to_vec(),
    }
}

/// Returns one of the waiting datagrams and its index.
fn pick(waiting: &[Bytes], which: u8) -> Option<(usize, Bytes)> {
    let index = usize::from(which).checked_rem(waiting.len())?;
    Some((index, waiting[index].clone()))
}

impl World {
    /// Reuses the server of the previous run, which has no sessions left: creating one takes longer than
    /// a handshake.
    fn new() -> Self {
        let create = || (Instant::now(), Sessions::new(Role::Server(identity())));
        let (now, server) = REUSED.take().unwrap_or_else(create);
        Self {
            now,
            server,
            clients: Default::default(),
            to_server: Default::default(),
            to_client: Default::default(),
            has_closed: Default::default(),
            second_hellos: Vec::new(),
            seen: BTreeSet::new(),
            sent: Vec::new(),
            arrived: BTreeSet::new(),
            has_flooded: false,
        }
    }

    /// Keeps the server for the next run.
    fn keep_server(self) {
        REUSED.set(Some((self.now, self.server)));
    }

    fn step(&mut self, [kind, client, a, b]: [u8; 4]) {
        let client = usize::from(client) % CLIENTS;
        let waiting = pick(&self.to_server[client], a);
        match kind % 16 {
            0 => self.open(client, a & 1 != 0, a & 6 != 6),
            1 => {
                let Some((index, datagram)) = waiting else { return };
                self.to_server[client].remove(index);
                self.deliver_to_server(address(client), &datagram, Origin::Whole);
            }
            2 if b & 1 == 0 => {
                waiting.map(|(index, _)| self.to_server[client].remove(index));
            }
            2 => {
                let Some((_, datagram)) = waiting else { return };
                let before = self.arrived.len();
                self.deliver_to_server(address(client), &datagram, Origin::Whole);
                let has_packet = self.arrived.len() > before;
                self.deliver_to_server(address(client), &datagram, Origin::Repeated);
                if has_packet {
                    REACH.hit("a repeated packet is ignored");
                }
            }
            3 => {
                let Some((_, datagram)) = pick(&self.to_server[client], a >> 4) else { return };
                self.deliver_to_server(
                    address(client),
                    &mangled(&datagram, a << 4 | b & 15, b),
                    Origin::Mangled,
                );
            }
            4 => {
                let Some((_, datagram)) = waiting else { return };
                let elsewhere = address((client + 1 + usize::from(b) % (CLIENTS - 1)) % CLIENTS);
                self.deliver_to_server(elsewhere, &datagram, Origin::Elsewhere);
            }
            5 => {
                let Some((index, datagram)) = pick(&self.to_client[client], a) else { return };
                self.to_client[client].remove(index);
                self.deliver_to_client(client, &datagram, true);
            }
            6 => {
                let Some((_, datagram)) = pick(&self.to_client[client], a >> 4) else { return };
                self.deliver_to_client(client, &mangled(&datagram, a << 4 | b & 15, b), false);
            }
            7 => (0..8).for_each(|_| self.all_arrive()),
            8 => self.wait(Duration::from_millis(u64::from(a) * 512 + u64::from(b))),
            9 => self.tick(),
            10 => self.deliver_to_server(address(client), &junk(a, b), Origin::Junk),
            11 => self.deliver_to_client(client, &junk(a, b), false),
            12 => self.write_to_client(client, usize::from(a) * 4),
            13 => self.write_to_server(client, usize::from(a) * 4),
            14 => self.report(client, a, b),
            _ if a < 64 => self.close_client(client),
            _ if a < 192 => {
                let out = self.server.close(address(client));
                self.send_to_client(address(client), out);
            }
            _ if !std::mem::replace(&mut self.has_flooded, true) => self.flood(address(client)),
            _ => {}
        }
    }

    fn open(&mut self, client: usize, is_old: bool, accepts: bool) {
        let (opened, first) = Client::open(self.now, is_old, accepts);
        self.clients[client] = Some(opened);
        self.has_closed[client] = false;
        self.send_to_server(client, first);
    }

    /// Sends a client's datagrams, and checks its packets.
    fn send_to_server(&mut self, client: usize, out: Outcome) {
        for datagram in &out.datagrams {
            assert!(looks_like_record(datagram));
            if hello::number(datagram) == Some(1) {
                let (from, hello) = (address(client), datagram.clone().freeze());
                self.second_hellos.push(SecondHello { from, at: self.now, hello });
            }
        }
        let room = MAX_IN_FLIGHT.saturating_sub(self.to_server[client].len());
        let datagrams = out.datagrams.into_iter().map(BytesMut::freeze);
        self.to_server[client].extend(datagrams.take(room));
        for packet in out.packets {
            self.check_packet(&packet, SERVER, address(client));
            REACH.hit("a packet arrives at a client");
        }
    }

    /// Sends the server's datagrams, and checks its packets.
    fn send_to_client(&mut self, to: SocketAddr, out: Outcome) {
        assert!(out.datagrams.iter().all(|one| looks_like_record(one)));
        for packet in out.packets {
            self.check_packet(&packet, to, SERVER);
            REACH.hit("a packet arrives at the server");
        }
        let Some(client) = (0..CLIENTS).find(|client| address(*client) == to) else { return };
        let room = MAX_IN_FLIGHT.saturating_sub(self.to_client[client].len());
        let datagrams = out.datagrams.into_iter().map(BytesMut::freeze);
        self.to_client[client].extend(datagrams.take(room));
    }

    /// Checks that a packet arrives as it was sent, and for the first time.
    fn check_packet(&mut self, packet: &[u8], from: SocketAddr, to: SocketAddr) {
        let number = u32::from_be_bytes(*packet.first_chunk().expect("a number"));
        let number = usize::try_from(number).expect("few");
        assert_eq!(self.sent[number][..4], packet[..4]);
        let ends = format!("{from} {to}");
        assert_eq!(self.sent[number], packet, "another packet");
        assert!(packet[4..].starts_with(ends.as_bytes()), "a packet of another session");
        assert!(self.arrived.insert(number), "a repeated packet");
    }

    fn packet(&mut self, from: SocketAddr, to: SocketAddr, length: usize) -> Bytes {
        let number = u32::try_from(self.sent.len()).expect("few");
        let ends = format!("{from} {to}");
        let packet = [&number.to_be_bytes(), ends.as_bytes(), &vec![b'x'; length]].concat();
        self.sent.push(Bytes::from(packet));
        self.sent[self.sent.len() - 1].clone()
    }

    fn write_to_client(&mut self, client: usize, length: usize) {
        let packet = self.packet(SERVER, address(client), length);
        let path = SessionPath::from(address(client));
        let packets = [&packet[..]].into_iter();
        let (_, out) = self.server.send_to(self.now, path, None, packets);
        let is_up = matches!(self.server.state(address(client)), State::Up(_));
        assert!(is_up || out.datagrams.is_empty(), "sent before the session is established");
        let most = packet.len() + usize::from(MAX_OVERHEAD);
        assert!(
            out.datagrams.iter().all(|one| one.len() <= most),
            "the overhead exceeds its maximum"
        );
        self.send_to_client(address(client), out);
    }

    fn write_to_server(&mut self, client: usize, length: usize) {
        let packet = self.packet(address(client), SERVER, length);
        let Some(session) = &mut self.clients[client] else { return };
        let out = session.send(self.now, &packet);
        assert!(out.datagrams.is_empty() || matches!(session.state(), State::Up(_)));
        self.send_to_server(client, out);
    }

    fn close_client(&mut self, client: usize) {
        let Some(session) = &mut self.clients[client] else { return };
        let out = session.close();
        self.has_closed[client] = true;
        self.send_to_server(client, out);
    }

    /// Passes a datagram to the server.
    fn deliver_to_server(&mut self, from: SocketAddr, datagram: &[u8], origin: Origin) {
        let (had, was) = (self.has(from), self.server.state(from));
        let out = self.server.handle_datagram(self.now, from, datagram, || true);
        let state = self.server.state(from);
        let answered: usize = out.datagrams.iter().map(BytesMut::len).sum();
        if had {
            let closed = (0..CLIENTS).any(|one| self.has_closed[one] && address(one) == from);
            let is_genuine = matches!(origin, Origin::Whole | Origin::Repeated);
            if let State::Up(version) = was {
                let may_restart = is_genuine || self.has_valid_cookie(from, datagram);
                assert!(closed || may_restart || was == state, "{origin:?}: {state:?}");
                match origin {
                    Origin::Mangled if answered == 0 => REACH.hit("a mangled record is ignored"),
                    Origin::Junk => REACH.hit("junk is ignored"),
                    Origin::Whole if closed && !self.has(from) => {
                        REACH.hit("close_notify ends a session");
                    }
                    _ => {}
                }
                assert!(["DTLSv1.2", "DTLSv1.3"].contains(&version));
            } else if let State::Up(version) = state {
                REACH.hit(match version {
                    "DTLSv1.2" => "a DTLS 1.2 session is established",
                    _ => "a DTLS 1.3 session is established",
                });
            }
        } else if !self.has_valid_cookie(from, datagram) {
            assert!(!self.has(from), "a session without a cookie: {origin:?}");
            assert!(answered <= datagram.len(), "{answered} octets for {}", datagram.len());
            assert!(out.packets.is_empty());
            self.count(datagram, origin, &out);
        }
        if self.has(from) {
            self.seen.insert(from);
        }
        self.send_to_client(from, out);
    }

    /// Returns whether the server has a session with a client, which has not ended.
    fn has(&self, remote: SocketAddr) -> bool {
        !matches!(self.server.state(remote), State::Over(_))
    }

    /// Returns whether this is a second hello from this address whose cookie is still valid.
    fn has_valid_cookie(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let is_same = |hello: &Bytes| {
            hello.len() == datagram.len() && datagram[13..].starts_with(hello::covered(hello))
        };
        let is_in_time = |at: Instant| self.now.duration_since(at) <= COOKIE_LIFE;
        self.second_hellos
            .iter()
            .any(|second| second.from == from && is_in_time(second.at) && is_same(&second.hello))
    }

    /// Counts the outcome of a datagram from a client without a session or cookie.
    fn count(&self, datagram: &[u8], origin: Origin, out: &Outcome) {
        let message_type = out.datagrams.first().and_then(|answer| answer.get(13));
        match (message_type, hello::number(datagram), origin) {
            (Some(3), ..) => REACH.hit("a DTLS 1.2 cookie is requested"),
            (Some(_), ..) => REACH.hit("a DTLS 1.3 cookie is requested"),
            (None, Some(1), Origin::Mangled) => REACH.hit("a mangled second hello is ignored"),
            (None, Some(1), Origin::Elsewhere) => {
                REACH.hit("a second hello from another address is ignored");
            }
            (None, Some(1), Origin::Whole) => {
                REACH.hit("an expired second hello is ignored");
            }
            _ => {}
        }
    }

    /// Passes a datagram to a client.
    fn deliver_to_client(&mut self, client: usize, datagram: &[u8], is_whole: bool) {
        let Some(session) = &mut self.clients[client] else { return };
        let was = session.state();
        let out = session.handle_datagram(self.now, datagram);
        let state = session.state();
        if matches!((session, &was), (Client::Ours(_), State::Up(_))) {
            let is_over = !self.has(address(client));
            assert!(is_whole || is_over || state == was, "{state:?}");
        }
        if let State::Over(DtlsEndReason::Failed(rustls::Error::InvalidCertificate(_))) = state {
            REACH.hit("a certificate is refused");
        }
        self.send_to_server(client, out);
    }

    fn all_arrive(&mut self) {
        for client in 0..CLIENTS {
            for datagram in std::mem::take(&mut self.to_server[client]) {
                self.deliver_to_server(address(client), &datagram, Origin::Whole);
            }
            for datagram in std::mem::take(&mut self.to_client[client]) {
                self.deliver_to_client(client, &datagram, true);
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.to_server.iter().chain(&self.to_client).all(Vec::is_empty)
    }

    /// Reports by ICMP that packets do not arrive, to a client or to the server.
    fn report(&mut self, client: usize, a: u8, b: u8) {
        let reason = match a % 3 {
            0 => Unreachable::Protocol,
            1 => Unreachable::Route,
            2 => Unreachable::Local,
            _ => Unreachable::TooBig(u16::from(b) * 8),
        };
        if a < 128 {
            let (had, was) = (self.has(address(client)), self.server.state(address(client)));
            assert_eq!(self.server.report(self.now, address(client), reason), had);
            let state = self.server.state(address(client));
            match (was, &state) {
                (State::Handshake, State::Over(_)) => {
                    REACH.hit("a refusal ends a handshake at the server")
                }
                (was, state) => assert_eq!(was, *state),
            }
        } else if let Some(Client::Ours(ours)) = &mut self.clients[client] {
            let sessions = ours.sessions();
            let was = sessions.state(SERVER);
            sessions.report(self.now, SERVER, reason);
            let state = sessions.state(SERVER);
            match (was, &state) {
                (State::Handshake, State::Over(_)) => REACH.hit("a refusal ends a handshake"),
                (was, state) => assert_eq!(was, *state),
            }
        }
    }

    /// One peer starts more handshakes than it may have, with valid cookies.
    fn flood(&mut self, from: SocketAddr) {
        let (_, first) = Client::open(self.now, true, true);
        let Some(first) = first.datagrams.first() else { return };
        for port in 1..=MAX_HANDSHAKES + 2 {
            let remote = SocketAddr::new(from.ip(), 2000 + u16::try_from(port).expect("few"));
            let request = self.server.handle_datagram(self.now, remote, first, || true);
            let Some(cookie) =
                request.datagrams.first().and_then(|datagram| hello::cookie_in(datagram))
            else {
                return;
            };
            let hello = Bytes::from(hello::with_cookie(first, cookie));
            self.second_hellos.push(SecondHello {
                from: remote,
                at: self.now,
                hello: hello.clone(),
            });
            self.deliver_to_server(remote, &hello, Origin::Whole);
            assert_eq!(self.server.state(remote), State::Handshake, "a valid cookie is rejected");
        }
        let oldest = SocketAddr::new(from.ip(), 2001);
        assert!(!self.has(oldest));
        REACH.hit("a handshake is replaced by another of its peer");
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.handle_timeouts();
    }

    /// Advances to the next timeout.
    fn tick(&mut self) {
        let clients = self.clients.iter_mut().flatten().filter_map(Client::next_timeout);
        if let Some(next) = clients.chain(self.server.next_timeout()).min() {
            // The library may return a time in the past.
            self.now = next.max(self.now + Duration::from_millis(1));
            self.handle_timeouts();
        }
    }

    /// Handles all due timeouts.
    fn handle_timeouts(&mut self) {
        let before: Vec<_> =
            self.seen.iter().map(|remote| (*remote, self.server.state(*remote))).collect();
        let outcomes = self.server.handle_timeout(self.now);
        let next = self.server.next_timeout();
        assert!(next.is_none_or(|next| next > self.now), "the server makes no progress");
        for (SessionPath { remote, .. }, out) in outcomes {
            if !out.datagrams.is_empty() && self.server.state(remote) == State::Handshake {
                REACH.hit("a flight is retransmitted");
            }
            self.send_to_client(remote, out);
        }
        for (remote, was) in before {
            match was {
                _ if self.has(remote) => {}
                State::Handshake => REACH.hit("a silent handshake times out"),
                State::Up(_) => REACH.hit("an idle session times out"),
                State::Over(_) => {}
            }
        }
        for client in 0..CLIENTS {
            let Some(session) = &mut self.clients[client] else { continue };
            if session.next_timeout().is_some_and(|at| at <= self.now) {
                let all = session.handle_timeout(self.now);
                all.into_iter().for_each(|out| self.send_to_server(client, out));
            }
        }
    }

    /// Checks the limits of handshakes per peer and of memory.
    fn check(&self, growth: isize) {
        let mut handshakes = BTreeMap::new();
        for remote in &self.seen {
            if self.server.state(*remote) == State::Handshake {
                *handshakes.entry(peer(*remote)).or_insert(0) += 1;
            }
        }
        assert!(handshakes.values().all(|count| *count <= MAX_HANDSHAKES), "{handshakes:?}");
        let sessions = self.seen.iter().filter(|remote| self.has(**remote)).count();
        let room = (sessions + 2 * CLIENTS) * SESSION_MEMORY;
        let growth = usize::try_from(growth).unwrap_or_default();
        assert!(growth < room, "{growth} octets for {sessions} sessions");
    }

    /// Checks that each handshake ends on a network without losses.
    fn completes(&mut self) {
        let limit = self.now + PATIENCE;
        loop {
            while !self.is_quiet() {
                self.all_arrive();
            }
            let is_under_way = |one: &mut Client| one.state() == State::Handshake;
            if !self.clients.iter_mut().flatten().any(is_under_way) {
                return;
            }
            self.tick();
            assert!(self.now < limit, "a handshake does not end");
        }
    }

    /// Checks that no session is left once all are silent.
    fn ends(&mut self) {
        self.clients = Default::default();
        let limit = self.now + SILENCE;
        while let Some(next) = self.server.next_timeout() {
            assert!(next < limit, "a session does not end");
            self.now = self.now.max(next);
            self.handle_timeouts();
        }
        assert!(self.seen.iter().all(|remote| !self.has(*remote)));
    }
}

fuzz_target!(|input: &[u8]| {
    REACH.begin();
    WARM.call_once(|| {
        // Excludes the one-time allocations of the cryptography library from the measurement.
        let mut world = World::new();
        (0..CLIENTS).for_each(|client| world.open(client, false, true));
        world.completes();
        world.ends();
        world.keep_server();
    });
    let region = Region::new(ALLOCATOR);
    let growth = || {
        let change = region.change();
        change.bytes_allocated as isize - change.bytes_deallocated as isize
    };
    let mut world = World::new();
    for step in input.as_chunks().0.iter().take(MAX_STEPS) {
        world.step(*step);
        world.check(growth());
    }
    world.completes();
    world.check(growth());
    world.ends();
    // Only the server's empty tables may be left.
    world.keep_server();
    assert!(growth() < MAX_REMAINDER, "{} octets are leaked", growth());
});
