//! Congestion controllers over a link in virtual time.

pub(super) mod coupled;
mod link;
mod pooling;
mod properties;

use alloc::vec::Vec;

use link::{Link, Outcome, Run};

use super::bbr::BbrState;
use crate::config::CongestionControlKind::{self, Bbr, Cubic, NewReno};

/// 100 Mbit/s and 100 ms, with a queue of half the bandwidth-delay product.
const LONG: Link = Link { rate: 100_000_000, round_trip: 100, queue: 400, loss: 0 };

/// 20 Mbit/s and 40 ms.
const MIDDLE: Link = Link { rate: 20_000_000, round_trip: 40, queue: 100, loss: 0 };

/// The outcome of thirty seconds, after five seconds of warm-up.
fn settled(link: Link, kind: CongestionControlKind) -> Outcome {
    let mut run = Run::new(link, kind, 7);
    run.run(5);
    run.run(30)
}

#[test]
fn new_reno_oscillates_between_half_and_full() {
    let outcome = settled(MIDDLE, NewReno);
    assert!(outcome.utilisation >= 90, "{}", outcome.utilisation);
    let (least, largest) = (outcome.smallest_window, outcome.largest_window);
    // The path holds 67 packets, and the queue 100.
    assert!((150..=185).contains(&largest), "{largest}");
    assert!((45..=55).contains(&(least * 100 / largest)), "{least} of {largest}");
}

#[test]
fn loss_based_control_starves_on_a_long_path_with_single_losses() {
    // The measured share of SCTP stacks and of TCP with Reno or CUBIC is 4 to 7 %.
    for kind in [NewReno, Cubic] {
        let share = settled(Link { loss: 1_000, ..LONG }, kind).utilisation;
        assert!((3..=9).contains(&share), "{kind:?}: {share}");
    }
}

#[test]
fn cubic_fills_a_long_path_that_loses_nothing() {
    let outcome = settled(LONG, Cubic);
    assert!(outcome.utilisation >= 97, "{}", outcome.utilisation);
    // Its window is a sawtooth as well, between seven tenths and full.
    let (least, largest) = (outcome.smallest_window, outcome.largest_window);
    assert!((66..=74).contains(&(least * 100 / largest)), "{least} of {largest}");
}

#[test]
fn bbr_fills_a_long_path_whatever_single_packets_are_lost() {
    for (loss, least) in [(0, 94), (1_000, 93), (10_000, 90)] {
        let share = settled(Link { loss, ..LONG }, Bbr).utilisation;
        assert!(share >= least, "{loss} in a million: {share} %");
    }
    let share = settled(Link { loss: 10_000, ..MIDDLE }, Bbr).utilisation;
    assert!(share >= 87, "{share} %");
}

#[test]
fn bbr_keeps_the_queue_short() {
    let bbr = settled(LONG, Bbr);
    let cubic = settled(LONG, Cubic);
    assert!(bbr.queued < 80, "{}", bbr.queued);
    assert!(cubic.queued > 200, "{}", cubic.queued);
}

#[test]
fn bbr_is_at_full_rate_within_two_seconds() {
    let outcome = Run::new(LONG, Bbr, 7).run(3);
    assert!(outcome.seconds[1] * 8 >= 90_000_000, "{:?}", outcome.seconds);
}

#[test]
fn bbr_passes_through_its_states_in_order() {
    let states: Vec<BbrState> =
        Run::new(LONG, Bbr, 7).run(20).states.into_iter().map(|(_, state)| state).collect();
    assert_eq!(states[..2], [BbrState::Startup, BbrState::Drain]);
    // ProbeBW_DOWN ends at once if the queue is already drained.
    assert!(
        matches!(states[2], BbrState::ProbeBandwidthDown | BbrState::ProbeBandwidthCruise),
        "{states:?}"
    );
    for pair in states[2..].windows(2) {
        let follows = match pair[0] {
            BbrState::ProbeBandwidthDown => {
                matches!(pair[1], BbrState::ProbeBandwidthCruise | BbrState::ProbeBandwidthRefill)
            }
            BbrState::ProbeBandwidthCruise => pair[1] == BbrState::ProbeBandwidthRefill,
            BbrState::ProbeBandwidthRefill => pair[1] == BbrState::ProbeBandwidthUp,
            BbrState::ProbeBandwidthUp => pair[1] == BbrState::ProbeBandwidthDown,
            BbrState::ProbeRtt => pair[1] == BbrState::ProbeBandwidthCruise,
            BbrState::Startup | BbrState::Drain => false,
        };
        assert!(follows || pair[1] == BbrState::ProbeRtt, "{pair:?}");
    }
    assert!(states.iter().filter(|state| **state == BbrState::ProbeBandwidthUp).count() >= 3);
}

#[test]
fn bbr_probes_the_minimum_rtt_every_five_seconds() {
    let states = Run::new(LONG, Bbr, 7).run(31).states;
    let times: Vec<u64> = states
        .iter()
        .filter(|(_, state)| *state == BbrState::ProbeRtt)
        .map(|(second, _)| *second)
        .collect();
    assert!((5..=6).contains(&times.len()), "{times:?}");
    for pair in times.windows(2) {
        assert!((5..=6).contains(&(pair[1] - pair[0])), "{times:?}");
    }
}

#[test]
fn bbr_follows_a_link_that_changes() {
    let mut run = Run::new(LONG, Bbr, 7);
    run.run(5);
    run.set_rate(20_000_000);
    run.run(15);
    let slower = run.run(10);
    assert!(slower.utilisation >= 85, "{}", slower.utilisation);
    assert!(slower.queued < 200, "{}", slower.queued);
    run.set_rate(100_000_000);
    run.run(15);
    let faster = run.run(10);
    assert!(faster.utilisation >= 85, "{}", faster.utilisation);
}

#[test]
fn no_controller_stalls_when_half_of_all_packets_are_lost() {
    for kind in [NewReno, Cubic, Bbr] {
        let outcome = Run::new(Link { loss: 500_000, ..MIDDLE }, kind, 7).run(60);
        let bytes: u64 = outcome.seconds.iter().sum();
        assert!(bytes > 10_000, "{kind:?}: {bytes}");
    }
}
