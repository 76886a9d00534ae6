//! The DTLS sessions of one socket, clients at several addresses, and a network that cuts, mangles,
//! repeats and forges: nothing is kept of who has shown no cookie, nobody is sent more than it sends
//! before, what arrives is what was sent, once; forgeries end no session, what was asked to be called
//! later comes further when it is called, and once all are silent nothing is left. Each step is four
//! octets, so that every input means something and a change of one octet changes one step.
#![no_main]

use std::alloc::System;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Once;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas::{Error, sockets};
use eyas_sctp::io::Unreachable;
use libfuzzer_sys::fuzz_target;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[path = "dtls/client.rs"]
mod client;
#[path = "../../crates/eyas/src/sctp/dtls/mod.rs"]
mod dtls;
#[path = "dtls/forged.rs"]
mod forged;
#[path = "dtls/hello.rs"]
mod hello;
mod reach;

// The sessions name these in their crate, as they do `sockets` and `Error`.
use client::{Client, ServerIdentity, identity};
use dtls::{Acceptance, MAX_OVERHEAD, Outcome, Sessions, State, looks_like_record};
use forged::{junk, mangled};
use reach::Reach;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Steps of one run; more find nothing new.
const MAX_STEPS: usize = 200;
/// Where the server is, as its clients see it.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9899);
const CLIENTS: usize = 6;
/// Datagrams on their way to one side; more are lost.
const MAX_UNDER_WAY: usize = 64;
/// Handshakes that one peer may have under way (`MAX_HANDSHAKES_PER_PEER` of the sessions).
const MAX_HANDSHAKES: usize = 64;
/// The most memory of a session, with what waits in it to be read in its turn.
const SESSION_MEMORY: usize = 256 << 10;
/// What a run may leave behind: an empty table keeps the room of eleven entries.
const LEFT_OVER: isize = 64 << 10;
/// How long a cookie can be good for, in whole seconds that are rounded twice.
const COOKIE_LIFE: Duration = Duration::from_secs(62);
/// How long a handshake takes at most in a network that loses nothing.
const PATIENCE: Duration = Duration::from_secs(90);
/// Silence after which no session is left.
const SILENCE: Duration = Duration::from_secs(180);

thread_local! {
    static KEPT: Cell<Option<(Instant, Sessions)>> = const { Cell::new(None) };
}

static WARM: Once = Once::new();

static REACH: Reach<20> = Reach::new([
    "a cookie of DTLS 1.2 is asked for",
    "a cookie of DTLS 1.3 is asked for",
    "a session of DTLS 1.2 is up",
    "a session of DTLS 1.3 is up",
    "a mangled second hello is left out",
    "a second hello from elsewhere is left out",
    "a second hello that is too old is left out",
    "a certificate is refused",
    "a flight is sent again",
    "a silent handshake is given up",
    "a refusal ends a handshake",
    "a refusal ends a handshake at the server",
    "an idle session is given up",
    "a goodbye ends a session",
    "a packet comes to the server",
    "a packet comes to a client",
    "a packet that comes again is left out",
    "a mangled record is left out",
    "junk is left out",
    "a handshake goes for another of its peer",
]);

/// How a datagram came to be what the server is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Came {
    /// As a client sent it, from its address.
    Whole,
    /// The same, for the second time.
    Again,
    Mangled,
    /// From the address of somebody else.
    Elsewhere,
    /// Out of nothing.
    Junk,
}

/// A second hello that a client said.
struct Asked {
    by: SocketAddr,
    at: Instant,
    hello: Bytes,
}

struct World {
    now: Instant,
    server: Sessions,
    clients: [Option<Client>; CLIENTS],
    to_server: [Vec<Bytes>; CLIENTS],
    to_client: [Vec<Bytes>; CLIENTS],
    /// Clients that said goodbye, which may be in what is mangled afterwards.
    has_closed: [bool; CLIENTS],
    asked: Vec<Asked>,
    /// All addresses with a session, now or before.
    seen: BTreeSet<SocketAddr>,
    /// Packets by their number, and which of them arrived.
    sent: Vec<Bytes>,
    arrived: BTreeSet<usize>,
    has_flooded: bool,
}

/// Two clients at one address, two in one /64, one in another, and one with IPv4 inside of IPv6.
fn address(client: usize) -> SocketAddr {
    let number = u16::try_from(client).expect("few");
    match client {
        0 | 1 => SocketAddr::from(([192, 0, 2, 1], 1000 + number)),
        2 | 3 => SocketAddr::from(([0x2001, 0xdb8, 0, 1, 0, 0, 0, number], 1000)),
        4 => SocketAddr::from(([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1], 1000)),
        _ => SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0xc633, 0x6401], 1000)),
    }
}

/// Who counts as one peer.
fn peer(address: SocketAddr) -> Vec<u8> {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets()[..8].to_vec(),
    }
}

/// One of the waiting datagrams, and where it stands.
fn pick(waiting: &[Bytes], which: u8) -> Option<(usize, Bytes)> {
    let index = usize::from(which).checked_rem(waiting.len())?;
    Some((index, waiting[index].clone()))
}

impl World {
    /// The server is the one of the run before, of which nothing is left: to make one takes longer
    /// than a handshake.
    fn new() -> Self {
        let make = || (Instant::now(), Sessions::new(Acceptance::Anyone(identity())));
        let (now, server) = KEPT.take().unwrap_or_else(make);
        Self {
            now,
            server,
            clients: Default::default(),
            to_server: Default::default(),
            to_client: Default::default(),
            has_closed: Default::default(),
            asked: Vec::new(),
            seen: BTreeSet::new(),
            sent: Vec::new(),
            arrived: BTreeSet::new(),
            has_flooded: false,
        }
    }

    /// Keeps the server for the next run.
    fn leave(self) {
        KEPT.set(Some((self.now, self.server)));
    }

    fn step(&mut self, [kind, client, a, b]: [u8; 4]) {
        let client = usize::from(client) % CLIENTS;
        let waiting = pick(&self.to_server[client], a);
        match kind % 16 {
            0 => self.open(client, a & 1 != 0, a & 6 != 6),
            1 => {
                let Some((index, datagram)) = waiting else { return };
                self.to_server[client].remove(index);
                self.serve(address(client), &datagram, Came::Whole);
            }
            2 if b & 1 == 0 => {
                waiting.map(|(index, _)| self.to_server[client].remove(index));
            }
            2 => {
                let Some((_, datagram)) = waiting else { return };
                let before = self.arrived.len();
                self.serve(address(client), &datagram, Came::Whole);
                let has_packet = self.arrived.len() > before;
                self.serve(address(client), &datagram, Came::Again);
                if has_packet {
                    REACH.hit("a packet that comes again is left out");
                }
            }
            3 => {
                let Some((_, datagram)) = pick(&self.to_server[client], a >> 4) else { return };
                self.serve(address(client), &mangled(&datagram, a << 4 | b & 15, b), Came::Mangled);
            }
            4 => {
                let Some((_, datagram)) = waiting else { return };
                let elsewhere = address((client + 1 + usize::from(b) % (CLIENTS - 1)) % CLIENTS);
                self.serve(elsewhere, &datagram, Came::Elsewhere);
            }
            5 => {
                let Some((index, datagram)) = pick(&self.to_client[client], a) else { return };
                self.to_client[client].remove(index);
                self.show(client, &datagram, true);
            }
            6 => {
                let Some((_, datagram)) = pick(&self.to_client[client], a >> 4) else { return };
                self.show(client, &mangled(&datagram, a << 4 | b & 15, b), false);
            }
            7 => (0..8).for_each(|_| self.all_arrive()),
            8 => self.wait(Duration::from_millis(u64::from(a) * 512 + u64::from(b))),
            9 => self.tick(),
            10 => self.serve(address(client), &junk(a, b), Came::Junk),
            11 => self.show(client, &junk(a, b), false),
            12 => self.send_to(client, usize::from(a) * 4),
            13 => self.send_from(client, usize::from(a) * 4),
            14 => self.report(client, a, b),
            _ if a < 64 => self.say_goodbye(client),
            _ if a < 192 => {
                let out = self.server.close(address(client));
                self.answer(address(client), out);
            }
            _ if !std::mem::replace(&mut self.has_flooded, true) => self.flood(address(client)),
            _ => {}
        }
    }

    fn open(&mut self, client: usize, is_old: bool, accepts: bool) {
        let (opened, first) = Client::open(self.now, is_old, accepts);
        self.clients[client] = Some(opened);
        self.has_closed[client] = false;
        self.say(client, first);
    }

    /// What a client sends is on its way.
    fn say(&mut self, client: usize, out: Outcome) {
        for datagram in &out.datagrams {
            assert!(looks_like_record(datagram));
            if hello::number(datagram) == Some(1) {
                let (by, hello) = (address(client), datagram.clone());
                self.asked.push(Asked { by, at: self.now, hello });
            }
        }
        let room = MAX_UNDER_WAY.saturating_sub(self.to_server[client].len());
        self.to_server[client].extend(out.datagrams.into_iter().take(room));
        for packet in out.packets {
            self.take(&packet, SERVER, address(client));
            REACH.hit("a packet comes to a client");
        }
    }

    /// What the server sends is on its way.
    fn answer(&mut self, to: SocketAddr, out: Outcome) {
        assert!(out.datagrams.iter().all(|one| looks_like_record(one)));
        for packet in out.packets {
            self.take(&packet, to, SERVER);
            REACH.hit("a packet comes to the server");
        }
        let Some(client) = (0..CLIENTS).find(|client| address(*client) == to) else { return };
        let room = MAX_UNDER_WAY.saturating_sub(self.to_client[client].len());
        self.to_client[client].extend(out.datagrams.into_iter().take(room));
    }

    /// A packet arrives: just as it was sent, and for the first time.
    fn take(&mut self, packet: &Bytes, from: SocketAddr, to: SocketAddr) {
        let number = u32::from_be_bytes(*packet.first_chunk().expect("a number"));
        let number = usize::try_from(number).expect("few");
        assert_eq!(self.sent[number][..4], packet[..4]);
        let ends = format!("{from} {to}");
        assert_eq!(self.sent[number], packet, "another packet");
        assert!(packet[4..].starts_with(ends.as_bytes()), "somebody else's packet");
        assert!(self.arrived.insert(number), "a packet again");
    }

    fn packet(&mut self, from: SocketAddr, to: SocketAddr, length: usize) -> Bytes {
        let number = u32::try_from(self.sent.len()).expect("few");
        let ends = format!("{from} {to}");
        let packet = [&number.to_be_bytes(), ends.as_bytes(), &vec![b'x'; length]].concat();
        self.sent.push(Bytes::from(packet));
        self.sent[self.sent.len() - 1].clone()
    }

    fn send_to(&mut self, client: usize, length: usize) {
        let packet = self.packet(SERVER, address(client), length);
        let out = self.server.send(self.now, address(client), [&packet[..]].into_iter());
        let is_up = matches!(self.server.state(address(client)), State::Up(_));
        assert!(is_up || out.datagrams.is_empty(), "sent before the session is up");
        let most = packet.len() + usize::from(MAX_OVERHEAD);
        assert!(out.datagrams.iter().all(|one| one.len() <= most), "more is added than is said");
        self.answer(address(client), out);
    }

    fn send_from(&mut self, client: usize, length: usize) {
        let packet = self.packet(address(client), SERVER, length);
        let Some(one) = &mut self.clients[client] else { return };
        let out = one.send(self.now, &packet);
        assert!(out.datagrams.is_empty() || matches!(one.state(), State::Up(_)));
        self.say(client, out);
    }

    fn say_goodbye(&mut self, client: usize) {
        let Some(one) = &mut self.clients[client] else { return };
        let out = one.close();
        self.has_closed[client] = true;
        self.say(client, out);
    }

    /// The server is shown a datagram.
    fn serve(&mut self, from: SocketAddr, datagram: &[u8], came: Came) {
        let (had, was) = (self.has(from), self.server.state(from));
        let out = self.server.handle_datagram(self.now, from, datagram, || true);
        let state = self.server.state(from);
        let answered: usize = out.datagrams.iter().map(Bytes::len).sum();
        if had {
            let closed = (0..CLIENTS).any(|one| self.has_closed[one] && address(one) == from);
            let is_genuine = matches!(came, Came::Whole | Came::Again);
            if let State::Up(version) = was {
                let may_begin_anew = is_genuine || self.is_invited(from, datagram);
                assert!(closed || may_begin_anew || was == state, "{came:?}: {state:?}");
                match came {
                    Came::Mangled if answered == 0 => REACH.hit("a mangled record is left out"),
                    Came::Junk => REACH.hit("junk is left out"),
                    Came::Whole if closed && !self.has(from) => {
                        REACH.hit("a goodbye ends a session");
                    }
                    _ => {}
                }
                assert!(["DTLSv1.2", "DTLSv1.3"].contains(&version));
            } else if let State::Up(version) = state {
                REACH.hit(match version {
                    "DTLSv1.2" => "a session of DTLS 1.2 is up",
                    _ => "a session of DTLS 1.3 is up",
                });
            }
        } else if !self.is_invited(from, datagram) {
            assert!(!self.has(from), "a session without a cookie: {came:?}");
            assert!(answered <= datagram.len(), "{answered} octets for {}", datagram.len());
            assert!(out.packets.is_empty());
            self.count(datagram, came, &out);
        }
        if self.has(from) {
            self.seen.insert(from);
        }
        self.answer(from, out);
    }

    /// Whether there is a session with a client: what is over is not kept.
    fn has(&self, remote: SocketAddr) -> bool {
        !matches!(self.server.state(remote), State::Over(_))
    }

    /// Whether this is the second hello of a client at this address that is still in time.
    fn is_invited(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let is_same = |hello: &Bytes| {
            hello.len() == datagram.len() && datagram[13..].starts_with(hello::vouched(hello))
        };
        let is_in_time = |at: Instant| self.now.duration_since(at) <= COOKIE_LIFE;
        self.asked.iter().any(|one| one.by == from && is_in_time(one.at) && is_same(&one.hello))
    }

    /// Counts what came of a datagram from somebody without a session or cookie.
    fn count(&self, datagram: &[u8], came: Came, out: &Outcome) {
        let asks_for = out.datagrams.first().and_then(|answer| answer.get(13));
        match (asks_for, hello::number(datagram), came) {
            (Some(3), ..) => REACH.hit("a cookie of DTLS 1.2 is asked for"),
            (Some(_), ..) => REACH.hit("a cookie of DTLS 1.3 is asked for"),
            (None, Some(1), Came::Mangled) => REACH.hit("a mangled second hello is left out"),
            (None, Some(1), Came::Elsewhere) => {
                REACH.hit("a second hello from elsewhere is left out");
            }
            (None, Some(1), Came::Whole) => {
                REACH.hit("a second hello that is too old is left out");
            }
            _ => {}
        }
    }

    /// A client is shown a datagram.
    fn show(&mut self, client: usize, datagram: &[u8], is_whole: bool) {
        let Some(one) = &mut self.clients[client] else { return };
        let was = one.state();
        let out = one.handle_datagram(self.now, datagram);
        let state = one.state();
        if matches!((one, &was), (Client::Ours(_), State::Up(_))) {
            let is_over = !self.has(address(client));
            assert!(is_whole || is_over || state == was, "{state:?}");
        }
        if let State::Over(dtls::Ending::Broken(rustls::Error::InvalidCertificate(_))) = state {
            REACH.hit("a certificate is refused");
        }
        self.say(client, out);
    }

    fn all_arrive(&mut self) {
        for client in 0..CLIENTS {
            for datagram in std::mem::take(&mut self.to_server[client]) {
                self.serve(address(client), &datagram, Came::Whole);
            }
            for datagram in std::mem::take(&mut self.to_client[client]) {
                self.show(client, &datagram, true);
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.to_server.iter().chain(&self.to_client).all(Vec::is_empty)
    }

    /// The network says that nothing came through, to a client or to the server.
    fn report(&mut self, client: usize, a: u8, b: u8) {
        let reason = match a % 3 {
            0 => Unreachable::Protocol,
            1 => Unreachable::Route,
            _ => Unreachable::TooBig(u16::from(b) * 8),
        };
        if a < 128 {
            let (had, was) = (self.has(address(client)), self.server.state(address(client)));
            assert_eq!(self.server.report(address(client), reason), had);
            let state = self.server.state(address(client));
            match (was, &state) {
                (State::Handshake, State::Over(_)) => REACH.hit("a refusal ends a handshake at the server"),
                (was, state) => assert_eq!(was, *state),
            }
        } else if let Some(Client::Ours(ours)) = &mut self.clients[client] {
            let sessions = ours.sessions();
            let was = sessions.state(SERVER);
            sessions.report(SERVER, reason);
            let state = sessions.state(SERVER);
            match (was, &state) {
                (State::Handshake, State::Over(_)) => REACH.hit("a refusal ends a handshake"),
                (was, state) => assert_eq!(was, *state),
            }
        }
    }

    /// One peer begins more handshakes than it may have, with cookies that are right.
    fn flood(&mut self, from: SocketAddr) {
        let (_, first) = Client::open(self.now, true, true);
        let Some(first) = first.datagrams.first() else { return };
        for port in 1..=MAX_HANDSHAKES + 2 {
            let remote = SocketAddr::new(from.ip(), 2000 + u16::try_from(port).expect("few"));
            let asks = self.server.handle_datagram(self.now, remote, first, || true);
            let Some(cookie) = asks.datagrams.first().and_then(|one| hello::asked_for(one)) else {
                return;
            };
            let hello = Bytes::from(hello::with_cookie(first, cookie));
            self.asked.push(Asked { by: remote, at: self.now, hello: hello.clone() });
            self.serve(remote, &hello, Came::Whole);
            assert_eq!(
                self.server.state(remote),
                State::Handshake,
                "a right cookie is turned away"
            );
        }
        let oldest = SocketAddr::new(from.ip(), 2001);
        assert!(!self.has(oldest));
        REACH.hit("a handshake goes for another of its peer");
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.call();
    }

    /// Goes to where somebody wants to be called.
    fn tick(&mut self) {
        let clients = self.clients.iter_mut().flatten().filter_map(Client::next_timeout);
        if let Some(next) = clients.chain(self.server.next_timeout()).min() {
            // The library may name a time that has passed.
            self.now = next.max(self.now + Duration::from_millis(1));
            self.call();
        }
    }

    /// Calls whoever is due.
    fn call(&mut self) {
        let before: Vec<_> =
            self.seen.iter().map(|remote| (*remote, self.server.state(*remote))).collect();
        let said = self.server.handle_timeout(self.now);
        let next = self.server.next_timeout();
        assert!(next.is_none_or(|next| next > self.now), "the server stands still");
        for (remote, out) in said {
            if !out.datagrams.is_empty() && self.server.state(remote) == State::Handshake {
                REACH.hit("a flight is sent again");
            }
            self.answer(remote, out);
        }
        for (remote, was) in before {
            match was {
                _ if self.has(remote) => {}
                State::Handshake => REACH.hit("a silent handshake is given up"),
                State::Up(_) => REACH.hit("an idle session is given up"),
                State::Over(_) => {}
            }
        }
        for client in 0..CLIENTS {
            let Some(one) = &mut self.clients[client] else { continue };
            if one.next_timeout().is_some_and(|at| at <= self.now) {
                let all = one.handle_timeout(self.now);
                all.into_iter().for_each(|out| self.say(client, out));
            }
        }
    }

    /// No peer has more handshakes than it may, and nothing takes more memory than it should.
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

    /// The network is good: each handshake ends.
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
            assert!(self.now < limit, "a handshake without an end");
        }
    }

    /// Without another word from anybody, nothing is left.
    fn ends(&mut self) {
        self.clients = Default::default();
        let limit = self.now + SILENCE;
        while let Some(next) = self.server.next_timeout() {
            assert!(next < limit, "a session without an end");
            self.now = self.now.max(next);
            self.call();
        }
        assert!(self.seen.iter().all(|remote| !self.has(*remote)));
    }
}

fuzz_target!(|input: &[u8]| {
    REACH.begin();
    WARM.call_once(|| {
        // Tables of the cryptography that are made once are no part of what is measured.
        let mut world = World::new();
        (0..CLIENTS).for_each(|client| world.open(client, false, true));
        world.completes();
        world.ends();
        world.leave();
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
    // Only what the server keeps may be left.
    world.leave();
    assert!(growth() < LEFT_OVER, "{} octets of nobody", growth());
});
