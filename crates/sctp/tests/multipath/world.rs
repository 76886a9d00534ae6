//! Host `A` sends messages on several streams to host `B`, over one link for each path.
//!
//! On path N `A` has the address 10.0.N.1 and `B` 10.0.N.2. Packets go directly over IP. A message
//! says when it was handed in and which one of its stream it is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::{Endpoint, Status};
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::io::{Ecn, Input, Output, Received, Transmit};
use eyas_sctp::message::SendInfo;

pub(crate) const A: usize = 0;
const B: usize = 1;
const PORT: u16 = 7;
/// Bytes of a message: they fill a packet of 1,500 bytes.
pub(crate) const MESSAGE: usize = 1452;
/// Bytes of IP header and of framing on the link.
const HEADERS: usize = 27;
/// Packets that wait for a link.
const QUEUE: usize = 100;

/// One path, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Bits a second.
    pub(crate) rate: u64,
    /// One way.
    pub(crate) delay: Duration,
    /// Packets of a million that are lost.
    pub(crate) loss: u64,
    /// The most that is added to the delay of a packet, by chance.
    pub(crate) jitter: Duration,
    /// Whether nothing arrives.
    pub(crate) cut: bool,
}

/// A path of so many Mbit/s and so many milliseconds one way.
pub(crate) const fn link(rate: u64, delay: u64) -> Link {
    Link {
        rate: rate * 1_000_000,
        delay: Duration::from_millis(delay),
        loss: 0,
        jitter: Duration::ZERO,
        cut: false,
    }
}

/// One direction of a path.
struct Direction {
    free_at: Duration,
    /// When the packets of the queue leave it.
    leaving: std::collections::VecDeque<Duration>,
}

/// What the sending user does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// Gives a message to each stream in turn while one is taken.
    InTurn,
    /// Likewise, but skips streams that have their share of the send buffer queued.
    ByQueueInfo,
    /// Has nothing more to send.
    Silent,
}

/// What arrived on one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) messages: u64,
    delays: Duration,
}

impl Tally {
    /// From a message's being handed in to its delivery, in milliseconds.
    pub(crate) fn mean_delay(&self) -> f64 {
        self.delays.as_secs_f64() * 1000.0 / self.messages.max(1) as f64
    }
}

/// Two hosts and the paths between them.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) hosts: [Endpoint; 2],
    pub(crate) links: Vec<Link>,
    pub(crate) user: User,
    pub(crate) events: Vec<(Duration, Event)>,
    /// By stream.
    pub(crate) tallies: Vec<Tally>,
    /// Messages handed in so far, by stream.
    pub(crate) handed_in: Vec<u64>,
    /// Messages delivered since the beginning, by stream.
    pub(crate) delivered: Vec<u64>,
    /// What came of the message that each stream is at.
    parts: Vec<Vec<u8>>,
    share: usize,
    turn: usize,
    directions: Vec<[Direction; 2]>,
    arrivals: BinaryHeap<Reverse<(Duration, u64)>>,
    under_way: BTreeMap<u64, (usize, Received)>,
    sequence: u64,
    timeouts: [Option<Duration>; 2],
    random: u64,
    association: Option<AssociationId>,
}

fn address(host: usize, path: usize) -> IpAddr {
    let [path, host] = [path, host + 1].map(|part| u8::try_from(part).expect("few"));
    Ipv4Addr::new(10, 0, path, host).into()
}

impl World {
    /// Connects over the first path, knowing of all.
    pub(crate) fn new(
        config: &AssociationConfig,
        links: &[Link],
        streams: usize,
        seed: u8,
        user: User,
    ) -> Self {
        let host = |host: usize| {
            let mut endpoint = EndpointConfig::default();
            endpoint.listen_port = Some(PORT);
            endpoint.association = config.clone();
            endpoint.addresses = (0..links.len()).map(|path| address(host, path)).collect();
            let host = u8::try_from(host).expect("two");
            Endpoint::new(endpoint, [seed.wrapping_add(host); 32], Duration::ZERO)
        };
        let direction =
            || Direction { free_at: Duration::ZERO, leaving: std::collections::VecDeque::new() };
        let mut world = Self {
            now: Duration::ZERO,
            hosts: [host(A), host(B)],
            links: links.to_vec(),
            user,
            events: Vec::new(),
            tallies: vec![Tally::default(); streams],
            handed_in: vec![0; streams],
            delivered: vec![0; streams],
            parts: vec![Vec::new(); streams],
            share: config.send_buffer / streams,
            turn: 0,
            directions: links.iter().map(|_| [direction(), direction()]).collect(),
            arrivals: BinaryHeap::new(),
            under_way: BTreeMap::new(),
            sequence: 0,
            timeouts: [None; 2],
            random: 0x9e37_79b9_7f4a_7c15 ^ u64::from(seed),
            association: None,
        };
        let mut options = ConnectOptions::new(SocketAddr::new(address(B, 0), 0), PORT);
        options.remotes =
            (0..links.len()).map(|path| SocketAddr::new(address(B, path), 0)).collect();
        options.association = config.clone();
        world.association = world.hosts[A].connect(world.now, &options).ok();
        world
    }

    /// The association at the sender.
    pub(crate) fn id(&self) -> AssociationId {
        self.association.expect("connected")
    }

    /// What the sender knows of it.
    pub(crate) fn status(&self) -> Status {
        self.hosts[A].status(self.id()).expect("it lives")
    }

    /// Forgets what arrived so far.
    pub(crate) fn start_measuring(&mut self) {
        self.tallies.fill(Tally::default());
    }

    /// Bits of user data a second in millions, since [`Self::start_measuring`], so long ago.
    pub(crate) fn throughput(&self, time: Duration) -> f64 {
        let messages: u64 = self.tallies.iter().map(|tally| tally.messages).sum();
        messages as f64 * MESSAGE as f64 * 8.0 / time.as_secs_f64() / 1e6
    }

    /// Lets time pass until then.
    pub(crate) fn run_until(&mut self, end: Duration) {
        loop {
            self.drain();
            let arrival = self.arrivals.peek().map(|Reverse((at, _))| *at);
            let timeouts = self.timeouts.into_iter().flatten();
            let Some(next) = arrival.into_iter().chain(timeouts).min().filter(|next| *next <= end)
            else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        if let Some(Reverse((at, sequence))) = self.arrivals.peek().copied()
            && at <= now
        {
            self.arrivals.pop();
            if let Some((to, received)) = self.under_way.remove(&sequence) {
                self.hosts[to].handle_input(now, Input::Packets(received));
            }
            return;
        }
        for host in [A, B] {
            if self.timeouts[host].is_some_and(|at| at <= now) {
                self.timeouts[host] = None;
                self.hosts[host].handle_input(now, Input::Tick);
            }
        }
    }

    fn drain(&mut self) {
        for host in [A, B] {
            self.read(host);
            if host == A {
                self.hand_in();
            }
            loop {
                match self.hosts[host].poll_output(self.now) {
                    Output::Transmit(transmit) => self.transmit(host, &transmit),
                    Output::Event(_, event) if host == A => self.events.push((self.now, event)),
                    Output::Timeout(at) => {
                        assert!(at.is_none_or(|at| at > self.now), "a timeout that is due");
                        self.timeouts[host] = at;
                        break;
                    }
                    _ => {}
                }
            }
        }
    }

    /// The user sends.
    fn hand_in(&mut self) {
        let (id, streams) = (self.id(), self.tallies.len());
        let mut skipped = 0;
        while self.user != User::Silent && skipped < streams {
            let stream = StreamId(u16::try_from(self.turn).expect("few"));
            if self.user == User::ByQueueInfo {
                let queued = self.hosts[A].stream_queue(id, stream).map_or(0, |it| it.total());
                if queued >= self.share {
                    self.turn = (self.turn + 1) % streams;
                    skipped += 1;
                    continue;
                }
            }
            let mut data = BytesMut::with_capacity(MESSAGE);
            data.put_u64(u64::try_from(self.now.as_nanos()).expect("early"));
            data.put_u64(self.handed_in[self.turn]);
            data.resize(MESSAGE, 0x5a);
            let info = SendInfo { stream, ..SendInfo::default() };
            if self.hosts[A].send(self.now, id, &info, data.freeze()).is_err() {
                return;
            }
            self.handed_in[self.turn] += 1;
            self.turn = (self.turn + 1) % streams;
            skipped = 0;
        }
    }

    /// The user receives: each message once, in the order of its stream.
    fn read(&mut self, host: usize) {
        for id in self.hosts[host].associations() {
            while let Some(message) = self.hosts[host].receive(self.now, id) {
                let stream = usize::from(message.stream.0);
                // It may come in parts.
                let ends = message.ends;
                let part = &mut self.parts[stream];
                part.extend_from_slice(&message.into_bytes());
                if !ends {
                    continue;
                }
                let data = core::mem::take(part);
                assert_eq!(data.len(), MESSAGE);
                let number = |at: usize| data[at..at + 8].try_into().map(u64::from_be_bytes);
                let (sent, count) = (number(0).expect("8 bytes"), number(8).expect("8 bytes"));
                assert_eq!(count, self.delivered[stream], "stream {stream}");
                self.delivered[stream] += 1;
                self.tallies[stream].messages += 1;
                self.tallies[stream].delays += self.now - Duration::from_nanos(sent);
            }
        }
    }

    fn transmit(&mut self, from: usize, transmit: &Transmit) {
        let IpAddr::V4(remote) = transmit.remote.ip() else { panic!("no IPv6 here") };
        let path = usize::from(remote.octets()[2]);
        for start in (0..transmit.contents.len()).step_by(transmit.segment_size) {
            let end = transmit.contents.len().min(start + transmit.segment_size);
            self.send_packet(1 - from, path, transmit.contents.slice(start..end));
        }
    }

    fn send_packet(&mut self, to: usize, path: usize, packet: Bytes) {
        let (lost, wait) = (self.draw() % 1_000_000, self.draw());
        let (now, link) = (self.now, self.links[path]);
        let direction = &mut self.directions[path][to];
        while direction.leaving.front().is_some_and(|at| *at <= now) {
            direction.leaving.pop_front();
        }
        if link.cut || direction.leaving.len() > QUEUE {
            return;
        }
        let bits = (packet.len() + HEADERS) as u64 * 8;
        direction.free_at =
            direction.free_at.max(now) + Duration::from_nanos(bits * 1_000_000_000 / link.rate);
        direction.leaving.push_back(direction.free_at);
        if lost < link.loss {
            return;
        }
        let jitter = link.jitter.as_nanos().max(1) as u64;
        let arrival = direction.free_at + link.delay + Duration::from_nanos(wait % jitter);
        let received = Received {
            local: Some(address(to, path)),
            remote: SocketAddr::new(address(1 - to, path), 0),
            ecn: Ecn::NotCapable,
            segment_size: packet.len(),
            contents: packet,
        };
        self.sequence += 1;
        self.arrivals.push(Reverse((arrival, self.sequence)));
        self.under_way.insert(self.sequence, (to, received));
    }

    /// Marsaglia's xorshift, from bit 16.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 16
    }
}
