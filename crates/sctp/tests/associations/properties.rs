//! Two endpoints under arbitrary operations, over networks that lose, duplicate, delay and
//! disconnect: every reliable message arrives exactly once, in order within its stream; buffers
//! stay within their bounds; nothing stalls; the same inputs give the same outputs, byte for byte.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{
    AssociationConfig, CongestionControlKind, EndpointConfig, LossDetection, MultipathConfig,
    SchedulerKind,
};
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::error::Error;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::message::{MessageReliability, SendInfo};
use proptest::prelude::*;

use crate::associations::strategies::multipath;
use crate::associations::world::{A, B, World, address, ms, multihomed};
use crate::network::{late, lost};

/// The number of streams in use.
const STREAMS: u16 = 5;
/// The size of the send buffer and of the receive window.
const BUFFER: usize = 60_000;

/// An event in a run.
#[derive(Clone, Debug)]
enum Step {
    Send {
        host: usize,
        stream: u16,
        size: usize,
        kind: Kind,
    },
    Wait {
        ms: u64,
    },
    Reads {
        host: usize,
        reads: bool,
    },
    Disconnect {
        network: u8,
    },
    ReconnectAll,
    /// The address of a host on network 1 is removed, or added again.
    Readdress {
        host: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ordered,
    Unordered,
    ShortLived,
}

/// The configuration of a run.
#[derive(Clone, Debug)]
struct Setting {
    seed: u64,
    loss: u32,
    duplication: u32,
    reordering: u32,
    networks: u8,
    /// The additional delay of each network over the previous one, in milliseconds.
    lag: u64,
    /// The multipath configuration of each side.
    multipath: [Option<MultipathConfig>; 2],
    interleaving: bool,
    nr_sack: bool,
    partial_reliability: bool,
    dynamic_addresses: bool,
    authenticated_data: bool,
    congestion: CongestionControlKind,
    detection: LossDetection,
    scheduler: SchedulerKind,
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![1..100usize, 1..3000usize, 1..30_000usize];
    let kind = prop_oneof![
        4 => Just(Kind::Ordered),
        1 => Just(Kind::Unordered),
        1 => Just(Kind::ShortLived),
    ];
    let send = (0..2usize, 0..STREAMS, size, kind)
        .prop_map(|(host, stream, size, kind)| Step::Send { host, stream, size, kind });
    prop_oneof![
        12 => send,
        4 => prop_oneof![0..30u64, 0..3000u64].prop_map(|ms| Step::Wait { ms }),
        1 => (0..2usize, any::<bool>()).prop_map(|(host, reads)| Step::Reads { host, reads }),
        1 => (0..3u8).prop_map(|network| Step::Disconnect { network }),
        1 => Just(Step::ReconnectAll),
        1 => (0..2usize).prop_map(|host| Step::Readdress { host }),
    ]
}

fn setting() -> impl Strategy<Value = Setting> {
    let congestion = prop::sample::select(&CongestionControlKind::ALL[..]);
    let detection = prop_oneof![Just(LossDetection::Classic), Just(LossDetection::Rack)];
    let scheduler = prop::sample::select(&SchedulerKind::ALL[..]);
    let network = (any::<u64>(), 0..200u32, 0..100u32, 0..500u32, 1..4u8, 0..100u64);
    let multipath = [multipath(), multipath()];
    let extensions = any::<(bool, bool, bool, bool, bool)>();
    (network, multipath, extensions, congestion, detection, scheduler).prop_map(
        |(network, multipath, extensions, congestion, detection, scheduler)| {
            let (seed, loss, duplication, reordering, networks, lag) = network;
            let (interleaving, nr_sack, partial_reliability, dynamic_addresses, authenticated_data) =
                extensions;
            Setting {
                seed,
                loss,
                duplication,
                reordering,
                networks,
                lag,
                multipath,
                interleaving,
                nr_sack,
                partial_reliability,
                dynamic_addresses,
                authenticated_data,
                congestion,
                detection,
                scheduler,
            }
        },
    )
}

fn configured(setting: &Setting, host: usize) -> EndpointConfig {
    let mut config = multihomed(host, setting.networks);
    let mut association = AssociationConfig::default();
    association.send_buffer = BUFFER;
    association.receive_buffer = BUFFER;
    association.association_max_retrans = 1000;
    association.rto_max = Duration::from_secs(4);
    association.extensions.interleaving = setting.interleaving;
    association.extensions.nr_sack = setting.nr_sack;
    association.extensions.partial_reliability = setting.partial_reliability;
    association.extensions.dynamic_addresses = setting.dynamic_addresses;
    if setting.authenticated_data {
        association.extensions.authentication = true;
        association.authenticated_chunks = vec![0, 3, 64, 130, 192, 194];
    }
    association.congestion_control = setting.congestion.into();
    association.loss_detection = setting.detection;
    association.scheduler = setting.scheduler.into();
    association.multipath = setting.multipath[host].clone();
    config.association = association;
    config
}

/// A message that was sent: its number, size and kind.
type QueuedMessage = (u32, usize, Kind);

/// The messages sent, by sender and stream.
#[derive(Default)]
struct Sent {
    next: u32,
    messages: BTreeMap<(usize, u16), Vec<QueuedMessage>>,
}

impl Sent {
    fn send(
        &mut self,
        world: &mut World,
        ids: [AssociationId; 2],
        (host, stream, size, kind): (usize, u16, usize, Kind),
    ) {
        let mut data = self.next.to_be_bytes().to_vec();
        data.resize(size.max(4), self.next as u8);
        let mut info = SendInfo { stream: StreamId(stream), ..SendInfo::default() };
        info.unordered = kind == Kind::Unordered;
        if kind == Kind::ShortLived {
            info.reliability = MessageReliability::Lifetime(ms(50));
        }
        match world.hosts[host].endpoint.send(world.now, ids[host], &info, Bytes::from(data)) {
            Ok(()) => {
                let messages = self.messages.entry((host, stream)).or_default();
                messages.push((self.next, size.max(4), kind));
                self.next += 1;
            }
            Err(Error::Full) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// The reliable messages from `host`.
    fn reliable(&self, host: usize) -> usize {
        let of_host = self.messages.iter().filter(|((from, _), _)| *from == host);
        of_host.flat_map(|(_, list)| list).filter(|(_, _, kind)| *kind != Kind::ShortLived).count()
    }
}

/// The whole messages that `host` received, by stream.
fn received(world: &World, host: usize, setting: &Setting) -> BTreeMap<u16, Vec<(u32, usize)>> {
    // Parts of several unordered messages may alternate; with I-DATA they are numbered.
    let mut parts: BTreeMap<(u16, bool, u32), Vec<u8>> = BTreeMap::new();
    let mut whole: BTreeMap<u16, Vec<(u32, usize)>> = BTreeMap::new();
    for message in world.hosts[host].received.values().flatten() {
        let number = if setting.interleaving { message.number } else { 0 };
        let key = (message.stream.0, message.unordered, number);
        let mut data = message.clone().into_bytes().to_vec();
        if !(message.begins && message.ends) {
            let part = parts.entry(key).or_default();
            if message.begins && setting.partial_reliability {
                // The previous message was abandoned in the middle.
                part.clear();
            }
            assert_eq!(part.is_empty(), message.begins, "a part without a beginning");
            part.append(&mut data);
            if !message.ends {
                continue;
            }
            data = core::mem::take(part);
        }
        let number = u32::from_be_bytes(data[..4].try_into().unwrap());
        assert!(data[4..].iter().all(|byte| *byte == number as u8));
        whole.entry(message.stream.0).or_default().push((number, data.len()));
    }
    whole
}

fn check_delivery(world: &World, sent: &Sent, setting: &Setting) {
    for to in [A, B] {
        let arrived = received(world, to, setting);
        for stream in 0..STREAMS {
            let expected = sent.messages.get(&(1 - to, stream)).cloned().unwrap_or_default();
            let got = arrived.get(&stream).cloned().unwrap_or_default();
            let kind_of: BTreeMap<u32, (usize, Kind)> =
                expected.iter().map(|(n, size, kind)| (*n, (*size, *kind))).collect();
            let mut count: BTreeMap<u32, usize> = BTreeMap::new();
            for (number, size) in &got {
                assert_eq!(kind_of.get(number).map(|(size, _)| size), Some(size));
                *count.entry(*number).or_default() += 1;
            }
            assert!(count.values().all(|times| *times == 1), "a message arrived twice");
            for (number, (_, kind)) in &kind_of {
                if *kind != Kind::ShortLived {
                    assert!(count.contains_key(number), "message {number} did not arrive");
                }
            }
            let ordered: Vec<u32> = got
                .iter()
                .map(|(number, _)| *number)
                .filter(|number| kind_of[number].1 != Kind::Unordered)
                .collect();
            assert!(ordered.is_sorted(), "out of order: {ordered:?}");
        }
    }
}

fn check_bounds(world: &World, ids: [AssociationId; 2]) {
    for host in [A, B] {
        if let Some(status) = world.hosts[host].endpoint.status(ids[host]) {
            assert!(status.queued <= BUFFER);
            assert!(status.window as usize <= BUFFER);
            let outstanding: usize = status.paths.iter().map(|path| path.outstanding).sum();
            assert!(outstanding <= status.queued, "{outstanding} of {}", status.queued);
        }
    }
}

/// Runs the steps; returns a digest of all packets sent.
fn run_steps(setting: &Setting, steps: &[Step]) -> u64 {
    let mut world = World::with(configured(setting, A), configured(setting, B));
    world.network.seed(setting.seed);
    let (a, b) = world.connected();
    let ids = [a, b];
    let lateness = ms(1 + setting.seed % 40);
    world.change_links(|network, link| {
        link.loss = lost(setting.loss);
        link.duplication = f64::from(setting.duplication) / 1000.0;
        link.reordering = late(setting.reordering, lateness);
        link.delay += ms(setting.lag) * network.into();
    });
    let mut sent = Sent::default();
    let mut second_address = [true; 2];
    for step in steps {
        match *step {
            Step::Send { host, stream, size, kind } => {
                sent.send(&mut world, ids, (host, stream, size, kind));
            }
            Step::Wait { ms: time } => world.run_for(ms(time)),
            Step::Reads { host, reads } => world.hosts[host].reads = reads,
            Step::Disconnect { network } => world.network.cut = vec![network],
            Step::ReconnectAll => world.network.cut.clear(),
            Step::Readdress { host } if setting.dynamic_addresses && setting.networks > 1 => {
                let (endpoint, address) = (&mut world.hosts[host].endpoint, address(host, 1));
                let own = endpoint.association_mut(world.now, ids[host]);
                let requested = own.and_then(|mut own| match second_address[host] {
                    true => own.remove_address(address),
                    false => own.add_address(address),
                });
                second_address[host] ^= requested.is_ok();
            }
            Step::Readdress { .. } => {}
        }
        check_bounds(&world, ids);
    }
    world.network.cut.clear();
    world.lose_per_thousand(0);
    world.hosts[A].reads = true;
    world.hosts[B].reads = true;
    let all = [sent.reliable(B), sent.reliable(A)];
    world.run_until(Duration::from_secs(120), |world| {
        [A, B].iter().all(|host| {
            let dry = world.hosts[*host].status(ids[*host]).queued == 0;
            dry && world.hosts[*host].received_messages() >= all[*host]
        })
    });
    world.run_for(ms(1000));
    check_delivery(&world, &sent, setting);
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world.run_until(Duration::from_secs(60), |world| {
        world.hosts.iter().all(|host| host.state() == AssociationState::Closed)
    });
    assert_eq!(world.hosts[A].events().last(), Some(&Event::Closed));
    assert_eq!(world.hosts[B].events().last(), Some(&Event::Closed));
    world.tap.digest
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    //= rfc9260 §6.6
    //# order within a stream; unordered data bypasses it
    #[test]
    fn whatever_happens_messages_arrive_once_and_in_order(
        setting in setting(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let first = run_steps(&setting, &steps);
        let second = run_steps(&setting, &steps);
        prop_assert_eq!(first, second, "the same inputs gave different outputs");
    }
}
