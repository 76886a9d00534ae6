//! Outages of all paths at once: how long an association lasts does not depend on how many it has.

use std::time::Duration;

use eyas_sctp::config::{AssociationConfig, MultipathConfig};
use eyas_sctp::endpoint::PathState;
use eyas_sctp::event::Event;

use crate::network::{A, B, link, ms};
use crate::saturated::{User, World};

/// When an outage begins, after the paths have been verified and their round trips measured.
const BEGIN: Duration = ms(4_000);

/// How the lines fail, and how they come back.
#[derive(Clone, Copy, Debug)]
enum Outage {
    /// All at once, and all come back at once.
    Total,
    /// The same, but they come back one after another, the first or the last line first.
    OneByOne { is_reversed: bool },
    /// Only the last line comes back.
    LastOnly,
    /// Nothing that this host sends arrives.
    OneWay { from: usize },
    /// All at once, without data to send, while heartbeats wait for their answers.
    Idle,
}

const OUTAGES: [Outage; 7] = [
    Outage::Total,
    Outage::OneByOne { is_reversed: false },
    Outage::OneByOne { is_reversed: true },
    Outage::LastOnly,
    Outage::OneWay { from: A },
    Outage::OneWay { from: B },
    Outage::Idle,
];

/// All paths at once, with the defaults otherwise.
fn multipath() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.multipath = Some(MultipathConfig::default());
    config
}

/// The same with the settings of `eyas tunnel`.
fn tunnel() -> AssociationConfig {
    let mut config = multipath();
    config.rto_min = ms(200);
    config.sack_delay = ms(40);
    config.max_probe_interval = Some(ms(500));
    config
}

/// Runs an outage. Returns when the association was lost, if it was, and whether data arrived after
/// the outage.
fn run(
    config: &AssociationConfig,
    paths: u8,
    outage: Outage,
    lasts: Duration,
) -> (Option<Duration>, bool) {
    let links = vec![link(500_000, ms(20), ms(100)); paths.into()];
    let mut world = World::connected(config, &links);
    let is_idle = matches!(outage, Outage::Idle);
    let begin = match outage {
        Outage::Idle => {
            world.run_to(ms(1_000));
            world.hosts[A].user = User::Silent;
            world.run_to(BEGIN);
            let sent = world.tap.heartbeats[0].len();
            while world.tap.heartbeats[0].len() == sent {
                assert!(world.step(ms(60_000)), "no heartbeat was sent");
            }
            world.now
        }
        _ => {
            world.run_to(BEGIN);
            BEGIN
        }
    };
    let active = world.status().paths.iter().filter(|path| path.state == PathState::Active).count();
    assert_eq!(active, usize::from(paths));
    match outage {
        Outage::OneWay { from } => world.tap.unheard = Some(from),
        _ => world.network.cut = (0..paths).collect(),
    }
    let end = begin + lasts;
    world.run_to(end);
    world.tap.unheard = None;
    match outage {
        Outage::OneByOne { is_reversed } => {
            while !world.network.cut.is_empty() {
                let back = if is_reversed { world.network.cut.len() - 1 } else { 0 };
                world.network.cut.remove(back);
                world.run_for(ms(700));
            }
        }
        Outage::LastOnly => world.network.cut.retain(|network| *network != paths - 1),
        _ => world.network.cut.clear(),
    }
    if is_idle {
        world.hosts[A].user = User::InTurn;
    }
    let is_lost = |event: &&(Duration, Event)| matches!(event.1, Event::Lost(_));
    // RTO.Max is 60 s.
    let patience = world.now + ms(70_000);
    let arrived = |world: &World| {
        world.hosts[B].deliveries.last().is_some_and(|(at, _)| *at > end + ms(1_000))
    };
    while !arrived(&world) && world.step(patience) {}
    let lost = world.hosts[A].events.iter().find(is_lost).map(|(at, _)| *at - begin);
    (lost, arrived(&world))
}

/// Runs all outages that last so many seconds; returns those that an association did not survive.
fn failed(name: &str, config: &AssociationConfig, seconds: &[u64]) -> Vec<String> {
    let mut failed = Vec::new();
    for paths in 1..=8 {
        for outage in OUTAGES {
            for lasts in seconds {
                let (lost, arrives) = run(config, paths, outage, ms(lasts * 1_000));
                if lost.is_some() || !arrives {
                    let what = format!("{paths} paths, {outage:?} for {lasts} s");
                    failed.push(format!("{name}, {what}: lost after {lost:?}"));
                }
            }
        }
    }
    failed
}

//= rfc9260 §8.1
//# errors are counted over all destinations; with CMT, errors of all paths at once count once, and
//# with `max_probe_interval` (`eyas pipe`, `tunnel`) each path has the whole number
//= otherwise: an outage ends the association after the same time whatever the number of paths
#[test]
fn an_outage_of_all_paths_is_survived_whatever_their_number() {
    let mut one_at_a_time = tunnel();
    one_at_a_time.multipath = None;
    // All addresses are verified soon.
    one_at_a_time.hb_max_burst = 8;
    let mut all = failed("multipath", &multipath(), &[19]);
    all.extend(failed("tunnel --multipath", &tunnel(), &[3, 15, 25]));
    all.extend(failed("tunnel", &one_at_a_time, &[10, 25]));
    assert!(all.is_empty(), "{} runs: {all:#?}", all.len());
}

//= rfc9260 §8.1
//# errors are counted over all destinations, unless CMT or `max_probe_interval` is set
/// RFC 9260 §8.1 as it is: the timeouts of all destinations count together.
#[test]
fn without_settings_of_ours_an_outage_ends_sooner_with_more_paths() {
    let mut config = AssociationConfig::default();
    config.hb_max_burst = 8;
    let [(two, _), (three, _), (four, _)] =
        [2, 3, 4].map(|paths| run(&config, paths, Outage::Total, ms(25_000)));
    assert_eq!(two, None);
    for lost in [three, four] {
        let lost = lost.expect("it is lost").as_secs();
        assert!((12..20).contains(&lost), "{lost} s");
    }
}
