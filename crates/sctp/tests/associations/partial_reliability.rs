//! Hundreds of messages that are abandoned (RFC 3758), whatever is lost meanwhile: the peer answers,
//! so that the association stays, and what is sent afterwards arrives.

use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{LossDetection, MultipathConfig};
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::message::{MessageReliability, SendInfo};
use proptest::prelude::*;

use crate::associations::world::{A, B, World, listening, ms};

/// The number of streams in use.
const STREAMS: u16 = 3;

/// What happens in a run.
#[derive(Clone, Debug)]
struct Setting {
    interleaving: bool,
    detection: LossDetection,
    multipath: bool,
    reliability: MessageReliability,
    /// Messages that each sender abandons, if all their DATA is lost.
    jumps: u32,
    size: usize,
    unordered: bool,
    /// The time between two messages, in milliseconds.
    pause: u64,
    /// How many of a thousand packets are lost: with FORWARD-TSN, with a SACK, with DATA alone.
    loss: [u64; 3],
    /// Whether `B` sends the same.
    is_mutual: bool,
}

fn setting() -> impl Strategy<Value = Setting> {
    let reliability = prop_oneof![
        (0..4u16).prop_map(MessageReliability::Retransmissions),
        prop_oneof![0..60u64, 0..2500u64].prop_map(|time| MessageReliability::Lifetime(ms(time))),
    ];
    let detection = prop_oneof![Just(LossDetection::Classic), Just(LossDetection::Rack)];
    let size = prop_oneof![1..1000usize, 1000..20_000usize];
    let pause = prop_oneof![Just(0), 0..50u64, 0..3000u64];
    let data_loss = prop_oneof![2 => Just(1000), 1 => 0..1000u64];
    let traffic = (200..400u32, size, any::<bool>(), pause, any::<bool>());
    let association = (any::<bool>(), detection, any::<bool>(), reliability);
    (association, traffic, (data_loss, 0..200u64, 0..200u64)).prop_map(
        |(association, traffic, (data, forward_tsn, sack))| {
            let (interleaving, detection, multipath, reliability) = association;
            let (jumps, size, unordered, pause, is_mutual) = traffic;
            let loss = [forward_tsn, sack, data];
            Setting {
                interleaving,
                detection,
                multipath,
                reliability,
                jumps,
                size,
                unordered,
                pause,
                loss,
                is_mutual,
            }
        },
    )
}

/// The hosts that send, with their associations.
fn senders(
    setting: &Setting,
    ids: [AssociationId; 2],
) -> impl Iterator<Item = (usize, AssociationId)> {
    [A, B].into_iter().zip(ids).take(if setting.is_mutual { 2 } else { 1 })
}

fn established(setting: &Setting) -> (World, [AssociationId; 2]) {
    let config = || {
        let mut config = listening();
        config.association.extensions.interleaving = setting.interleaving;
        config.association.loss_detection = setting.detection;
        config.association.multipath = setting.multipath.then(MultipathConfig::default);
        config
    };
    let mut world = World::with(config(), config());
    let (a, b) = world.connected();
    (world, [a, b])
}

/// Sends what may be abandoned, and loses packets meanwhile.
fn jump(world: &mut World, ids: [AssociationId; 2], setting: &Setting) {
    let [forward_tsn, sack, data] = setting.loss;
    world.tap.lossy = vec![("FORWARD-TSN", forward_tsn), ("SACK", sack), ("DATA", data)];
    for count in 0..setting.jumps {
        for (host, id) in senders(setting, ids) {
            let info = SendInfo {
                stream: StreamId(count as u16 % STREAMS),
                unordered: setting.unordered,
                reliability: setting.reliability,
                ..SendInfo::default()
            };
            let message = Bytes::from(vec![count as u8; setting.size]);
            let sent = world.hosts[host].endpoint.send(world.now, id, &info, message);
            assert!(
                !matches!(sent, Err(error) if error != eyas_sctp::error::Error::Full),
                "{sent:?}"
            );
        }
        world.run_for(ms(setting.pause));
    }
    world.tap.lossy.clear();
}

fn check(setting: &Setting) {
    let (mut world, ids) = established(setting);
    jump(&mut world, ids, setting);
    // Everything is either delivered or abandoned.
    world.run_until(Duration::from_secs(300), |world| {
        let is_done = |host: usize| world.hosts[host].endpoint.status(ids[host]);
        [A, B].iter().all(|host| is_done(*host).is_none_or(|status| status.queued == 0))
    });
    // What was abandoned last may still arrive.
    world.run_for(ms(1_000));
    for host in [A, B] {
        assert_eq!(world.hosts[host].state(), AssociationState::Established, "{host}");
    }
    let before = [A, B].map(|host| world.hosts[host].received_messages());
    for (host, id) in senders(setting, ids) {
        (0..STREAMS).for_each(|stream| world.send(host, id, stream, vec![9; 3000]));
    }
    world.run_for(Duration::from_secs(5));
    for (host, _) in senders(setting, ids) {
        let peer = 1 - host;
        let received = world.hosts[peer].received_messages() - before[peer];
        assert_eq!(received, usize::from(STREAMS), "{}", world.tap.ladder.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn hundreds_of_abandoned_messages_leave_the_association_up(setting in setting()) {
        check(&setting);
    }
}
