//! A world of nodes and links in virtual time.
//!
//! The world keeps the time, and delivers packets and timers in the order of their times, and for
//! equal times in the order in which they were requested. The same world with the same seed behaves
//! identically, to the nanosecond. Its agenda has at most one entry for each node and each
//! direction of a link, so an event costs the logarithm of the number of those that have something
//! to do.
//!
//! The contents of a packet after its IP header are a type parameter, `PacketPayload`, of which the world
//! needs only the length. They are encoded to bytes only for consumers that look inside: a capture,
//! a middlebox (whose output stays bytes), bit errors.

mod action;
mod agenda;
mod observation;
#[cfg(test)]
mod tests;

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

pub use action::{NodeChange, WorldAction, WorldChange};
pub use observation::{TapPoint, WorldObservation, WorldRecord};

use crate::link::{DropCause, Link, LinkChange, LinkConfig, LinkCounters};
use crate::node::{Node, NodeInput, NodeOutput};
use crate::packet::{Packet, PacketPayload};
use crate::random;
use crate::time::{EpochNanos, nanos};
use action::ScheduledAction;
use agenda::WorldAgenda;
use observation::{CaptureTap, WorldObservers};

/// The entity kind of a link for [`random::derive`].
const LINK: u64 = 1;
/// The entity kind of a node for [`random::derive`].
const NODE: u64 = 2;

/// The maximum number of interfaces of a node: numbers are an index, and one too large is a
/// mistake.
pub const MAX_INTERFACES: u32 = 1 << 16;

/// The maximum number of nodes in a world.
pub const MAX_NODES: u32 = agenda::MAX_ENTITIES / 2;

/// The maximum number of links in a world, each with two directions.
pub const MAX_LINKS: u32 = agenda::MAX_ENTITIES / 4;

/// A node of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// A link of a world, with both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkDirection {
    /// From the first end passed to [`World::connect`].
    Forward,
    /// Towards the first end.
    Backward,
}

/// The world's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorldCounters {
    /// Packets delivered, timers and actions.
    pub events: u64,
    /// Packets sent on an interface without a link.
    pub unconnected: u64,
}

struct NodeSlot<N> {
    node: N,
    started: bool,
    /// The direction of a link that each interface sends into.
    interfaces: Vec<Option<u32>>,
}

/// One direction of a link.
struct LinkSlot<B> {
    link: Link<Packet<B>>,
    /// The node and its interface at the far end.
    to: (u32, u32),
    tap: CaptureTap,
}

/// Nodes, links, and the time.
///
/// `N` is the type of all nodes: an enum, or `Box<dyn Node>`. `B` is the type of packet payloads:
/// bytes, or values with a length, the only property that the world uses.
pub struct World<N, B = Bytes> {
    now: EpochNanos,
    seed: u64,
    nodes: Vec<NodeSlot<N>>,
    links: Vec<LinkSlot<B>>,
    agenda: WorldAgenda,
    actions: BinaryHeap<ScheduledAction<N, B>>,
    scheduled: u64,
    counters: WorldCounters,
    observers: WorldObservers,
}

/// The entities of the agenda: nodes have even numbers, directions of links odd ones.
const fn node_entity(node: u32) -> u32 {
    node * 2
}

const fn link_entity(direction: u32) -> u32 {
    direction * 2 + 1
}

impl<N: Node<B>, B: PacketPayload> World<N, B> {
    /// Creates an empty world at time zero.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            now: 0,
            seed,
            nodes: Vec::new(),
            links: Vec::new(),
            agenda: WorldAgenda::default(),
            actions: BinaryHeap::new(),
            scheduled: 0,
            counters: WorldCounters::default(),
            observers: WorldObservers::default(),
        }
    }

    /// Adds a node, which is started at the current time once the world runs.
    ///
    /// # Panics
    ///
    /// If there are [`MAX_NODES`] already.
    pub fn add_node(&mut self, node: N) -> NodeId {
        let id = self.nodes.len() as u32;
        assert!(id < MAX_NODES, "{id} nodes");
        self.nodes.push(NodeSlot { node, started: false, interfaces: Vec::new() });
        self.agenda.set(node_entity(id), Some(self.now));
        NodeId(id)
    }

    /// Returns a seed for the next node to be added, or for the one with this number: nodes are
    /// numbered from 0 in the order of adding.
    #[must_use]
    pub const fn node_seed(&self, number: u64) -> u64 {
        random::derive(self.seed, NODE, number)
    }

    /// Connects two interfaces by a link: `forward` leads from `first` to `second`. An interface
    /// that already has a link uses the new one from now on; packets in flight on the old one still
    /// arrive.
    ///
    /// The randomness of a direction is derived from the seed of the world and the sending
    /// interface, so it does not depend on other links.
    ///
    /// # Panics
    ///
    /// If the number of an interface is [`MAX_INTERFACES`] or more, or there are [`MAX_LINKS`]
    /// already.
    pub fn connect(
        &mut self,
        first: (NodeId, u32),
        second: (NodeId, u32),
        forward: LinkConfig,
        backward: LinkConfig,
    ) -> LinkId {
        let id = LinkId((self.links.len() / 2) as u32);
        assert!(id.0 < MAX_LINKS, "{} links", id.0);
        for (from, to, config) in [(first, second, forward), (second, first, backward)] {
            assert!(from.1 < MAX_INTERFACES, "interface {} of {:?}", from.1, from.0);
            let interface = from.1 as usize;
            let entity = u64::from(from.0.0) << 32 | u64::from(from.1);
            let link = Link::new(config, random::derive(self.seed, LINK, entity));
            let slot = &mut self.nodes[from.0.0 as usize];
            if interface >= slot.interfaces.len() {
                slot.interfaces.resize(interface + 1, None);
            }
            slot.interfaces[interface] = Some(self.links.len() as u32);
            self.links.push(LinkSlot { link, to: (to.0.0, to.1), tap: CaptureTap::default() });
        }
        id
    }

    /// Schedules an action, at the current time if `time` has passed. Actions are executed before
    /// events at the same time.
    pub fn schedule(&mut self, time: Duration, action: WorldAction<N, B>) {
        self.scheduled += 1;
        let time = nanos(time).max(self.now);
        self.actions.push(ScheduledAction { time, sequence: self.scheduled, action });
    }

    /// Runs up to and including `time`.
    pub fn run_until(&mut self, time: Duration) {
        let until = nanos(time);
        while self.step_by(until) {}
        self.now = self.now.max(until);
    }

    /// Executes the next event and returns its time; `None` if there is none.
    pub fn step(&mut self) -> Option<Duration> {
        self.step_by(EpochNanos::MAX).then(|| self.now())
    }

    /// Executes the next event up to and including `until`; returns whether there was one.
    fn step_by(&mut self, until: EpochNanos) -> bool {
        let action = self.actions.peek().map(|scheduled| scheduled.time);
        match (action, self.agenda.first()) {
            (Some(time), first) if first.is_none_or(|(next, _)| time <= next) => {
                if time > until {
                    return false;
                }
                self.now = self.now.max(time);
                if let Some(scheduled) = self.actions.pop() {
                    self.counters.events += 1;
                    self.execute(scheduled.action);
                }
            }
            (_, Some((time, entity))) if time <= until => {
                self.now = self.now.max(time);
                if entity % 2 == 0 {
                    self.wake_node(entity / 2);
                } else {
                    self.deliver_arrivals(entity / 2);
                }
            }
            _ => return false,
        }
        true
    }

    /// Returns the time of the next event; `None` if there is none.
    #[must_use]
    pub fn next_event(&self) -> Option<Duration> {
        self.next().map(Duration::from_nanos)
    }

    /// Returns the current time since the start of the world.
    #[must_use]
    pub const fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Returns the number of events: packets delivered to nodes, timers, and actions.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.counters.events
    }

    /// Returns the world's own counters.
    #[must_use]
    pub const fn counters(&self) -> &WorldCounters {
        &self.counters
    }

    /// Returns a node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id.0 as usize].node
    }

    /// Returns a node for changes that do not make it produce new output; otherwise use
    /// [`Self::with_node`].
    pub fn node_mut(&mut self, id: NodeId) -> &mut N {
        &mut self.nodes[id.0 as usize].node
    }

    /// Changes a node and processes its resulting output.
    pub fn with_node<T>(&mut self, id: NodeId, change: impl FnOnce(&mut N, Duration) -> T) -> T {
        let now = self.now();
        let result = change(&mut self.nodes[id.0 as usize].node, now);
        if self.nodes[id.0 as usize].started {
            self.drain(id.0);
        }
        result
    }

    /// Returns one direction of a link.
    #[must_use]
    pub fn link(&self, id: LinkId, direction: LinkDirection) -> &Link<Packet<B>> {
        &self.links[Self::slot(id, direction)].link
    }

    /// Returns the counters of one direction of a link.
    #[must_use]
    pub fn link_counters(&self, id: LinkId, direction: LinkDirection) -> &LinkCounters {
        self.link(id, direction).counters()
    }

    /// Changes one direction of a link, or both, now.
    pub fn change_link(
        &mut self,
        id: LinkId,
        direction: Option<LinkDirection>,
        change: &LinkChange,
    ) {
        let now = self.now();
        self.observers.record(now, WorldObservation::Changed(id));
        for side in [LinkDirection::Forward, LinkDirection::Backward] {
            if direction.is_none_or(|direction| direction == side) {
                let slot = Self::slot(id, side);
                self.links[slot].link.change(now, change.clone());
                self.agenda.set(link_entity(slot as u32), self.links[slot].link.next());
            }
        }
    }

    const fn slot(id: LinkId, direction: LinkDirection) -> usize {
        id.0 as usize * 2 + direction as usize
    }

    fn next(&self) -> Option<EpochNanos> {
        let action = self.actions.peek().map(|scheduled| scheduled.time);
        let event = self.agenda.first().map(|(time, _)| time);
        match (action, event) {
            (Some(action), Some(event)) => Some(action.min(event)),
            (one, other) => one.or(other),
        }
    }

    fn execute(&mut self, action: WorldAction<N, B>) {
        match action {
            WorldAction::Link { link, direction, change } => {
                self.change_link(link, direction, &change)
            }
            WorldAction::Node(id, change) => {
                let now = self.now();
                change(&mut self.nodes[id.0 as usize].node, now);
                if self.nodes[id.0 as usize].started {
                    self.deliver(id.0, NodeInput::Timer);
                }
            }
            WorldAction::World(change) => change(self),
        }
    }

    /// Wakes a node whose timer has expired.
    fn wake_node(&mut self, node: u32) {
        let slot = &mut self.nodes[node as usize];
        let input = if slot.started { NodeInput::Timer } else { NodeInput::Start };
        slot.started = true;
        self.counters.events += 1;
        self.observers
            .record(Duration::from_nanos(self.now), WorldObservation::Timer(NodeId(node)));
        self.deliver(node, input);
    }

    /// Delivers the packets that have arrived at the end of a link.
    fn deliver_arrivals(&mut self, direction: u32) {
        let index = direction as usize;
        let (node, interface) = self.links[index].to;
        while let Some(packet) = self.links[index].link.poll_at(self.now) {
            self.counters.events += 1;
            if !self.observers.is_idle() {
                self.observe_arrival(direction, &packet);
            }
            if !self.nodes[node as usize].started {
                self.nodes[node as usize].started = true;
                self.deliver(node, NodeInput::Start);
            }
            self.deliver(node, NodeInput::Arrived { interface, packet });
            if !self.links[index].link.is_due_at(self.now) {
                break;
            }
        }
        self.agenda.set(link_entity(direction), self.links[index].link.next());
    }

    fn deliver(&mut self, node: u32, input: NodeInput<B>) {
        let now = self.now();
        self.nodes[node as usize].node.handle_input(now, input);
        self.drain(node);
    }

    /// Polls the outputs of a node.
    fn drain(&mut self, node: u32) {
        let now = self.now();
        loop {
            match self.nodes[node as usize].node.poll_output(now) {
                NodeOutput::Transmit { interface, packet } => self.send(node, interface, packet),
                NodeOutput::Timeout(time) => {
                    let time = time.map(|time| nanos(time).max(self.now.saturating_add(1)));
                    self.agenda.set(node_entity(node), time);
                    return;
                }
            }
        }
    }

    fn send(&mut self, node: u32, interface: u32, packet: Packet<B>) {
        let interfaces = &self.nodes[node as usize].interfaces;
        let Some(direction) = interfaces.get(interface as usize).copied().flatten() else {
            self.counters.unconnected += 1;
            return;
        };
        let link = &mut self.links[direction as usize].link;
        if self.observers.is_idle() {
            // The link's counters record what happened to the packet.
            let _: Result<(), DropCause> = link.offer_at(self.now, packet);
        } else {
            let result = link.offer_at(self.now, packet.clone());
            self.observe_offer(direction, &packet, result);
        }
        let next = self.links[direction as usize].link.next();
        self.agenda.set(link_entity(direction), next);
    }
}
