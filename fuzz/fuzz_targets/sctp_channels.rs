//! A user of data channels, and a peer that sends arbitrary messages on its streams: memory is bounded,
//! each channel is opened and closed in turn, and nothing arrives on a nonexistent channel.
#![no_main]

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{ConnectOptions, EndpointConfig};
use eyas_sctp::data_channel::dcep::{DcepMessage, DcepOpen};
use eyas_sctp::data_channel::{
    ChannelEvent, ChannelOptions, ChannelSettings, DataChannelOutput, DataChannels, DtlsRole,
    MessageKind,
};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::identifier::{AssociationId, Ppid, StreamId};
use eyas_sctp::io::{Ecn, Input, Output as EndpointOutput, Received, Transmit};
use eyas_sctp::message::{MessageReliability, SendInfo};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<7> = Reach::new([
    "the peer opens a channel",
    "the peer acknowledges our channel",
    "a channel is refused",
    "a message arrives",
    "a message is too large",
    "a channel is closed",
    "a stream is reused",
]);

const PORT: u16 = 5000;
const MAX_CHANNELS: usize = 6;
const MAX_MESSAGE: usize = 300;
/// The one-way delay.
const ONE_WAY_DELAY: Duration = Duration::from_millis(10);
/// The maximum outputs of one side in one turn; more are an endless loop.
const MAX_OUTPUTS: usize = 10_000;

/// The streams that steps use.
const STREAMS: u8 = 12;
/// The bytes of a step: its kind, the stream, and two parameters.
const STEP: usize = 4;

struct World {
    now: Duration,
    user: Endpoint,
    channels: DataChannels,
    peer: Endpoint,
    peer_association: AssociationId,
    open: BTreeSet<StreamId>,
    ever: BTreeSet<StreamId>,
}

fn address(side: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, side), 9))
}

impl World {
    fn new() -> Self {
        let mut settings = ChannelSettings::new(DtlsRole::Client);
        (settings.max_channels, settings.max_message_size) = (MAX_CHANNELS, MAX_MESSAGE);
        settings.max_names = 1000;
        let mut config = settings.association();
        (config.outbound_streams, config.max_inbound_streams) = (10, 10);
        (config.send_buffer, config.receive_buffer) = (20_000, 20_000);
        let now = Duration::ZERO;
        let [mut user, mut peer] =
            [1, 2].map(|seed| Endpoint::new(EndpointConfig::default(), [seed; 32], now));
        let (own, theirs) = (user.init_out_of_band(&config), peer.init_out_of_band(&config));
        let options = |to| {
            let mut options = ConnectOptions::new(address(to), PORT);
            (options.local_port, options.association) = (PORT, config.clone());
            options
        };
        let user_association =
            user.connect_out_of_band(now, &options(2), &own, &theirs).expect("valid INITs");
        let peer_association =
            peer.connect_out_of_band(now, &options(1), &theirs, &own).expect("valid INITs");
        let channels = DataChannels::new(&user, user_association, settings);
        let (open, ever) = (BTreeSet::new(), BTreeSet::new());
        Self { now, user, channels, peer, peer_association, open, ever }
    }

    fn step(&mut self, [kind, stream, b, c]: [u8; STEP]) {
        let stream = StreamId(u16::from(stream % STREAMS));
        match kind % 10 {
            0 => self.send_from_peer(stream, 50, b & 1 != 0, vec![b, c].into()),
            1 => self.send_from_peer(
                stream,
                50 + u32::from(b % 8),
                b & 128 != 0,
                vec![c; 2 * usize::from(c)].into(),
            ),
            2 => self.send_open_from_peer(stream, b, c),
            3 => {
                let streams = if c == 0 { vec![] } else { vec![stream] };
                let _ = self
                    .peer
                    .association_mut(self.now, self.peer_association)
                    .and_then(|mut association| association.reset_streams(b & 1 == 0, &streams));
            }
            4 => self.open(stream, b, c),
            5 => {
                let data = vec![7; 8 * usize::from(c)].into();
                let user = &mut self.user;
                let _ = self.channels.send(self.now, user, stream, MessageKind::Binary, data);
            }
            6 => {
                let _ = self.channels.close(self.now, &mut self.user, stream);
            }
            7 => self.channels.pause_receiving(c & 1 != 0),
            _ => (0..b % 16).for_each(|_| self.turn(c > 200)),
        }
        assert!(self.channels.iter().count() <= MAX_CHANNELS);
    }

    /// The user opens a channel.
    fn open(&mut self, stream: StreamId, b: u8, c: u8) {
        let mut options = ChannelOptions::new("ours");
        options.ordered = b & 1 != 0;
        if b & 2 != 0 {
            options.reliability = MessageReliability::Retransmissions(c.into());
        }
        options.negotiated = (b & 4 != 0).then_some(stream);
        if let Ok(id) = self.channels.open(self.now, &mut self.user, &options) {
            assert!(self.open.insert(id), "the stream is in use");
            self.note_use(id);
        }
    }

    /// The peer opens a channel, with or without a damaged byte.
    fn send_open_from_peer(&mut self, stream: StreamId, b: u8, c: u8) {
        let open = DcepMessage::Open(DcepOpen {
            ordered: b & 1 != 0,
            reliability: MessageReliability::Reliable,
            priority: 256,
            label: "l".repeat(usize::from(c)),
            protocol: String::new(),
        });
        let mut message = open.to_bytes().to_vec();
        if b & 128 != 0 {
            let at = usize::from(b & 15) % message.len();
            message[at] ^= c;
        }
        self.send_from_peer(stream, 50, false, message.into());
    }

    fn note_use(&mut self, id: StreamId) {
        if !self.ever.insert(id) {
            REACH.hit("a stream is reused");
        }
    }

    /// The peer sends a message.
    fn send_from_peer(&mut self, stream: StreamId, ppid: u32, unordered: bool, data: Bytes) {
        let info = SendInfo { stream, ppid: Ppid(ppid), unordered, ..SendInfo::default() };
        let _ = self.peer.send(self.now, self.peer_association, &info, data);
    }

    fn turn(&mut self, lost: bool) {
        let mut to_peer = Vec::new();
        for outputs in 0.. {
            assert!(outputs < MAX_OUTPUTS, "too many outputs");
            match self.channels.poll_output(self.now, &mut self.user) {
                DataChannelOutput::Channel(event) => self.handle_event(&event),
                DataChannelOutput::Endpoint(EndpointOutput::Transmit(transmit)) => {
                    to_peer.push(transmit)
                }
                DataChannelOutput::Endpoint(EndpointOutput::Timeout(_)) => break,
                DataChannelOutput::Endpoint(_) => {}
            }
        }
        let mut to_user = Vec::new();
        for outputs in 0.. {
            assert!(outputs < MAX_OUTPUTS, "too many outputs");
            while self.peer.receive(self.now, self.peer_association).is_some() {}
            match self.peer.poll_output(self.now) {
                EndpointOutput::Transmit(transmit) => to_user.push(transmit),
                EndpointOutput::Timeout(_) => break,
                _ => {}
            }
        }
        self.now += ONE_WAY_DELAY;
        if !lost {
            to_peer.into_iter().for_each(|packet| deliver(&mut self.peer, self.now, 1, packet));
            to_user.into_iter().for_each(|packet| deliver(&mut self.user, self.now, 2, packet));
        }
        self.user.handle_input(self.now, Input::Tick);
        self.peer.handle_input(self.now, Input::Tick);
    }

    fn handle_event(&mut self, event: &ChannelEvent) {
        match event {
            ChannelEvent::Opened { id, by_peer: true } => {
                REACH.hit("the peer opens a channel");
                assert!(self.open.insert(*id), "opened twice");
                self.note_use(*id);
            }
            ChannelEvent::Opened { id, by_peer: false } => {
                REACH.hit("the peer acknowledges our channel");
                assert!(self.open.contains(id));
            }
            ChannelEvent::Message { id, data, .. } => {
                REACH.hit("a message arrives");
                assert!(self.open.contains(id), "a message on a closed channel");
                assert!(data.len() <= MAX_MESSAGE);
            }
            ChannelEvent::Closing { id } => assert!(self.open.contains(id)),
            ChannelEvent::Closed { id } => {
                REACH.hit("a channel is closed");
                assert!(self.open.remove(id), "closed twice");
            }
            _ => {}
        }
    }
}

fn deliver(endpoint: &mut Endpoint, now: Duration, from: u8, transmit: Transmit) {
    endpoint.handle_input(
        now,
        Input::Packets(Received {
            local: None,
            remote: address(from),
            ecn: Ecn::NotCapable,
            peer: None,
            contents: transmit.contents,
            segment_size: transmit.segment_size,
        }),
    );
}

fuzz_target!(|input: &[u8]| {
    REACH.begin();
    if let Some(message) = DcepMessage::parse(input) {
        assert_eq!(DcepMessage::parse(&message.to_bytes()), Some(message), "parsed and encoded");
    }
    let mut world = World::new();
    for step in input.as_chunks().0 {
        world.step(*step);
    }
    world.channels.pause_receiving(false);
    (0..50).for_each(|_| world.turn(false));
    let counters = world.channels.counters();
    if counters.refused_channels > 0 {
        REACH.hit("a channel is refused");
    }
    if counters.oversized_messages > 0 {
        REACH.hit("a message is too large");
    }
});
