//! Two associations, arbitrary operations of their users, and networks that lose, duplicate, reorder and
//! fail, used one at a time or all at once: no message is lost, duplicated or out of order, and once the
//! network works again everything arrives and both sides close.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::Bytes;
use eyas_sctp::config::{
    AssociationConfig, ChunkRescheduling, ConnectOptions, MultipathConfig, MultipathProfile,
    StreamMapping,
};
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::error::Error;
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::io::Input;
use eyas_sctp::message::{Message, SendInfo};
use libfuzzer_sys::fuzz_target;

mod reach;
mod sctp;

use reach::Reach;
use sctp::{Host, PORT, association, socket};

/// The maximum packets in flight; beyond that the oldest are lost.
const MAX_IN_FLIGHT: usize = 4000;

/// The maximum number of networks.
const NETWORKS: u8 = 3;

/// The network reports lost packets whose number is at least this.
const REPORTED_FROM: u8 = 128;

/// The time limit with working networks, in virtual time.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

static REACH: Reach<6> = Reach::new([
    "messages arrive",
    "unordered messages arrive",
    "a lost packet is reported",
    "streams are reset",
    "streams are added",
    "both sides close",
]);

#[derive(Arbitrary, Debug)]
enum Step {
    /// A user sends.
    Send {
        side: bool,
        stream: u8,
        unordered: bool,
        length: u16,
    },
    /// The user of a side receives all messages.
    Receive(bool),
    /// One of the packets to a side arrives.
    Arrives {
        side: bool,
        which: u8,
    },
    /// The same, and it can arrive again.
    Repeats {
        side: bool,
        which: u8,
    },
    /// One of the packets to a side is lost; the network reports some losses.
    Lost {
        side: bool,
        which: u8,
    },
    /// All packets in flight arrive.
    AllArrive,
    /// Time passes.
    Wait(u16),
    /// Time passes until the next timeout.
    Tick,
    ResetStreams {
        side: bool,
        outgoing: bool,
        streams: Vec<u8>,
    },
    AddStreams {
        side: bool,
        outbound: u8,
        inbound: u8,
    },
    ResetAssociation(bool),
    /// A network stops working, or works again.
    Cut(u8),
}

#[derive(Arbitrary, Debug)]
struct Run {
    bits: (u8, u8),
    /// How many networks there are, which sides use all of them at once, and how.
    networks: u8,
    /// Whether both sides connect.
    both: bool,
    steps: Vec<Step>,
}

/// The messages of a side; each contains its number on its stream.
#[derive(Default)]
struct Log {
    sent: BTreeMap<(u16, bool), Vec<(u32, usize)>>,
    received: BTreeMap<(u16, bool), Vec<(u32, usize)>>,
    /// Parts of incomplete messages.
    open: BTreeMap<(u16, bool, u32), Vec<u8>>,
}

impl Log {
    fn next_message(&mut self, stream: u16, unordered: bool, length: usize) -> Bytes {
        let sent = self.sent.entry((stream, unordered)).or_default();
        let number = u32::try_from(sent.len()).expect("few");
        let mut data = number.to_be_bytes().to_vec();
        data.extend((0..length).map(|index| (number as usize + index) as u8));
        sent.push((number, data.len()));
        data.into()
    }

    fn receive(&mut self, message: Message) {
        let stream = message.stream.0;
        // Without interleaving the parts of an unordered message arrive contiguously.
        let number = if message.unordered { 0 } else { message.number };
        let key = (stream, message.unordered, number);
        if message.begins {
            assert!(!self.open.contains_key(&key), "a message begins within another");
        }
        let (ends, unordered) = (message.ends, message.unordered);
        let open = self.open.entry(key).or_default();
        open.extend_from_slice(&message.into_bytes());
        if !ends {
            return;
        }
        let data = self.open.remove(&key).unwrap_or_default();
        let number = u32::from_be_bytes(*data.first_chunk().expect("a number"));
        let good = data[4..].iter().enumerate();
        assert!(good.into_iter().all(|(index, byte)| *byte == (number as usize + index) as u8));
        let received = self.received.entry((stream, unordered)).or_default();
        let is_duplicate = received.iter().any(|(other, _)| *other == number);
        assert!(!is_duplicate, "message {number} of stream {stream} is duplicated");
        if !unordered {
            let expected = u32::try_from(received.len()).expect("few");
            assert_eq!(number, expected, "out of order on stream {stream}");
        }
        received.push((number, data.len()));
    }

    fn is_complete(&self) -> bool {
        self.sent.iter().all(|(key, sent)| self.received.get(key).map_or(0, Vec::len) == sent.len())
    }

    fn check(&mut self) {
        for (key, sent) in &mut self.sent {
            let mut received = self.received.remove(key).unwrap_or_default();
            received.sort_unstable();
            assert_eq!(*sent, received, "stream {key:?}");
        }
    }
}

/// Returns the configuration of a side.
fn configured(side: usize, bits: u8, networks: u8) -> AssociationConfig {
    let mut config = association(bits);
    if networks >> (2 + side) & 1 != 0 {
        let mut multipath = MultipathConfig::default();
        if networks & 16 != 0 {
            MultipathProfile::Pfldnet2010.apply(&mut config);
            multipath = config.multipath.take().unwrap_or_default();
        }
        if networks & 32 != 0 {
            multipath.mapping = StreamMapping::Modulo;
        }
        if networks & 64 != 0 {
            multipath.rescheduling = ChunkRescheduling::Both;
        }
        if networks & 128 != 0 {
            multipath.mapping = StreamMapping::Automatic;
        }
        config.multipath = Some(multipath);
    }
    // Failing networks must not end the association.
    config.association_max_retrans = 1000;
    config
}

struct Pair {
    hosts: [Host; 2],
    /// The messages to each side.
    logs: [Log; 2],
    ids: [Option<AssociationId>; 2],
    /// Packets in flight to each side, with their network.
    in_flight: [Vec<(u8, Bytes)>; 2],
    /// Networks on which nothing arrives.
    cut: [bool; NETWORKS as usize],
    now: Duration,
}

impl Pair {
    fn new(run: &Run) -> Self {
        let host = |side: usize, bits: u8| {
            let networks = 1 + run.networks % NETWORKS;
            let addresses = (0..networks).map(|network| socket(side, network).ip()).collect();
            Host::new(configured(side, bits, run.networks), addresses, side as u8 + 1)
        };
        let hosts = [host(0, run.bits.0), host(1, run.bits.1)];
        let mut pair = Self {
            hosts,
            logs: Default::default(),
            ids: [None, None],
            in_flight: Default::default(),
            cut: Default::default(),
            now: Duration::from_secs(1),
        };
        pair.connect(0, configured(0, run.bits.0, run.networks));
        if run.both {
            pair.connect(1, configured(1, run.bits.1, run.networks));
        }
        pair.settle();
        pair
    }

    fn connect(&mut self, side: usize, association: AssociationConfig) {
        let mut options = ConnectOptions::new(socket(1 - side, 0), PORT);
        options.local_port = PORT;
        options.association = association;
        let id = self.hosts[side].endpoint.connect(self.now, &options);
        self.ids[side] = id.ok();
    }

    fn settle(&mut self) {
        for side in 0..2 {
            let host = &mut self.hosts[side];
            host.drain(self.now);
            self.in_flight[1 - side].extend(host.take_packets());
            let excess = self.in_flight[1 - side].len().saturating_sub(MAX_IN_FLIGHT);
            self.in_flight[1 - side].drain(..excess);
            if self.ids[side].is_none() {
                self.ids[side] = host.endpoint.associations().first().copied();
            }
        }
    }

    fn receive(&mut self, side: usize) {
        for message in self.hosts[side].receive(self.now) {
            REACH.hit(if message.unordered {
                "unordered messages arrive"
            } else {
                "messages arrive"
            });
            self.logs[side].receive(message);
        }
    }

    fn arrive(&mut self, side: usize, which: u8, stays: bool) {
        let waiting = &mut self.in_flight[side];
        if waiting.is_empty() {
            return;
        }
        let index = usize::from(which) % waiting.len();
        let packet = if stays { waiting[index].clone() } else { waiting.remove(index) };
        self.pass(side, packet);
    }

    /// Delivers a packet, if its network works.
    fn pass(&mut self, side: usize, (network, packet): (u8, Bytes)) {
        if !self.cut[usize::from(network % NETWORKS)] {
            self.hosts[side].handle_packet(self.now, socket(1 - side, network), packet);
        }
    }

    fn all_arrive(&mut self) {
        for side in 0..2 {
            for packet in std::mem::take(&mut self.in_flight[side]) {
                self.pass(side, packet);
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let now = self.now;
        match step {
            Step::Send { side, stream, unordered, length } => {
                self.send(
                    usize::from(*side),
                    *stream % 20,
                    *unordered,
                    usize::from(*length) % 9000,
                );
            }
            Step::Receive(side) => self.receive(usize::from(*side)),
            Step::Arrives { side, which } => self.arrive(usize::from(*side), *which, false),
            Step::Repeats { side, which } => self.arrive(usize::from(*side), *which, true),
            Step::Lost { side, which } => {
                let waiting = &mut self.in_flight[usize::from(*side)];
                if !waiting.is_empty() {
                    let (network, packet) = waiting.remove(usize::from(*which) % waiting.len());
                    let remote = socket(usize::from(*side), network);
                    let sender = &mut self.hosts[1 - usize::from(*side)];
                    if *which >= REPORTED_FROM {
                        REACH.hit("a lost packet is reported");
                        sender.report_unreachable(now, remote, *which, Some(packet));
                    }
                }
            }
            Step::AllArrive => self.all_arrive(),
            // Too short for a side to time out.
            Step::Wait(milliseconds) => {
                self.wait(Duration::from_millis((*milliseconds % 500).into()))
            }
            Step::Tick => self.tick(Duration::from_secs(2)),
            Step::ResetStreams { side, outgoing, streams } => {
                let Some(id) = self.ids[usize::from(*side)] else { return };
                let streams: Vec<_> =
                    streams.iter().map(|stream| StreamId((stream % 20).into())).collect();
                let endpoint = &mut self.hosts[usize::from(*side)].endpoint;
                let _ = endpoint
                    .association_mut(now, id)
                    .and_then(|mut association| association.reset_streams(*outgoing, &streams));
            }
            Step::AddStreams { side, outbound, inbound } => {
                let Some(id) = self.ids[usize::from(*side)] else { return };
                let (outbound, inbound) = ((outbound % 8).into(), (inbound % 8).into());
                let endpoint = &mut self.hosts[usize::from(*side)].endpoint;
                let _ = endpoint
                    .association_mut(now, id)
                    .and_then(|mut association| association.add_streams(outbound, inbound));
            }
            Step::Cut(network) => {
                let cut = &mut self.cut[usize::from(network % NETWORKS)];
                *cut = !*cut;
            }
            Step::ResetAssociation(side) => {
                let Some(id) = self.ids[usize::from(*side)] else { return };
                let _ = self.hosts[usize::from(*side)]
                    .endpoint
                    .association_mut(now, id)
                    .and_then(|mut association| association.reset());
            }
        }
    }

    fn send(&mut self, side: usize, stream: u8, unordered: bool, length: usize) {
        let Some(id) = self.ids[side] else { return };
        let log = &mut self.logs[1 - side];
        let data = log.next_message(stream.into(), unordered, length);
        let info = SendInfo { stream: StreamId(stream.into()), unordered, ..SendInfo::default() };
        match self.hosts[side].endpoint.send(self.now, id, &info, data) {
            Ok(()) => {}
            Err(Error::Full | Error::NoSuchStream) => {
                log.sent.entry((stream.into(), unordered)).or_default().pop();
            }
            Err(error) => panic!("{error:?}: {:?}", self.hosts[side].events.last()),
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        for host in &mut self.hosts {
            host.endpoint.handle_input(self.now, Input::Tick);
        }
    }

    /// Advances to the next timeout, or by `limit` at most.
    fn tick(&mut self, limit: Duration) {
        let next = self.hosts.iter().filter_map(|host| host.timeout).min();
        let next = next.map_or(limit, |at| at.saturating_sub(self.now));
        self.wait(next.min(limit));
    }

    /// Checks that everything arrives once the networks work and the users receive. Returns false if the
    /// networks failed for so long before that there is no association.
    fn completes(&mut self) -> bool {
        self.cut = Default::default();
        let limit = self.now + PATIENCE;
        loop {
            self.all_arrive();
            self.settle();
            self.receive(0);
            self.receive(1);
            self.settle();
            let quiet = self.in_flight.iter().all(Vec::is_empty);
            if quiet && self.is_up() && self.logs.iter().all(Log::is_complete) {
                return true;
            }
            if self.handshake_failed() {
                return false;
            }
            if quiet {
                self.tick(Duration::from_secs(60));
            }
            assert!(self.now < limit, "stuck: {:?}", self.statuses());
        }
    }

    /// Returns whether a handshake has failed.
    fn handshake_failed(&self) -> bool {
        let failed = |host: &Host| {
            let lost = |event: &Event| *event == Event::Lost(LossReason::NoAnswer);
            host.events.iter().any(|(_, event)| lost(event))
        };
        self.hosts.iter().any(failed)
    }

    /// Returns whether the handshake is complete on both sides.
    fn is_up(&self) -> bool {
        self.hosts.iter().zip(self.ids).all(|(host, id)| {
            let status = id.and_then(|id| host.endpoint.status(id));
            status.is_some_and(|status| status.state == AssociationState::Established)
        })
    }

    fn statuses(&self) -> Vec<String> {
        let hosts = self.hosts.iter().zip(self.ids);
        hosts
            .map(|(host, id)| {
                let status = id.and_then(|id| host.endpoint.status(id));
                format!("{status:?} {:?}", host.events.last())
            })
            .collect()
    }

    /// Checks that both associations end after one side has closed.
    fn closes(&mut self) {
        let limit = self.now + PATIENCE;
        if let Some(id) = self.ids[0] {
            self.hosts[0].endpoint.shutdown(self.now, id).expect("an established association");
        }
        while self.hosts.iter().any(|host| !host.endpoint.associations().is_empty()) {
            self.all_arrive();
            self.settle();
            if self.in_flight.iter().all(Vec::is_empty) {
                self.tick(Duration::from_secs(60));
            }
            self.receive(0);
            self.receive(1);
            assert!(self.now < limit, "does not close: {:?}", self.statuses());
        }
        for host in &self.hosts {
            let last = host
                .events
                .iter()
                .rev()
                .find(|(_, event)| matches!(event, Event::Closed | Event::Lost(_)));
            assert!(matches!(last, Some((_, Event::Closed)) | None), "{last:?}");
            for (_, event) in &host.events {
                match event {
                    Event::StreamsReset { .. } => REACH.hit("streams are reset"),
                    Event::StreamsAdded { .. } => REACH.hit("streams are added"),
                    _ => {}
                }
            }
        }
        REACH.hit("both sides close");
    }
}

fuzz_target!(|run: Run| {
    REACH.begin();
    let mut pair = Pair::new(&run);
    // Few enough lost and late packets that no side times out.
    for step in run.steps.iter().take(400) {
        pair.step(step);
        pair.settle();
        let gone =
            |host: &Host| host.events.iter().any(|(_, event)| matches!(event, Event::Lost(_)));
        if pair.hosts.iter().any(gone) {
            return;
        }
    }
    if !pair.completes() {
        return;
    }
    for log in &mut pair.logs {
        log.check();
    }
    pair.closes();
});
