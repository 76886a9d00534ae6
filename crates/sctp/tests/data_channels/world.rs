//! Two sides with data channels, or a raw peer on one side, and the network between them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use eyas_netem::link::LinkConfig;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::data_channel::{
    ChannelError, ChannelEvent, ChannelOptions, ChannelSettings, DataChannelOutput, DataChannels,
    DtlsRole, MessageKind,
};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, Ppid, StreamId};
use eyas_sctp::io::Output as EndpointOutput;
use eyas_sctp::message::{Message, SendInfo};

use crate::network::{self, Network, UDP, address};

pub(crate) use crate::network::{A, B, ms};

const PORT: u16 = 5000;

/// One side: A is the DTLS client, whose channels have even IDs; B is the server.
pub(crate) struct Side {
    pub(crate) endpoint: Endpoint,
    pub(crate) association: AssociationId,
    /// `None` for a raw peer, which sends arbitrary messages.
    pub(crate) channels: Option<DataChannels>,
    /// The events of its channels.
    pub(crate) channel_events: Vec<ChannelEvent>,
    /// The labels of the channels that its peer opened, in order, as they were at the event.
    pub(crate) labels: VecDeque<String>,
    /// The events of the association itself.
    pub(crate) events: Vec<Event>,
    /// The received messages, where there are no channels.
    pub(crate) received: Vec<Message>,
}

/// Both sides, and the network between them.
pub(crate) type World = network::World<Side, ()>;

/// The association of these settings, without traffic of its own.
pub(crate) fn quiet(settings: &ChannelSettings) -> AssociationConfig {
    let mut config = settings.association();
    config.hb_interval = None;
    config
}

impl World {
    /// Both sides established, with channels.
    pub(crate) fn new() -> Self {
        Self::with(|_| {}, |_| {})
    }

    /// The same with custom settings and a custom association.
    pub(crate) fn with(
        set: impl Fn(&mut ChannelSettings),
        configure: impl Fn(&mut AssociationConfig),
    ) -> Self {
        let settings = [DtlsRole::Client, DtlsRole::Server].map(|role| {
            let mut settings = ChannelSettings::new(role);
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
            let mut options = ConnectOptions::new(SocketAddr::new(address(1 - side, 0), UDP), PORT);
            (options.local_port, options.association) = (PORT, config(side));
            let (own, peer) = (&inits[side], &inits[1 - side]);
            endpoints[side].connect_out_of_band(Duration::ZERO, &options, own, peer).unwrap()
        });
        let sides =
            endpoints.into_iter().zip(ids).zip(settings).map(|((endpoint, id), settings)| {
                let channels = DataChannels::new(&endpoint, id, settings);
                Side::new(endpoint, id, Some(channels))
            });
        let link = LinkConfig { delay: ms(10), ..LinkConfig::default() };
        Self::between(sides.collect(), Network::of_two(&[link]), ())
    }

    /// B is a raw peer, which sends arbitrary messages.
    pub(crate) fn with_raw_peer(set: impl Fn(&mut ChannelSettings)) -> Self {
        let mut world = Self::with(set, |_| {});
        world.hosts[B].channels = None;
        world
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
        let Side { endpoint, channels, .. } = &mut self.hosts[side];
        channels.as_mut().unwrap().open(now, endpoint, options)
    }

    pub(crate) fn send(
        &mut self,
        side: usize,
        id: StreamId,
        kind: MessageKind,
        data: impl Into<Bytes>,
    ) -> Result<(), ChannelError> {
        let now = self.now;
        let Side { endpoint, channels, .. } = &mut self.hosts[side];
        channels.as_mut().unwrap().send(now, endpoint, id, kind, data.into())
    }

    pub(crate) fn close(&mut self, side: usize, id: StreamId) -> Result<(), ChannelError> {
        let now = self.now;
        let Side { endpoint, channels, .. } = &mut self.hosts[side];
        channels.as_mut().unwrap().close(now, endpoint, id)
    }

    pub(crate) fn channels(&self, side: usize) -> &DataChannels {
        self.hosts[side].channels.as_ref().unwrap()
    }

    /// Sends a message from the raw peer.
    pub(crate) fn send_raw(
        &mut self,
        stream: u16,
        ppid: u32,
        unordered: bool,
        data: impl Into<Bytes>,
    ) {
        let info = SendInfo {
            stream: StreamId(stream),
            ppid: Ppid(ppid),
            unordered,
            ..SendInfo::default()
        };
        let side = &mut self.hosts[B];
        side.endpoint.send(self.now, side.association, &info, data.into()).unwrap();
    }

    /// The events of a side since the last call.
    pub(crate) fn take_events(&mut self, side: usize) -> Vec<ChannelEvent> {
        std::mem::take(&mut self.hosts[side].channel_events)
    }

    /// Runs until nothing happens for a minute.
    pub(crate) fn run_until_quiet(&mut self) {
        for _ in 0..1_000_000 {
            let end = self.now + ms(60_000);
            if !self.step(end) {
                return;
            }
        }
        panic!("it never ends");
    }
}

impl Side {
    fn new(endpoint: Endpoint, association: AssociationId, channels: Option<DataChannels>) -> Self {
        Self {
            endpoint,
            association,
            channels,
            channel_events: Vec::new(),
            labels: VecDeque::new(),
            events: Vec::new(),
            received: Vec::new(),
        }
    }

    fn on_channel_event(&mut self, event: ChannelEvent) {
        if let ChannelEvent::Opened { id, by_peer: true } = event {
            let opened = self.channels.as_ref().and_then(|channels| channels.get(id));
            self.labels.push_back(opened.expect("it was just opened").label().to_owned());
        }
        self.channel_events.push(event);
    }
}

impl network::Host for Side {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn poll_output(&mut self, now: Duration) -> EndpointOutput {
        while let Some(channels) = &mut self.channels {
            match channels.poll_output(now, &mut self.endpoint) {
                DataChannelOutput::Channel(event) => self.on_channel_event(event),
                DataChannelOutput::Endpoint(output) => return output,
            }
        }
        while let Some(message) = self.endpoint.receive(now, self.association) {
            self.received.push(message);
        }
        self.endpoint.poll_output(now)
    }

    fn on_event(&mut self, _now: Duration, _id: AssociationId, event: Event) {
        self.events.push(event);
    }
}

/// The messages among the events, with their channels.
pub(crate) fn messages(events: &[ChannelEvent]) -> Vec<(u16, MessageKind, Bytes)> {
    let message = |event: &ChannelEvent| match event {
        ChannelEvent::Message { id, kind, data } => Some((id.0, *kind, data.clone())),
        _ => None,
    };
    events.iter().filter_map(message).collect()
}

/// The event for a channel that the other side opened.
pub(crate) fn opened_by_peer(id: u16) -> ChannelEvent {
    ChannelEvent::Opened { id: StreamId(id), by_peer: true }
}

/// The event for a channel that this side opened.
pub(crate) fn opened(id: u16) -> ChannelEvent {
    ChannelEvent::Opened { id: StreamId(id), by_peer: false }
}

pub(crate) fn closing(id: u16) -> ChannelEvent {
    ChannelEvent::Closing { id: StreamId(id) }
}

pub(crate) fn closed(id: u16) -> ChannelEvent {
    ChannelEvent::Closed { id: StreamId(id) }
}
