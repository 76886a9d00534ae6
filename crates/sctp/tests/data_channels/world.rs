//! Two sides with data channels, or one that speaks to them without, and the network between them.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::data_channel::{
    ChannelError, ChannelEvent, ChannelOptions, DataChannels, Kind, Output, Role, Settings,
};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, Ppid, StreamId};
use eyas_sctp::io::{Ecn, Input, Output as EndpointOutput, Received, Transmit};
use eyas_sctp::message::{Message, SendInfo};

/// The client of DTLS: its channels have even numbers.
pub(crate) const A: usize = 0;
/// The server of DTLS.
pub(crate) const B: usize = 1;
const PORT: u16 = 5000;

/// Milliseconds.
pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, side as u8 + 1), 9))
}

/// One side.
pub(crate) struct Side {
    pub(crate) endpoint: Endpoint,
    pub(crate) association: AssociationId,
    /// `None`: whoever this is, it sends what it likes.
    pub(crate) channels: Option<DataChannels>,
    /// What happened to its channels.
    pub(crate) told: Vec<ChannelEvent>,
    /// The labels of the channels that its peer opened, in order, as they were when it was told.
    pub(crate) labels: VecDeque<String>,
    /// What the association itself said.
    pub(crate) events: Vec<Event>,
    /// What came, where there are no channels.
    pub(crate) received: Vec<Message>,
    timeout: Option<Duration>,
}

/// Both sides, and packets under way.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) sides: [Side; 2],
    /// Packets lost, of a thousand.
    pub(crate) loss: u64,
    /// The most milliseconds that a packet takes beyond ten.
    pub(crate) jitter: u64,
    /// Whether nothing passes.
    pub(crate) is_cut: bool,
    random: u64,
    in_flight: BTreeMap<(Duration, u64), (usize, Received)>,
    sent: u64,
}

/// What the settings say, with nothing of its own to send.
pub(crate) fn quiet(settings: &Settings) -> AssociationConfig {
    let mut config = settings.association();
    config.hb_interval = None;
    config
}

impl World {
    /// Both sides up, with channels.
    pub(crate) fn new() -> Self {
        Self::with(|_| {}, |_| {})
    }

    /// The same with settings and an association of the test's own.
    pub(crate) fn with(
        set: impl Fn(&mut Settings),
        configure: impl Fn(&mut AssociationConfig),
    ) -> Self {
        let settings = [Role::Client, Role::Server].map(|role| {
            let mut settings = Settings::new(role);
            settings.peer_max_message_size = settings.max_message_size;
            set(&mut settings);
            settings
        });
        let mut endpoints =
            [1, 2].map(|seed| Endpoint::new(EndpointConfig::default(), [seed; 32], Duration::ZERO));
        let config = |side: usize| {
            let mut config = quiet(&settings[side]);
            configure(&mut config);
            config
        };
        let inits = [A, B].map(|side| endpoints[side].init_out_of_band(&config(side)));
        let ids = [A, B].map(|side| {
            let mut options = ConnectOptions::new(address(1 - side), PORT);
            (options.local_port, options.association) = (PORT, config(side));
            let (own, peer) = (&inits[side], &inits[1 - side]);
            endpoints[side].connect_out_of_band(Duration::ZERO, &options, own, peer).unwrap()
        });
        let mut side = 0;
        let sides = endpoints.map(|endpoint| {
            let settings = settings[side].clone();
            let channels = DataChannels::new(&endpoint, ids[side], settings);
            side += 1;
            Side::new(endpoint, ids[side - 1], Some(channels))
        });
        Self {
            now: Duration::ZERO,
            sides,
            loss: 0,
            jitter: 0,
            is_cut: false,
            random: 1,
            in_flight: BTreeMap::new(),
            sent: 0,
        }
    }

    /// B sends what it likes.
    pub(crate) fn with_stranger(set: impl Fn(&mut Settings)) -> Self {
        let mut world = Self::with(set, |_| {});
        world.sides[B].channels = None;
        world
    }

    pub(crate) fn seed(&mut self, seed: u64) {
        self.random = seed | 1;
    }

    pub(crate) fn open(&mut self, side: usize, options: &ChannelOptions) -> StreamId {
        self.try_open(side, options).expect("it can be opened")
    }

    pub(crate) fn try_open(
        &mut self,
        side: usize,
        options: &ChannelOptions,
    ) -> Result<StreamId, ChannelError> {
        let now = self.now;
        let Side { endpoint, channels, .. } = &mut self.sides[side];
        channels.as_mut().unwrap().open(now, endpoint, options)
    }

    pub(crate) fn send(
        &mut self,
        side: usize,
        id: StreamId,
        kind: Kind,
        data: impl Into<Bytes>,
    ) -> Result<(), ChannelError> {
        let now = self.now;
        let Side { endpoint, channels, .. } = &mut self.sides[side];
        channels.as_mut().unwrap().send(now, endpoint, id, kind, data.into())
    }

    pub(crate) fn close(&mut self, side: usize, id: StreamId) -> Result<(), ChannelError> {
        let now = self.now;
        let Side { endpoint, channels, .. } = &mut self.sides[side];
        channels.as_mut().unwrap().close(now, endpoint, id)
    }

    pub(crate) fn channels(&self, side: usize) -> &DataChannels {
        self.sides[side].channels.as_ref().unwrap()
    }

    /// The stranger sends.
    pub(crate) fn say(&mut self, stream: u16, ppid: u32, unordered: bool, data: impl Into<Bytes>) {
        let info = SendInfo {
            stream: StreamId(stream),
            ppid: Ppid(ppid),
            unordered,
            ..SendInfo::default()
        };
        let side = &mut self.sides[B];
        side.endpoint.send(self.now, side.association, &info, data.into()).unwrap();
    }

    /// What a side was told since it was last asked.
    pub(crate) fn told(&mut self, side: usize) -> Vec<ChannelEvent> {
        std::mem::take(&mut self.sides[side].told)
    }

    /// Lets `time` pass.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Goes on until nothing happens for a minute.
    pub(crate) fn run_until_quiet(&mut self) {
        for _ in 0..1_000_000 {
            let end = self.now + ms(60_000);
            if !self.step(end) {
                return;
            }
        }
        panic!("it never ends");
    }

    fn step(&mut self, end: Duration) -> bool {
        self.drain(A);
        self.drain(B);
        let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
        let timeouts = self.sides.iter().filter_map(|side| side.timeout);
        let Some(next) = timeouts.chain(arrival).min().filter(|next| *next <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        for side in &mut self.sides {
            if side.timeout.is_some_and(|at| at <= self.now) {
                side.endpoint.handle_input(self.now, Input::Tick);
            }
        }
        while let Some(first) = self.in_flight.first_entry() {
            if first.key().0 > self.now {
                break;
            }
            let (to, received) = first.remove();
            self.sides[to].endpoint.handle_input(self.now, Input::Packets(received));
            self.drain(to);
        }
        true
    }

    pub(crate) fn drain(&mut self, side: usize) {
        loop {
            match self.sides[side].poll(self.now) {
                Output::Channel(event) => {
                    if let ChannelEvent::Opened { id, by_peer: true } = event {
                        let opened = self.channels(side).get(id).expect("it was just opened");
                        let label = opened.label().to_owned();
                        self.sides[side].labels.push_back(label);
                    }
                    self.sides[side].told.push(event);
                }
                Output::Endpoint(EndpointOutput::Transmit(transmit)) => {
                    self.transmit(side, &transmit);
                }
                Output::Endpoint(EndpointOutput::Event(_, event)) => {
                    self.sides[side].events.push(event);
                }
                Output::Endpoint(EndpointOutput::Timeout(at)) => {
                    assert!(at.is_none_or(|at| at > self.now), "a timeout that is due");
                    self.sides[side].timeout = at;
                    return;
                }
                other => panic!("an output that the test does not know: {other:?}"),
            }
        }
    }

    fn transmit(&mut self, from: usize, transmit: &Transmit) {
        let size = transmit.segment_size;
        for start in (0..transmit.contents.len()).step_by(size) {
            let end = transmit.contents.len().min(start + size);
            let delay = ms(10 + self.draw(self.jitter + 1));
            if self.is_cut || self.draw(1000) < self.loss {
                continue;
            }
            let received = Received {
                local: None,
                remote: address(from),
                ecn: Ecn::NotCapable,
                contents: transmit.contents.slice(start..end),
                segment_size: end - start,
            };
            self.sent += 1;
            self.in_flight.insert((self.now + delay, self.sent), (1 - from, received));
        }
    }

    /// A number below `bound` (xorshift64).
    fn draw(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }
}

impl Side {
    fn new(endpoint: Endpoint, association: AssociationId, channels: Option<DataChannels>) -> Self {
        Self {
            endpoint,
            association,
            channels,
            told: Vec::new(),
            labels: VecDeque::new(),
            events: Vec::new(),
            received: Vec::new(),
            timeout: None,
        }
    }

    fn poll(&mut self, now: Duration) -> Output {
        if let Some(channels) = &mut self.channels {
            return channels.poll_output(now, &mut self.endpoint);
        }
        while let Some(message) = self.endpoint.receive(now, self.association) {
            self.received.push(message);
        }
        Output::Endpoint(self.endpoint.poll_output(now))
    }
}

/// The messages among events, by their channels.
pub(crate) fn messages(told: &[ChannelEvent]) -> Vec<(u16, Kind, Bytes)> {
    let message = |event: &ChannelEvent| match event {
        ChannelEvent::Message { id, kind, data } => Some((id.0, *kind, data.clone())),
        _ => None,
    };
    told.iter().filter_map(message).collect()
}

/// A channel that the other side opened.
pub(crate) fn opened_by_peer(id: u16) -> ChannelEvent {
    ChannelEvent::Opened { id: StreamId(id), by_peer: true }
}

/// A channel of this side's.
pub(crate) fn opened(id: u16) -> ChannelEvent {
    ChannelEvent::Opened { id: StreamId(id), by_peer: false }
}

pub(crate) fn closing(id: u16) -> ChannelEvent {
    ChannelEvent::Closing { id: StreamId(id) }
}

pub(crate) fn closed(id: u16) -> ChannelEvent {
    ChannelEvent::Closed { id: StreamId(id) }
}
