//! Two associations, arbitrary operations of their users, and networks that lose, repeat, reorder and
//! fail, one at a time or all used at once: no message is lost, repeated or out of its order, and once the network is good again
//! everything arrives and both sides close.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::Bytes;
use eyas_sctp::config::{
    AssociationConfig, ChunkRescheduling, ConnectOptions, Multipath, Profile, StreamMapping,
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

/// The most packets on their way; the oldest are lost beyond that.
const MAX_UNDER_WAY: usize = 4000;

/// The most networks.
const NETWORKS: u8 = 3;

/// Of packets that are lost, the network reports those with such a number or a higher one.
const REPORTED_FROM: u8 = 128;

/// How long a good network needs at most, in virtual time.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

static REACH: Reach<6> = Reach::new([
    "messages arrive",
    "unordered messages arrive",
    "a packet that was lost is reported",
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
    /// The user of a side takes what there is.
    Receive(bool),
    /// One of the packets to a side arrives.
    Arrives {
        side: bool,
        which: u8,
    },
    /// The same, and it will arrive again.
    Repeats {
        side: bool,
        which: u8,
    },
    /// One of the packets to a side does not; of some the network says so.
    Lost {
        side: bool,
        which: u8,
    },
    /// All that is on its way arrives.
    AllArrive,
    /// Time passes.
    Wait(u16),
    /// Time passes until something is due.
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
    /// How many networks there are, and who uses them at once, and how.
    several: u8,
    /// Whether both sides connect.
    both: bool,
    steps: Vec<Step>,
}

/// A message as its text says: the number of its sending on its stream.
#[derive(Default)]
struct Log {
    sent: BTreeMap<(u16, bool), Vec<(u32, usize)>>,
    received: BTreeMap<(u16, bool), Vec<(u32, usize)>>,
    /// Parts of messages that were begun.
    open: BTreeMap<(u16, bool, u32), Vec<u8>>,
}

impl Log {
    fn text(&mut self, stream: u16, unordered: bool, length: usize) -> Bytes {
        let sent = self.sent.entry((stream, unordered)).or_default();
        let number = u32::try_from(sent.len()).expect("few");
        let mut data = number.to_be_bytes().to_vec();
        data.extend((0..length).map(|index| (number as usize + index) as u8));
        sent.push((number, data.len()));
        data.into()
    }

    fn take(&mut self, message: Message) {
        let stream = message.stream.0;
        // Without interleaving the parts of an unordered message follow each other.
        let number = if message.unordered { 0 } else { message.number };
        let key = (stream, message.unordered, number);
        if message.begins {
            assert!(!self.open.contains_key(&key), "a message begins in another");
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
        let again = received.iter().any(|(other, _)| *other == number);
        assert!(!again, "message {number} of stream {stream} again");
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

/// The options of a side.
fn configured(side: usize, bits: u8, several: u8) -> AssociationConfig {
    let mut config = association(bits);
    if several >> (2 + side) & 1 != 0 {
        let mut multipath = Multipath::default();
        if several & 16 != 0 {
            Profile::Pfldnet2010.apply(&mut config);
            multipath = config.multipath.take().unwrap_or_default();
        }
        if several & 32 != 0 {
            multipath.mapping = StreamMapping::Modulo;
        }
        if several & 64 != 0 {
            multipath.rescheduling = ChunkRescheduling::Both;
        }
        if several & 128 != 0 {
            multipath.mapping = StreamMapping::Automatic;
        }
        config.multipath = Some(multipath);
    }
    // Networks that fail are not to end the association.
    config.association_max_retrans = 1000;
    config
}

struct Pair {
    hosts: [Host; 2],
    /// What each side was sent.
    logs: [Log; 2],
    ids: [Option<AssociationId>; 2],
    /// Packets on their way to each side, with the network that they take.
    under_way: [Vec<(u8, Bytes)>; 2],
    /// Networks on which nothing arrives.
    cut: [bool; NETWORKS as usize],
    now: Duration,
}

impl Pair {
    fn new(run: &Run) -> Self {
        let host = |side: usize, bits: u8| {
            let networks = 1 + run.several % NETWORKS;
            let addresses = (0..networks).map(|network| socket(side, network).ip()).collect();
            Host::new(configured(side, bits, run.several), addresses, side as u8 + 1)
        };
        let hosts = [host(0, run.bits.0), host(1, run.bits.1)];
        let mut pair = Self {
            hosts,
            logs: Default::default(),
            ids: [None, None],
            under_way: Default::default(),
            cut: Default::default(),
            now: Duration::from_secs(1),
        };
        pair.connect(0, configured(0, run.bits.0, run.several));
        if run.both {
            pair.connect(1, configured(1, run.bits.1, run.several));
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
            self.under_way[1 - side].extend(host.take_packets());
            let excess = self.under_way[1 - side].len().saturating_sub(MAX_UNDER_WAY);
            self.under_way[1 - side].drain(..excess);
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
            self.logs[side].take(message);
        }
    }

    fn arrive(&mut self, side: usize, which: u8, stays: bool) {
        let waiting = &mut self.under_way[side];
        if waiting.is_empty() {
            return;
        }
        let index = usize::from(which) % waiting.len();
        let packet = if stays { waiting[index].clone() } else { waiting.remove(index) };
        self.pass(side, packet);
    }

    /// A packet arrives, if its network works.
    fn pass(&mut self, side: usize, (network, packet): (u8, Bytes)) {
        if !self.cut[usize::from(network % NETWORKS)] {
            self.hosts[side].take(self.now, socket(1 - side, network), packet);
        }
    }

    fn all_arrive(&mut self) {
        for side in 0..2 {
            for packet in std::mem::take(&mut self.under_way[side]) {
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
                let waiting = &mut self.under_way[usize::from(*side)];
                if !waiting.is_empty() {
                    let (network, packet) = waiting.remove(usize::from(*which) % waiting.len());
                    let remote = socket(usize::from(*side), network);
                    let sender = &mut self.hosts[1 - usize::from(*side)];
                    if *which >= REPORTED_FROM {
                        REACH.hit("a packet that was lost is reported");
                        sender.hear(now, remote, *which, Some(packet));
                    }
                }
            }
            Step::AllArrive => self.all_arrive(),
            // Not long enough for a side to give the other up.
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
                    .and_then(|mut one| one.reset_streams(*outgoing, &streams));
            }
            Step::AddStreams { side, outbound, inbound } => {
                let Some(id) = self.ids[usize::from(*side)] else { return };
                let (outbound, inbound) = ((outbound % 8).into(), (inbound % 8).into());
                let endpoint = &mut self.hosts[usize::from(*side)].endpoint;
                let _ = endpoint
                    .association_mut(now, id)
                    .and_then(|mut one| one.add_streams(outbound, inbound));
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
                    .and_then(|mut one| one.reset());
            }
        }
    }

    fn send(&mut self, side: usize, stream: u8, unordered: bool, length: usize) {
        let Some(id) = self.ids[side] else { return };
        let log = &mut self.logs[1 - side];
        let data = log.text(stream.into(), unordered, length);
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

    /// Goes to the next timeout, if it comes within `limit`.
    fn tick(&mut self, limit: Duration) {
        let next = self.hosts.iter().filter_map(|host| host.timeout).min();
        let next = next.map_or(limit, |at| at.saturating_sub(self.now));
        self.wait(next.min(limit));
    }

    /// The network is good and the users take everything: all arrives. False if it was bad for so
    /// long before that there is no association.
    fn completes(&mut self) -> bool {
        self.cut = Default::default();
        let limit = self.now + PATIENCE;
        loop {
            self.all_arrive();
            self.settle();
            self.receive(0);
            self.receive(1);
            self.settle();
            let quiet = self.under_way.iter().all(Vec::is_empty);
            if quiet && self.is_up() && self.logs.iter().all(Log::is_complete) {
                return true;
            }
            if self.was_kept_apart() {
                return false;
            }
            if quiet {
                self.tick(Duration::from_secs(60));
            }
            assert!(self.now < limit, "stuck: {:?}", self.statuses());
        }
    }

    /// Whether a handshake has failed.
    fn was_kept_apart(&self) -> bool {
        let failed = |host: &Host| {
            let lost = |event: &Event| *event == Event::Lost(LossReason::NoAnswer);
            host.events.iter().any(|(_, event)| lost(event))
        };
        self.hosts.iter().any(failed)
    }

    /// Whether the handshake is over on both sides.
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

    /// One side closes, and both are gone.
    fn closes(&mut self) {
        let limit = self.now + PATIENCE;
        if let Some(id) = self.ids[0] {
            self.hosts[0].endpoint.shutdown(self.now, id).expect("it is up");
        }
        while self.hosts.iter().any(|host| !host.endpoint.associations().is_empty()) {
            self.all_arrive();
            self.settle();
            if self.under_way.iter().all(Vec::is_empty) {
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
    // Lost and late packets are few enough for nobody to give up.
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
