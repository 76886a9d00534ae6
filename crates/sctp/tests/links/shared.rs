//! Several associations at once, whose networks share bottlenecks or do not.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::{Ecn, Input, Output, Received, Transmit};
use eyas_sctp::message::SendInfo;

const PORT: u16 = 7;
const UDP: u16 = 9899;
const MESSAGE: usize = 1400;
/// Bytes of IP and UDP header on the link.
const HEADERS: usize = 28;
const SECOND: u64 = 1_000_000_000;

/// What the packets of several networks wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bottleneck {
    /// Bits a second.
    pub(crate) rate: u64,
    /// Packets that the queue holds.
    pub(crate) queue: usize,
    /// One way, and the same way back, where nothing waits.
    pub(crate) delay: Duration,
    /// Packets of a million that are lost.
    pub(crate) loss: u64,
    /// Whether packets are dropped by chance before the queue is full: the more, the longer it is
    /// (RED, with the queue as it is for its average). Else whoever comes when it is full is dropped.
    pub(crate) early: bool,
}

/// Packets of a million that are dropped early where the queue is nearly full.
const EARLY: u64 = 50_000;

/// An association that always has something to send, over these networks.
struct Flow {
    ends: [Endpoint; 2],
    timeouts: [Option<Duration>; 2],
    id: AssociationId,
    /// The bottleneck of each network.
    networks: Vec<usize>,
    /// Bytes of user data that came.
    delivered: usize,
}

/// What arrives, and where.
struct Arrival {
    flow: usize,
    end: usize,
    received: Received,
}

pub(crate) struct Shared {
    now: Duration,
    bottlenecks: Vec<Bottleneck>,
    /// When the packets in the queue of each have gone.
    queues: Vec<VecDeque<Duration>>,
    flows: Vec<Flow>,
    arrivals: BTreeMap<u64, Arrival>,
    order: BinaryHeap<Reverse<(Duration, u64)>>,
    /// When the last packet of a flow arrives on a network: packets do not overtake each other.
    last: BTreeMap<(usize, usize, usize), Duration>,
    number: u64,
    random: u64,
}

fn address(end: usize, network: usize) -> IpAddr {
    let [network, end] = [network, end + 1].map(|part| u8::try_from(part).unwrap());
    Ipv4Addr::new(10, 0, network, end).into()
}

impl Shared {
    /// Each flow has its configuration and the bottlenecks of its networks.
    pub(crate) fn new(
        bottlenecks: &[Bottleneck],
        flows: &[(AssociationConfig, Vec<usize>)],
        seed: u64,
    ) -> Self {
        let flows = flows.iter().enumerate();
        let flows = flows.map(|(at, (config, networks))| flow(at, config, networks)).collect();
        Self {
            now: Duration::ZERO,
            bottlenecks: bottlenecks.to_vec(),
            queues: vec![VecDeque::new(); bottlenecks.len()],
            flows,
            arrivals: BTreeMap::new(),
            order: BinaryHeap::new(),
            last: BTreeMap::new(),
            number: 0,
            random: 0x9e37_79b9_7f4a_7c15 ^ seed,
        }
    }

    /// Bytes of user data that each flow delivered in so many seconds more, as a rate in bit/s.
    pub(crate) fn run(&mut self, seconds: u64) -> Vec<u64> {
        let before: Vec<usize> = self.flows.iter().map(|flow| flow.delivered).collect();
        let end = self.now + Duration::from_secs(seconds);
        loop {
            for flow in 0..self.flows.len() {
                self.drain(flow);
            }
            let arrival = self.order.peek().map(|next| next.0.0);
            let timeouts = self.flows.iter().flat_map(|flow| flow.timeouts).flatten();
            let next = timeouts.chain(arrival).min().filter(|next| *next <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            self.step();
        }
        self.now = end;
        let flows = self.flows.iter().zip(before);
        flows.map(|(flow, before)| (flow.delivered - before) as u64 * 8 / seconds).collect()
    }

    fn step(&mut self) {
        let now = self.now;
        for flow in &mut self.flows {
            for (end, timeout) in flow.ends.iter_mut().zip(&mut flow.timeouts) {
                if timeout.is_some_and(|at| at <= now) {
                    *timeout = None;
                    end.handle_input(now, Input::Tick);
                }
            }
        }
        while let Some(Reverse((at, number))) = self.order.peek().copied()
            && at <= now
        {
            self.order.pop();
            let arrival = self.arrivals.remove(&number).unwrap();
            let end = &mut self.flows[arrival.flow].ends[arrival.end];
            end.handle_input(now, Input::Packets(arrival.received));
        }
    }

    fn drain(&mut self, at: usize) {
        let now = self.now;
        let mut left = Vec::new();
        let flow = &mut self.flows[at];
        let data = Bytes::from_static(&[0x5a; MESSAGE]);
        while flow.ends[0].send(now, flow.id, &SendInfo::default(), data.clone()).is_ok() {}
        for end in [1, 0] {
            loop {
                match flow.ends[end].poll_output(now) {
                    Output::Transmit(transmit) => left.push((end, transmit)),
                    Output::Timeout(at) => {
                        flow.timeouts[end] = at;
                        break;
                    }
                    _ => {}
                }
            }
            if end == 1 {
                for id in flow.ends[1].associations() {
                    while let Some(message) = flow.ends[1].receive(now, id) {
                        flow.delivered += message.len();
                    }
                }
            }
        }
        for (end, transmit) in left {
            self.transmit(at, end, &transmit);
        }
    }

    fn transmit(&mut self, flow: usize, end: usize, transmit: &Transmit) {
        let IpAddr::V4(remote) = transmit.remote.ip() else { panic!("no IPv6 here") };
        let network = usize::from(remote.octets()[2]);
        for start in (0..transmit.contents.len()).step_by(transmit.segment_size) {
            let last = transmit.contents.len().min(start + transmit.segment_size);
            let contents = transmit.contents.slice(start..last);
            let Some(at) = self.pass(flow, end, network, contents.len()) else { continue };
            let received = Received {
                local: Some(address(1 - end, network)),
                remote: SocketAddr::new(address(end, network), UDP),
                ecn: Ecn::NotCapable,
                segment_size: contents.len(),
                contents,
            };
            self.number += 1;
            self.order.push(Reverse((at, self.number)));
            self.arrivals.insert(self.number, Arrival { flow, end: 1 - end, received });
        }
    }

    /// When a packet arrives, if it does.
    fn pass(&mut self, flow: usize, end: usize, network: usize, length: usize) -> Option<Duration> {
        let lost = self.draw() % 1_000_000;
        let chance = self.draw() % 1_000_000;
        // Hosts are never quite in step: without that, whom a full queue drops is no chance.
        let jitter = Duration::from_nanos(self.draw() % 1_000_000);
        let which = self.flows[flow].networks[network];
        let bottleneck = self.bottlenecks[which];
        let mut gone = self.now;
        if end == 0 {
            let queue = &mut self.queues[which];
            while queue.front().is_some_and(|gone| *gone <= self.now) {
                queue.pop_front();
            }
            if queue.len() >= bottleneck.queue {
                return None;
            }
            let early = EARLY * queue.len() as u64 / bottleneck.queue as u64;
            if bottleneck.early && chance < early {
                return None;
            }
            let bits = (length + HEADERS) as u64 * 8;
            let service = Duration::from_nanos(bits * SECOND / bottleneck.rate);
            gone = queue.back().copied().unwrap_or(self.now) + service;
            queue.push_back(gone);
            if lost < bottleneck.loss {
                return None;
            }
        }
        let last = self.last.entry((flow, end, network)).or_default();
        *last = (gone + bottleneck.delay + jitter).max(*last);
        Some(*last)
    }

    /// Marsaglia's xorshift, from bit 16.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 16
    }
}

fn flow(at: usize, config: &AssociationConfig, networks: &[usize]) -> Flow {
    let seed = u8::try_from(at).unwrap() * 2;
    let endpoint = |end: usize| {
        let mut endpoint = EndpointConfig::default();
        endpoint.listen_port = Some(PORT);
        endpoint.association = config.clone();
        endpoint.addresses = (0..networks.len()).map(|network| address(end, network)).collect();
        Endpoint::new(endpoint, [seed + u8::try_from(end).unwrap(); 32], Duration::ZERO)
    };
    let mut ends = [endpoint(0), endpoint(1)];
    let mut options = ConnectOptions::new(SocketAddr::new(address(1, 0), UDP), PORT);
    options.association = config.clone();
    let id = ends[0].connect(Duration::ZERO, &options).unwrap();
    Flow { ends, timeouts: [None; 2], id, networks: networks.to_vec(), delivered: 0 }
}
