//! The hosts, routers and links of a set-up.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use eyas_emulator::middlebox::{BoxedMiddlebox, MiddleboxConfig};
use eyas_emulator::units::{BitRate, TimeSpan};
use eyas_netem::link::{LinkChange, LinkConfig, QueueConfig};
use eyas_netem::middlebox::MiddleboxNode;
use eyas_netem::random::derive;
use eyas_netem::router::Router;
use eyas_netem::world::{LinkDirection, LinkId, NodeId, World, WorldAction};
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};

use super::application::{MessageSink, SaturatedSender};
use super::host::{HostInterface, HostTask, PORT, SimulatedHost, SimulatedNode};
use super::options;
use super::payload::{self, SctpPayload};
use crate::run::PathResult;
use crate::situation::{
    ApplicationSetup, AssociationSetup, PathSetup, SimulationSetup, SimulationTimes,
};

/// The queue length of an access link, in packets: longer than a sender's bursts.
pub const ACCESS_QUEUE: usize = 1000;
/// The size of the largest IP packet that a bottleneck passes, in bytes.
const MTU: usize = 1500;
/// The number of the host whose address a NAT has, and a box that answers. There is none, so that
/// for a receiver it is beyond the bottleneck.
const NAT: u8 = 255;
/// The router's interface towards the other end of its bottleneck.
const BOTTLENECK: u32 = 0;
/// The purposes of our random numbers, in addition to those of the world.
const PURPOSE_START: u64 = 101;
const PURPOSE_ENDPOINT: u64 = 102;

/// The world of a set-up.
pub(super) struct SimulatedNetwork {
    pub(super) world: World<SimulatedNode, SctpPayload>,
    /// The bottlenecks by the name of their path.
    pub(super) bottlenecks: BTreeMap<String, LinkId>,
    sender: NodeId,
    receiver: NodeId,
    rivals: Vec<(String, NodeId)>,
}

/// Two hosts that communicate with each other.
struct HostPair<'a> {
    /// 0 is the measured one; rivals follow.
    number: u8,
    /// Its paths in the order in which the hosts learn of them, with their numbers.
    paths: Vec<(u8, &'a str, &'a PathSetup)>,
    association: &'a AssociationSetup,
    application: ApplicationSetup,
}

/// The two routers of a bottleneck, and the number of their interfaces in use.
#[derive(Default)]
struct RouterPair {
    left: Router<SctpPayload>,
    right: Router<SctpPayload>,
    taken: u32,
}

/// A bottleneck in the world: its link, and the routers at its ends.
#[derive(Clone, Debug)]
struct BottleneckEnds {
    left: NodeId,
    right: NodeId,
    link: LinkId,
}

impl SimulatedNetwork {
    pub(super) fn build(setup: &SimulationSetup, seed: u64) -> Self {
        let mut world = World::new(seed);
        let pairs = pairs(setup);
        let ends = connect_bottlenecks(&mut world, setup, &pairs);
        let mut taken: BTreeMap<&str, u32> = BTreeMap::new();
        let (mut receivers, mut senders) = (Vec::new(), Vec::new());
        for pair in &pairs {
            let (sender, receiver) = add_hosts(&mut world, pair, setup, seed);
            for (rank, (_, name, path)) in pair.paths.iter().enumerate() {
                let at = bottleneck_of(name, path);
                let Some(ends) = ends.get(at) else { continue };
                let interface = taken.entry(at).or_insert(BOTTLENECK);
                *interface += 1;
                let access = access(setup);
                let rank = rank as u32;
                for (host, router) in [(sender, ends.left), (receiver, ends.right)] {
                    world.connect(
                        (host, rank),
                        (router, *interface),
                        access.clone(),
                        access.clone(),
                    );
                }
            }
            plan_joins(&mut world, pair, sender, receiver);
            receivers.push(receiver);
            senders.push(sender);
        }
        let bottlenecks =
            ends.into_iter().map(|(name, ends)| (name.to_owned(), ends.link)).collect();
        let names = setup.rival.keys().cloned();
        let rivals = names.zip(receivers.iter().skip(1).copied()).collect();
        let (sender, receiver) = (senders[0], receivers[0]);
        let mut network = Self { world, bottlenecks, sender, receiver, rivals };
        network.plan_events(setup);
        network
    }

    /// Schedules the changes of the set-up.
    fn plan_events(&mut self, setup: &SimulationSetup) {
        for event in &setup.event {
            let Some(path) = setup.path.get(&event.path) else { continue };
            let Some(link) = self.bottlenecks.get(bottleneck_of(&event.path, path)) else {
                continue;
            };
            let back = &path.back;
            let has_rate = back.rate.is_some() || back.trace.is_some();
            let rate = |rate: BitRate| LinkChange::Rate(Some(rate.0));
            let delay = |delay: TimeSpan| LinkChange::Delay(delay.0);
            let up = || event.up.map(|up| if up { LinkChange::Up } else { LinkChange::Down });
            let there = [event.rate.map(rate), event.delay.map(delay), up()];
            let back = [
                event.back.rate.or(event.rate.filter(|_| !has_rate)).map(rate),
                event.back.delay.or(event.delay.filter(|_| back.delay.is_none())).map(delay),
                up(),
            ];
            for (direction, changes) in
                [(LinkDirection::Forward, there), (LinkDirection::Backward, back)]
            {
                for change in changes.into_iter().flatten() {
                    let action =
                        WorldAction::Link { link: *link, direction: Some(direction), change };
                    self.world.schedule(event.at.0, action);
                }
            }
        }
    }

    /// Starts counting.
    pub(super) fn begin_measuring(&mut self) {
        let now = self.world.now();
        let measured = [self.receiver, self.sender];
        let receivers = self.rivals.iter().map(|(_, node)| *node).chain(measured);
        for node in receivers.collect::<Vec<_>>() {
            if let SimulatedNode::Host(host) = self.world.node_mut(node) {
                host.begin_measuring(now);
            }
        }
    }

    /// Returns what every bottleneck has done so far.
    pub(super) fn path_counts(&self) -> Vec<PathResult> {
        let count = |(name, link): (&String, &LinkId)| {
            let counters = self.world.link_counters(*link, LinkDirection::Forward);
            PathResult {
                name: name.clone(),
                packets: counters.delivered.packets,
                bytes: counters.delivered.bytes,
                dropped: counters.total_dropped().packets,
                back_bytes: self
                    .world
                    .link_counters(*link, LinkDirection::Backward)
                    .delivered
                    .bytes,
            }
        };
        self.bottlenecks.iter().map(count).collect()
    }

    /// Returns the sink of the measured association.
    pub(super) fn sink(&self) -> MessageSink {
        self.sink_of(self.receiver)
    }

    /// Returns the sink at the other end of the measured association.
    pub(super) fn sink_of_sender(&self) -> MessageSink {
        self.sink_of(self.sender)
    }

    /// Returns the sinks of the others, by name.
    pub(super) fn rivals(&self) -> impl Iterator<Item = (&str, MessageSink)> {
        self.rivals.iter().map(|(name, node)| (name.as_str(), self.sink_of(*node)))
    }

    fn sink_of(&self, node: NodeId) -> MessageSink {
        match self.world.node(node) {
            SimulatedNode::Host(host) => host.sink().cloned().unwrap_or_default(),
            SimulatedNode::Router(_) | SimulatedNode::Middlebox(_) => MessageSink::default(),
        }
    }
}

/// Returns the measured association, then the rivals in the order of their names.
fn pairs(setup: &SimulationSetup) -> Vec<HostPair<'_>> {
    let numbered =
        || (0..).zip(&setup.path).map(|(number, (name, path))| (number, name.as_str(), path));
    let mut used_paths: Vec<_> =
        numbered().filter(|(_, name, _)| setup.association.uses(name)).collect();
    // Paths are numbered in the order in which the hosts learn of them; the sort is stable.
    used_paths.sort_by_key(|(_, _, path)| path.joins);
    let first = HostPair {
        number: 0,
        paths: used_paths,
        association: &setup.association,
        application: setup.application,
    };
    let rivals = (1..).zip(setup.rival.values()).map(|(number, rival)| HostPair {
        number,
        paths: numbered().filter(|(_, name, _)| *name == rival.path).collect(),
        association: &rival.association,
        application: ApplicationSetup {
            streams: 1,
            both_ways: false,
            keystrokes: None,
            ..setup.application
        },
    });
    std::iter::once(first).chain(rivals).collect()
}

/// Returns the path whose link a path uses.
fn bottleneck_of<'a>(name: &'a str, path: &'a PathSetup) -> &'a str {
    path.through.as_deref().unwrap_or(name)
}

/// Creates two routers and a link for each path that has one, with routes to every host.
fn connect_bottlenecks<'a>(
    world: &mut World<SimulatedNode, SctpPayload>,
    setup: &'a SimulationSetup,
    pairs: &[HostPair<'a>],
) -> BTreeMap<&'a str, BottleneckEnds> {
    let mut routers: BTreeMap<&str, RouterPair> = BTreeMap::new();
    for pair in pairs {
        for (path, name, setup) in &pair.paths {
            let at = routers.entry(bottleneck_of(name, setup)).or_default();
            at.taken += 1;
            let hosts = (address(*path, pair.number * 2), address(*path, pair.number * 2 + 1));
            at.left = std::mem::take(&mut at.left).host(hosts.0, at.taken);
            at.right = std::mem::take(&mut at.right).host(hosts.1, at.taken);
        }
    }
    let everything: IpAddr = [0, 0, 0, 0].into();
    let mut ends = BTreeMap::new();
    for (number, (name, path)) in (0..).zip(&setup.path) {
        if path.through.is_some() {
            continue;
        }
        let RouterPair { left, right, .. } = routers.remove(name.as_str()).unwrap_or_default();
        let left = world.add_node(SimulatedNode::Router(left.route(everything, 0, BOTTLENECK)));
        let right = world.add_node(SimulatedNode::Router(right.route(everything, 0, BOTTLENECK)));
        let there = bottleneck(path);
        let back = bottleneck(&path.reversed());
        let inner = connect_middleboxes(world, path, number, (left, BOTTLENECK));
        let link = world.connect(inner, (right, BOTTLENECK), there, back);
        ends.insert(name.as_str(), BottleneckEnds { left, right, link });
    }
    ends
}

/// Creates the middleboxes of a path, from this router on, and returns where its link begins.
fn connect_middleboxes(
    world: &mut World<SimulatedNode, SctpPayload>,
    path: &PathSetup,
    number: u8,
    router: (NodeId, u32),
) -> (NodeId, u32) {
    let mut end = router;
    let own = ipv4(number, NAT);
    // A set-up was checked when it was parsed.
    for config in path.middlebox.iter().filter_map(|spec| MiddleboxConfig::from_spec(spec).ok()) {
        for (_, middlebox) in config.build(Some(own), &[own.into()]) {
            let node = world.add_node(SimulatedNode::Middlebox(MiddleboxNode(middlebox)));
            let inside = (node, MiddleboxNode::<BoxedMiddlebox>::INSIDE);
            world.connect(end, inside, LinkConfig::default(), LinkConfig::default());
            end = (node, MiddleboxNode::<BoxedMiddlebox>::OUTSIDE);
        }
    }
    end
}

fn add_hosts(
    world: &mut World<SimulatedNode, SctpPayload>,
    pair: &HostPair<'_>,
    setup: &SimulationSetup,
    seed: u64,
) -> (NodeId, NodeId) {
    let names: Vec<&str> = pair.paths.iter().map(|(_, name, _)| *name).collect();
    let mut config = options::config(pair.association, pair.application.all_streams(), &names);
    config.extensions.dynamic_addresses |= pair.paths.iter().any(|(.., path)| path.joins.is_some());
    let application = pair.application;
    let known = || {
        let from_start = |(_, (.., path)): &(usize, &(u8, &str, &PathSetup))| path.joins.is_none();
        pair.paths.iter().enumerate().filter(from_start)
    };
    let sending: Vec<HostInterface> =
        known().map(|(rank, (path, ..))| interface(pair, rank, *path)).collect();
    let receiving: Vec<HostInterface> = sending.iter().map(HostInterface::mirrored).collect();
    let mut connect = ConnectOptions::new((sending[0].peer, 0).into(), PORT);
    connect.remotes = sending.iter().map(|interface| (interface.peer, 0).into()).collect();
    connect.association = config.clone();
    let role = HostTask {
        opens: Some((start(&setup.time, pair.number, seed), Box::new(connect))),
        sender: Some(SaturatedSender::new(application, config.send_buffer)),
        sink: application.both_ways.then(MessageSink::default),
    };
    let endpoint = |interfaces: &[HostInterface], port: Option<u16>, config: AssociationConfig| {
        let mut options = EndpointConfig::default();
        options.listen_port = port;
        options.addresses = interfaces.iter().map(|interface| interface.local).collect();
        options.association = config;
        options.packets = payload::form(setup.mode);
        options
    };
    let secret = |side: u64| secret(seed, u64::from(pair.number) * 2 + side);
    let sender =
        SimulatedHost::new(endpoint(&sending, None, config.clone()), sending, role, secret(0));
    let bulk = ApplicationSetup { keystrokes: None, ..application };
    let role = HostTask {
        opens: None,
        sender: application.both_ways.then(|| SaturatedSender::new(bulk, config.send_buffer)),
        sink: Some(MessageSink::from_setup(&application)),
    };
    let receiver =
        SimulatedHost::new(endpoint(&receiving, Some(PORT), config), receiving, role, secret(1));
    let sender = world.add_node(SimulatedNode::Host(Box::new(sender)));
    let receiver = world.add_node(SimulatedNode::Host(Box::new(receiver)));
    (sender, receiver)
}

/// Returns the sender's interface on a path with this rank and number.
fn interface(pair: &HostPair<'_>, rank: usize, path: u8) -> HostInterface {
    HostInterface {
        number: rank as u32,
        local: address(path, pair.number * 2),
        peer: address(path, pair.number * 2 + 1),
    }
}

/// Schedules the paths that both hosts learn of later.
fn plan_joins(
    world: &mut World<SimulatedNode, SctpPayload>,
    pair: &HostPair<'_>,
    sender: NodeId,
    receiver: NodeId,
) {
    for (rank, (path, _, setup)) in pair.paths.iter().enumerate() {
        let Some(at) = setup.joins else { continue };
        let interface = interface(pair, rank, *path);
        for (node, interface) in [(sender, interface), (receiver, interface.mirrored())] {
            let join = move |station: &mut SimulatedNode, now: Duration| {
                if let SimulatedNode::Host(host) = station {
                    host.join(now, interface);
                }
            };
            world.schedule(at.0, WorldAction::node(node, join));
        }
    }
}

/// Returns when an association is opened: uniformly distributed between the given times.
fn start(time: &SimulationTimes, pair: u8, seed: u64) -> Duration {
    let [first, last] = time.start;
    let drawn = derive(seed, PURPOSE_START, u64::from(pair));
    let span = last.0.saturating_sub(first.0).as_nanos();
    first.0 + Duration::from_nanos(((span * u128::from(drawn)) >> 64) as u64)
}

/// Returns the secret from which an endpoint derives its tags and cookies.
fn secret(seed: u64, endpoint: u64) -> [u8; 32] {
    let mut secret = [0; 32];
    for (part, bytes) in (0..).zip(secret.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&derive(seed, PURPOSE_ENDPOINT + part, endpoint).to_be_bytes());
    }
    secret
}

/// Returns the address of a host with this number on this path.
fn address(path: u8, host: u8) -> IpAddr {
    ipv4(path, host).into()
}

const fn ipv4(path: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, path, host, 1)
}

fn access(setup: &SimulationSetup) -> LinkConfig {
    LinkConfig {
        queue: QueueConfig::Packets(ACCESS_QUEUE),
        ..LinkConfig::new(setup.access.rate.0, setup.access.delay.0)
    }
}

/// Returns the link of a path towards the receiver.
pub(crate) fn bottleneck(path: &PathSetup) -> LinkConfig {
    let mut link = LinkConfig { mtu: Some(MTU), ..LinkConfig::default() };
    path.link().apply(&mut link);
    link
}
