//! No timer runs in a state in which its action is not possible: whatever arrives in whatever
//! state, an endpoint asks to be called at a later time than now, and not endlessly.

use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::EndpointConfig;
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::identifier::{PathId, Ppid, StreamId};
use eyas_sctp::io::{Input, Unreachable};
use eyas_sctp::message::{MessageReliability, SendInfo};
use eyas_sctp::serial::{Mid, Ssn, Tsn};
use eyas_sctp::wire::{
    Chunk, DataChunk, DataFlags, DataOrder, ErrorCause, ErrorChunk, ForwardTsnChunk, GapBlock,
    HeartbeatChunk, IForwardTsnChunk, SackBuilder,
};
use proptest::prelude::*;

use crate::associations::world::{A, B, Wiretap, World, ms, multihomed, socket};

/// How often both endpoints together may ask to be called within ten minutes in which nothing
/// happens except heartbeats, retransmissions and SACKs.
const MOST_CALLS: u64 = 10_000;

/// A forged chunk with numbers near those in use.
#[derive(Clone, Copy, Debug)]
enum Forged {
    Data { ahead: u32, interleaved: bool },
    Sack { ahead: u32, window: u32, gap: bool, nr: bool },
    ForwardTsn { ahead: u32 },
    IForwardTsn { ahead: u32 },
    Heartbeat,
    HeartbeatAck,
    CookieAck,
    Shutdown { ahead: u32 },
    ShutdownAck,
    Error { stale: bool },
    Ecne { ahead: u32 },
    Cwr { ahead: u32 },
}

#[derive(Clone, Debug)]
enum Step {
    Forge { to: usize, chunks: Vec<Forged> },
    Pass { ms: u64 },
    Connect { hold: bool },
    Proceed,
    Send { host: usize, size: usize, lifetime: Option<u64> },
    Shutdown { host: usize },
    ResetStreams { host: usize },
    Unreachable { host: usize, reason: Unreachable },
    Cut { networks: u8 },
}

fn forged() -> impl Strategy<Value = Forged> {
    let ahead = || prop_oneof![0..4u32, Just(u32::MAX), 0..5000u32];
    prop_oneof![
        (ahead(), any::<bool>())
            .prop_map(|(ahead, interleaved)| Forged::Data { ahead, interleaved }),
        (ahead(), prop_oneof![Just(0), 0..4000u32, Just(1 << 20)], any::<bool>(), any::<bool>())
            .prop_map(|(ahead, window, gap, nr)| Forged::Sack { ahead, window, gap, nr }),
        ahead().prop_map(|ahead| Forged::ForwardTsn { ahead }),
        ahead().prop_map(|ahead| Forged::IForwardTsn { ahead }),
        Just(Forged::Heartbeat),
        Just(Forged::HeartbeatAck),
        Just(Forged::CookieAck),
        ahead().prop_map(|ahead| Forged::Shutdown { ahead }),
        Just(Forged::ShutdownAck),
        any::<bool>().prop_map(|stale| Forged::Error { stale }),
        ahead().prop_map(|ahead| Forged::Ecne { ahead }),
        ahead().prop_map(|ahead| Forged::Cwr { ahead }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let host = || 0..2usize;
    let reason = prop_oneof![
        Just(Unreachable::Route),
        Just(Unreachable::TooBig(1300)),
        Just(Unreachable::Protocol),
    ];
    let lifetime = prop_oneof![3 => Just(None), 1 => (0..3000u64).prop_map(Some)];
    prop_oneof![
        8 => (host(), prop::collection::vec(forged(), 1..4))
            .prop_map(|(to, chunks)| Step::Forge { to, chunks }),
        6 => prop_oneof![Just(10), 0..40u64, 0..5000u64].prop_map(|ms| Step::Pass { ms }),
        1 => any::<bool>().prop_map(|hold| Step::Connect { hold }),
        2 => Just(Step::Proceed),
        3 => (host(), prop_oneof![1..200usize, 1..40_000usize], lifetime)
            .prop_map(|(host, size, lifetime)| Step::Send { host, size, lifetime }),
        1 => host().prop_map(|host| Step::Shutdown { host }),
        1 => host().prop_map(|host| Step::ResetStreams { host }),
        1 => (host(), reason).prop_map(|(host, reason)| Step::Unreachable { host, reason }),
        1 => (0..4u8).prop_map(|networks| Step::Cut { networks }),
    ]
}

/// The chunk as the peer of `to` might have sent it.
fn chunk(wiretap: &Wiretap, to: usize, forged: Forged) -> Chunk {
    let (theirs, ours) = (wiretap.tsn_of(1 - to), wiretap.tsn_of(to));
    let from = |base: Tsn, ahead: u32| base.plus(ahead);
    match forged {
        Forged::Data { ahead, interleaved } => Chunk::Data(DataChunk {
            tsn: from(theirs, ahead),
            stream: StreamId(1),
            flags: DataFlags { unordered: false, begin: true, end: true, immediate: false },
            order: match interleaved {
                true => DataOrder::Mid { mid: Mid(0), fsn: 0 },
                false => DataOrder::Ssn(Ssn(0)),
            },
            ppid: Ppid(0),
            payload: Bytes::from_static(b"forged"),
        }),
        Forged::Sack { ahead, window, gap, nr } => {
            let gaps = if gap { vec![GapBlock { start: 2, end: 3 }] } else { Vec::new() };
            let builder = SackBuilder {
                cumulative_tsn: from(ours, ahead),
                a_rwnd: window,
                gap_blocks: &gaps,
                is_nr: nr,
                ..SackBuilder::default()
            };
            Chunk::Sack(builder.build())
        }
        Forged::ForwardTsn { ahead } => {
            Chunk::ForwardTsn(ForwardTsnChunk::new(from(theirs, ahead), &[]))
        }
        Forged::IForwardTsn { ahead } => {
            Chunk::IForwardTsn(IForwardTsnChunk::new(from(theirs, ahead), &[]))
        }
        Forged::Heartbeat => Chunk::Heartbeat(HeartbeatChunk { info: Bytes::from_static(b"here") }),
        Forged::HeartbeatAck => {
            Chunk::HeartbeatAck(HeartbeatChunk { info: Bytes::from_static(&[0; 10]) })
        }
        Forged::CookieAck => Chunk::CookieAck,
        Forged::Shutdown { ahead } => Chunk::Shutdown { cumulative_tsn: from(ours, ahead) },
        Forged::ShutdownAck => Chunk::ShutdownAck,
        Forged::Error { stale } => {
            let cause = match stale {
                true => ErrorCause::StaleCookie { staleness: 1000 },
                false => ErrorCause::InvalidMandatoryParameter,
            };
            Chunk::Error(ErrorChunk { causes: cause.into() })
        }
        Forged::Ecne { ahead } => Chunk::Ecne { lowest_tsn: from(ours, ahead) },
        Forged::Cwr { ahead } => Chunk::Cwr { lowest_tsn: from(theirs, ahead) },
    }
}

fn configured(host: usize, ecn: bool, interleaving: bool, plain: bool) -> EndpointConfig {
    let mut config = multihomed(host, 2);
    config.association.extensions.ecn = ecn;
    config.association.extensions.interleaving = interleaving;
    if !plain {
        config.association.hb_interval = Some(Duration::from_secs(30));
        config.association.path_mtu_discovery = true;
    }
    config
}

fn act(world: &mut World, step: &Step) {
    let now = world.now;
    match step {
        Step::Forge { to, chunks } => {
            let Some(wiretap) = &world.tap.wiretap else { return };
            let chunks: Vec<Chunk> = chunks.iter().map(|one| chunk(wiretap, *to, *one)).collect();
            let Some(packet) = wiretap.forge(*to, &chunks) else { return };
            world.inject(*to, socket(1 - to, 0), packet);
        }
        Step::Pass { ms: time } => world.run_for(ms(*time)),
        Step::Connect { hold } => {
            world.connect_with(|options| options.hold_at_init_ack = *hold);
        }
        Step::Proceed => {
            for id in world.hosts[A].endpoint.associations() {
                world.hosts[A].endpoint.proceed(now, id).unwrap();
            }
        }
        Step::Send { host, size, lifetime } => {
            let mut info = SendInfo::default();
            if let Some(lifetime) = lifetime {
                info.reliability = MessageReliability::Lifetime(ms(*lifetime));
            }
            for id in world.hosts[*host].endpoint.associations() {
                // Rejected in some states, and where there is no room.
                let _ = world.hosts[*host].endpoint.send(now, id, &info, vec![7; *size].into());
            }
        }
        Step::Shutdown { host } => {
            for id in world.hosts[*host].endpoint.associations() {
                let _ = world.hosts[*host].endpoint.shutdown(now, id);
            }
        }
        Step::ResetStreams { host } => {
            for id in world.hosts[*host].endpoint.associations() {
                let mut association = world.hosts[*host].endpoint.association_mut(now, id).unwrap();
                let _ = association.reset_streams(true, &[]);
                let _ = association.set_primary(PathId(1));
            }
        }
        Step::Unreachable { host, reason } => {
            let remote = socket(1 - host, 0);
            let input = Input::Unreachable { remote, reason: *reason, quoted: None };
            world.hosts[*host].endpoint.handle_input(now, input);
        }
        Step::Cut { networks } => {
            world.network.cut = (0..2).filter(|network| networks >> network & 1 == 1).collect();
        }
    }
    // A timeout that has already passed is detected here.
    world.drain();
}

fn run_steps(ecn: bool, interleaving: bool, plain: bool, hold: bool, steps: &[Step]) {
    let configured = |host| configured(host, ecn, interleaving, plain);
    let mut world = World::with(configured(A), configured(B));
    world.tap.wiretap = Some(Wiretap::default());
    world.connect_with(|options| options.hold_at_init_ack = hold);
    world.drain();
    for step in steps {
        act(&mut world, step);
    }
    world.calls = 0;
    world.run_for(Duration::from_secs(600));
    assert!(world.calls < MOST_CALLS, "{} calls in ten minutes", world.calls);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64, max_shrink_iters: 64, ..ProptestConfig::default()
    })]

    //= rfc9260 §6
    //# DATA is accepted only in ESTABLISHED, SHUTDOWN-PENDING and SHUTDOWN-SENT
    #[test]
    fn no_timer_is_ever_due_without_an_end(
        (ecn, interleaving, plain, hold) in any::<(bool, bool, bool, bool)>(),
        steps in prop::collection::vec(step(), 1..24),
    ) {
        run_steps(ecn, interleaving, plain, hold, &steps);
    }
}

//= rfc9260 §5.1 C
//# between COOKIE ECHO and COOKIE ACK no packet is sent, and data-transfer chunks are ignored
/// A reply that may not be sent yet does not wake the endpoint.
#[test]
fn a_forward_tsn_before_the_association_is_up_starts_no_timer() {
    for hold in [false, true] {
        for interleaving in [false, true] {
            let configured = |host| configured(host, false, interleaving, true);
            let mut world = World::with(configured(A), configured(B));
            world.tap.wiretap = Some(Wiretap::default());
            world.lose("COOKIE-ECHO");
            world.connect_with(|options| options.hold_at_init_ack = hold);
            world.run_for(ms(25));
            let state = if hold { AssociationState::Held } else { AssociationState::CookieEchoed };
            assert_eq!(world.hosts[A].state(), state);
            let skip = match interleaving {
                true => Forged::IForwardTsn { ahead: 1 },
                false => Forged::ForwardTsn { ahead: 1 },
            };
            act(&mut world, &Step::Forge { to: A, chunks: vec![skip] });
            assert_eq!(world.hosts[A].endpoint.counters().unexpected_chunks, 1);
            world.run_for(ms(500));
            assert_eq!(world.hosts[A].state(), state);
        }
    }
}
