//! A running path: two devices, with middleboxes and links between them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use eyas_netem::link::{Link, LinkChange, LinkConfig, LossConfig, ReorderingMode};
use eyas_netem::middlebox::MiddleboxSide;
use eyas_netem::packet::Packet;
use eyas_netem::random;
use eyas_netem::world::LinkDirection;

use super::capture::PathRecorder;
use super::counters::{DirectionCounters, MiddleboxCounters, PathCounters};
use super::device::TunDevice;
use super::error::EmulatorError;
use super::frame::TunFrame;
use super::host::HostRole;
use super::topology::PathTopology;
use crate::middlebox::{BoxedMiddlebox, FamilyFilter, MiddleboxConfig};

/// The entity kind of [`random::derive`] for a direction of a path.
const DIRECTION: u64 = 3;

/// One direction: its link, and the packets that could not be delivered.
struct DirectedLink {
    config: LinkConfig,
    link: Link<TunFrame>,
    unwritten: u64,
}

/// A middlebox, and the time spent in it.
struct RunningMiddlebox {
    family: FamilyFilter,
    middlebox: BoxedMiddlebox,
    busy: Duration,
}

/// A running path.
pub(super) struct PathRun {
    number: usize,
    name: String,
    /// Indexed by [`HostRole`].
    devices: [TunDevice; 2],
    middleboxes: Vec<RunningMiddlebox>,
    /// The configurations of the boxes, each with the number of boxes built from it.
    configs: Vec<(MiddleboxConfig, usize)>,
    /// Indexed by [`LinkDirection`].
    directed_links: [DirectedLink; 2],
    fragments: u64,
    identification: u16,
}

/// What the engine provides to a path: the time and the recorder.
pub(super) struct PathContext<'a> {
    pub(super) now: Duration,
    pub(super) recorder: &'a mut Option<PathRecorder>,
}

/// Returns whether such a link does not treat packets individually.
fn is_plain(config: &LinkConfig) -> bool {
    config.rate.is_none()
        && config.trace.is_none()
        && config.delay.is_zero()
        && config.jitter.is_zero()
        && config.mtu.is_none()
        && config.loss == LossConfig::None
        && config.bit_error.is_none()
        && config.duplication <= 0.0
        && config.reordering == ReorderingMode::Never
}

/// Returns the host that sends in this direction.
pub(super) const fn sender(direction: LinkDirection) -> HostRole {
    match direction {
        LinkDirection::Forward => HostRole::Client,
        LinkDirection::Backward => HostRole::Server,
    }
}

impl PathRun {
    pub(super) fn new(
        number: usize,
        topology: &PathTopology,
        devices: [TunDevice; 2],
        seed: u64,
    ) -> Result<Self, EmulatorError> {
        let directed_link = |config: &LinkConfig, direction: LinkDirection| {
            let seed = random::derive(seed, DIRECTION, number as u64 * 2 + direction as u64);
            DirectedLink {
                config: config.clone(),
                link: Link::new(config.clone(), seed),
                unwritten: 0,
            }
        };
        let (mut middleboxes, mut configs) = (Vec::new(), Vec::new());
        for config in &topology.middleboxes {
            let instances =
                config.build(topology.nat_address(), &topology.addresses(HostRole::Server));
            configs.push((config.clone(), instances.len()));
            let running =
                |(family, middlebox)| RunningMiddlebox { family, middlebox, busy: Duration::ZERO };
            middleboxes.extend(instances.into_iter().map(running));
        }
        let path = Self {
            number,
            name: topology.name.clone(),
            devices,
            middleboxes,
            configs,
            directed_links: [
                directed_link(&topology.forward, LinkDirection::Forward),
                directed_link(&topology.backward, LinkDirection::Backward),
            ],
            fragments: 0,
            identification: 0,
        };
        path.update_offload(false)?;
        Ok(path)
    }

    pub(super) const fn devices(&self) -> &[TunDevice; 2] {
        &self.devices
    }

    /// Enables offloading where single packets are not examined.
    pub(super) fn update_offload(&self, recorded: bool) -> Result<(), EmulatorError> {
        for direction in [LinkDirection::Forward, LinkDirection::Backward] {
            let offload = !recorded
                && self.middleboxes.is_empty()
                && is_plain(&self.directed_links[direction as usize].config);
            self.devices[sender(direction) as usize].set_offload(offload)?;
        }
        Ok(())
    }

    /// Handles a packet that a host has sent.
    pub(super) fn arrive(
        &mut self,
        context: &mut PathContext<'_>,
        host: HostRole,
        frame: TunFrame,
    ) {
        if let Some(recorder) = context.recorder {
            recorder.packet(context.now, self.number, host, frame.ip());
        }
        match host {
            HostRole::Client => self.pass_middleboxes(context, MiddleboxSide::Inside, frame),
            HostRole::Server => self.offer(context.now, LinkDirection::Backward, frame),
        }
    }

    /// Delivers all packets that are due.
    pub(super) fn deliver(&mut self, context: &mut PathContext<'_>) {
        while let Some(frame) =
            self.directed_links[LinkDirection::Forward as usize].link.poll(context.now)
        {
            self.write_to_host(context, HostRole::Server, &frame);
        }
        while let Some(frame) =
            self.directed_links[LinkDirection::Backward as usize].link.poll(context.now)
        {
            self.pass_middleboxes(context, MiddleboxSide::Outside, frame);
        }
        let now = context.now;
        let due = |until: Option<Duration>| until.is_some_and(|until| until <= now);
        for number in 0..self.middleboxes.len() {
            if due(self.middleboxes[number].middlebox.next_timeout()) {
                let outgoing = self.poll_middlebox(now, number, None);
                self.route_pending(context, outgoing);
            }
        }
    }

    /// Returns when something is due next.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        let links = self
            .directed_links
            .iter()
            .filter_map(|directed_link| directed_link.link.next_timeout());
        links.chain(self.middleboxes.iter().filter_map(|own| own.middlebox.next_timeout())).min()
    }

    fn offer(&mut self, now: Duration, direction: LinkDirection, frame: TunFrame) {
        // Packets that are dropped at once are counted by the link.
        let _ = self.directed_links[direction as usize].link.offer(now, frame);
    }

    fn write_to_host(&mut self, context: &mut PathContext<'_>, host: HostRole, frame: &TunFrame) {
        if let Some(recorder) = context.recorder {
            recorder.packet(context.now, self.number, host, frame.ip());
        }
        if self.devices[host as usize].write(frame).is_err() {
            let direction = if host == HostRole::Server {
                LinkDirection::Forward
            } else {
                LinkDirection::Backward
            };
            self.directed_links[direction as usize].unwritten += 1;
        }
    }

    /// Passes a packet through all boxes, from the client or from the link.
    fn pass_middleboxes(
        &mut self,
        context: &mut PathContext<'_>,
        from: MiddleboxSide,
        frame: TunFrame,
    ) {
        let gap = if from == MiddleboxSide::Inside { 0 } else { self.middleboxes.len() };
        self.route_pending(context, VecDeque::from([(gap, from, frame)]));
    }

    /// Passes on packets that are between two boxes, before the first or after the last.
    fn route_pending(
        &mut self,
        context: &mut PathContext<'_>,
        mut pending: VecDeque<(usize, MiddleboxSide, TunFrame)>,
    ) {
        while let Some((gap, from, frame)) = pending.pop_front() {
            let number = match from {
                MiddleboxSide::Inside if gap == self.middleboxes.len() => {
                    self.offer(context.now, LinkDirection::Forward, frame);
                    continue;
                }
                MiddleboxSide::Outside if gap == 0 => {
                    self.write_to_host(context, HostRole::Client, &frame);
                    continue;
                }
                MiddleboxSide::Inside => gap,
                MiddleboxSide::Outside => gap - 1,
            };
            let Some(packet) = frame.to_packet().filter(|_| !frame.is_fragment()) else {
                self.fragments += 1;
                continue;
            };
            if self.middleboxes[number].family.includes(packet.source) {
                let began = Instant::now();
                self.middleboxes[number].middlebox.handle_packet(context.now, from, packet.clone());
                pending.extend(self.poll_middlebox(
                    context.now,
                    number,
                    Some((from, &frame, &packet)),
                ));
                self.middleboxes[number].busy += began.elapsed();
            } else {
                let beyond = if from == MiddleboxSide::Inside { gap + 1 } else { gap - 1 };
                pending.push_back((beyond, from, frame));
            }
        }
    }

    /// Collects what leaves a box after `entered` has been passed to it.
    fn poll_middlebox(
        &mut self,
        now: Duration,
        number: usize,
        entered: Option<(MiddleboxSide, &TunFrame, &Packet)>,
    ) -> VecDeque<(usize, MiddleboxSide, TunFrame)> {
        let mut outgoing = VecDeque::new();
        while let Some((to, packet)) = self.middleboxes[number].middlebox.poll(now) {
            let frame = match entered {
                Some((from, frame, before)) if to == from.opposite() => {
                    if *before == packet {
                        frame.clone()
                    } else {
                        frame.changed(&packet)
                    }
                }
                _ => {
                    self.identification = self.identification.wrapping_add(1);
                    TunFrame::from_packet(&packet, self.identification)
                }
            };
            let gap = if to == MiddleboxSide::Outside { number + 1 } else { number };
            outgoing.push_back((gap, to.opposite(), frame));
        }
        outgoing
    }

    /// Replaces the link of one direction.
    pub(super) fn reconfigure(
        &mut self,
        now: Duration,
        direction: LinkDirection,
        config: LinkConfig,
    ) {
        let directed_link = &mut self.directed_links[direction as usize];
        directed_link.link.reconfigure(now, config.clone());
        directed_link.config = config;
    }

    /// Makes one change to one direction.
    pub(super) fn change(&mut self, now: Duration, direction: LinkDirection, change: LinkChange) {
        let directed_link = &mut self.directed_links[direction as usize];
        match &change {
            LinkChange::Rate(rate) => {
                (directed_link.config.rate, directed_link.config.trace) = (*rate, None);
            }
            LinkChange::Delay(delay) => directed_link.config.delay = *delay,
            LinkChange::Jitter(jitter) => directed_link.config.jitter = *jitter,
            LinkChange::Loss(loss) => directed_link.config.loss = loss.clone(),
            LinkChange::Up | LinkChange::Down => {}
        }
        directed_link.link.change(now, change);
    }

    /// Returns the counters of each middlebox, whatever it consists of.
    fn middleboxes(&self) -> Vec<MiddleboxCounters> {
        let mut middleboxes = self.middleboxes.iter();
        let count = |(config, number): &(MiddleboxConfig, usize)| {
            let mut counters = MiddleboxCounters {
                kind: config.kind(),
                rule: config.rule(),
                packets: Default::default(),
                entries: 0,
                busy: Duration::ZERO,
            };
            for own in middleboxes.by_ref().take(*number) {
                counters.packets = counters.packets.plus(own.middlebox.counters());
                counters.entries += own.middlebox.entries();
                counters.busy += own.busy;
            }
            counters
        };
        self.configs.iter().map(count).collect()
    }

    pub(super) fn counters(&mut self, now: Duration) -> PathCounters {
        let middleboxes = self.middleboxes();
        let [forward, backward] = &mut self.directed_links;
        let direction = |directed_link: &mut DirectedLink| DirectionCounters {
            config: directed_link.config.clone(),
            queued: directed_link.link.queued(now),
            in_flight: directed_link.link.in_flight(),
            link: *directed_link.link.counters(),
            is_up: directed_link.link.is_up(),
            unwritten: directed_link.unwritten,
        };
        PathCounters {
            name: self.name.clone(),
            forward: direction(forward),
            backward: direction(backward),
            middleboxes,
            fragments: self.fragments,
        }
    }
}
