//! Properties that hold for every race: invariant 3 of the design, and that the memory converges.

use core::{net::IpAddr, net::SocketAddr, time::Duration};

use proptest::prelude::*;

use super::scene::{EPOCH, candidate, ms, setup};
use super::world::{Fate, Run, World};
use crate::candidate::{Security, Transport};
use crate::evidence::{EvidenceLevel, FailureCause, NetworkId, TrustContext};
use crate::io::RaceOutput;
use crate::memory::{
    EntryOutcome, Memory, MemoryConfig, MemoryEntry, MemoryKey, PathDistances, PathEntry,
    PathHandshakes, PeerEntry, RoundTrip, SilentHost,
};
use crate::plan::PlanReason;
use crate::policy::{ATTEMPT_DELAY_FLOOR, LoserPolicy, Policy};
use crate::race::{AttemptState, RaceAttempt, RaceSetup};
use crate::reason::ReasonKind;
use crate::target::{TargetHost, TargetService};
use crate::trace::replay;

const TRANSPORTS: [Transport; 4] =
    [Transport::Quic, Transport::SctpUdp, Transport::Mptcp, Transport::Tcp];
const ADDRESSES: [&str; 4] = ["2001:db8::1", "2001:db8::2", "192.0.2.1", "192.0.2.2"];

/// Times in steps of 10 ms, so that many things happen in one instant.
fn any_time() -> impl Strategy<Value = Duration> {
    (1..40_u64).prop_map(|tens| ms(10 * tens))
}

/// Local errors are left out, since the memory does not learn them.
fn any_cause() -> impl Strategy<Value = FailureCause> {
    prop::sample::select(vec![
        FailureCause::Refused,
        FailureCause::Unreachable,
        FailureCause::Silent,
        FailureCause::Reset,
        FailureCause::Tls,
        FailureCause::Certificate,
        FailureCause::Deadline,
    ])
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => any_time().prop_map(Fate::Works),
        2 => Just(Fate::Silent),
        1 => any_time().prop_map(Fate::Stalls),
        2 => (any_cause(), any_time()).prop_map(|(cause, after)| Fate::Fails(cause, after)),
    ]
}

fn any_world() -> impl Strategy<Value = World> {
    let addresses = prop::sample::subsequence(ADDRESSES.to_vec(), 0..=ADDRESSES.len());
    let fates = prop::collection::vec(any_fate(), ADDRESSES.len() * TRANSPORTS.len());
    (addresses, fates, any_time(), any_time()).prop_map(|(addresses, fates, aaaa, a)| {
        let mut fates = fates.into_iter();
        let mut world = World { dns: [aaaa, a], ..World::default() };
        for address in addresses {
            let ip: IpAddr = address.parse().unwrap();
            world.addresses.push(ip);
            for (transport, fate) in TRANSPORTS.into_iter().zip(fates.by_ref()) {
                world.fates.insert((transport, SocketAddr::new(ip, 443)), fate);
            }
        }
        world
    })
}

/// A world in which the answers of DNS may change.
fn any_changing_world() -> impl Strategy<Value = World> {
    let earlier = prop::option::of(prop::sample::subsequence(ADDRESSES.to_vec(), 0..=2));
    (any_world(), earlier, any::<bool>(), prop::bool::weighted(0.2)).prop_map(
        |(world, earlier, earlier_expired, update_fails)| {
            let parse = |address: &str| address.parse().unwrap();
            let earlier_addresses = earlier.map(|earlier| earlier.into_iter().map(parse).collect());
            World { earlier_addresses, earlier_expired, update_fails, ..world }
        },
    )
}

/// A world with further events, such as changes of network.
fn any_eventful_world() -> impl Strategy<Value = World> {
    let moves = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(any_time(), 1..3)];
    let process_limit = prop_oneof![3 => Just(None), 1 => (1..6_usize).prop_map(Some)];
    (any_changing_world(), any::<bool>(), moves, process_limit).prop_map(
        |(world, ready_first, moves_at, process_limit)| {
            let mut moves_at: Vec<_> = moves_at.into_iter().map(|at| 3 * at).collect();
            // The order of two changes of network at the same instant matters.
            moves_at.dedup();
            World { ready_first, moves_at, process_limit, ..world }
        },
    )
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let transports = prop::sample::subsequence(TRANSPORTS.to_vec(), 1..=TRANSPORTS.len());
    let levels = prop::sample::select(vec![
        EvidenceLevel::Answered,
        EvidenceLevel::Transport,
        EvidenceLevel::Security,
        EvidenceLevel::FirstByte,
    ]);
    let losers = prop_oneof![Just(LoserPolicy::Cancel), any_time().prop_map(LoserPolicy::Finish)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let shape = (transports, levels, losers, flags);
    let numbers = (1..9_usize, 0..16_u64, 0..4_u32);
    (shape, any_time(), numbers).prop_map(|(shape, delay, (in_flight, grace, second_tries))| {
        let (transports, win_at, losers, (simultaneous, late_switch, exhaustive)) = shape;
        Policy {
            transports,
            win_at,
            losers,
            simultaneous,
            late_switch,
            exhaustive,
            grace: ms(20 * grace),
            attempt_delay: delay.max(ms(100)),
            attempt_delay_factor: 100 + 75 * second_tries,
            max_in_flight: in_flight,
            second_tries,
            ..Policy::default()
        }
    })
}

fn host() -> TargetHost {
    TargetHost::Name("a.test".into())
}

fn home() -> NetworkId {
    NetworkId("home".into())
}

/// Seconds before (or a little after) the epoch of the tests, up to three days.
fn any_past() -> impl Strategy<Value = Duration> {
    (0..260_000_u64).prop_map(|seconds| EPOCH + ms(30_000) - Duration::from_secs(seconds))
}

fn any_outcome() -> impl Strategy<Value = EntryOutcome> {
    prop_oneof![
        Just(EntryOutcome::Good { level: EvidenceLevel::Security }),
        (
            any_cause(),
            prop::sample::select(vec![EvidenceLevel::Started, EvidenceLevel::Transport]),
            0..40_u32
        )
            .prop_map(|(cause, reached, strikes)| EntryOutcome::Bad {
                cause,
                reached,
                strikes
            }),
    ]
}

/// Any handshakes of a network.
fn any_handshakes() -> impl Strategy<Value = PathHandshakes> {
    prop::collection::vec(any::<bool>(), 0..40).prop_map(|handshakes| {
        handshakes
            .into_iter()
            .fold(PathHandshakes::default(), |all, handshake| all.and(Some(handshake)))
    })
}

/// Any memory of the host's candidates, and of the network.
fn any_memory() -> impl Strategy<Value = Memory> {
    let peers = prop::collection::vec(
        prop::option::of((any_outcome(), any_past(), prop::option::of(any_time()))),
        ADDRESSES.len() * TRANSPORTS.len(),
    );
    let paths = prop::collection::vec(
        prop::option::of((any_past(), prop::option::of(any_past()), 0..6_u64, any_handshakes())),
        2 * TRANSPORTS.len(),
    );
    (peers, paths).prop_map(|(peers, paths)| {
        let mut memory = Memory::new(MemoryConfig::default());
        let everything = TRANSPORTS.into_iter().flat_map(|t| ADDRESSES.map(|a| candidate(t, a)));
        for (candidate, row) in everything.zip(peers) {
            let Some((outcome, at, rtt)) = row else { continue };
            let round_trip = rtt.map(RoundTrip::first);
            let entry = PeerEntry { round_trip, ..PeerEntry::under_tls(at, outcome) };
            memory.insert(MemoryKey::peer(&home(), &host(), &candidate), MemoryEntry::Peer(entry));
        }
        let path_candidates = TRANSPORTS
            .into_iter()
            .flat_map(|t| ["2001:db8::1", "192.0.2.1"].map(|a| candidate(t, a)));
        for (candidate, row) in path_candidates.zip(paths) {
            let Some((at, heard_at, silent, handshakes)) = row else { continue };
            let silent = (0..silent).map(|host| SilentHost { host, at }).collect();
            let distances = PathDistances::default();
            let entry = PathEntry { at, heard_at, silent, handshakes, distances };
            memory.insert(MemoryKey::path(&home(), &candidate), MemoryEntry::Path(entry));
        }
        memory
    })
}

fn setup_of(policy: Policy, memory: &Memory, now: Duration, seed: u64) -> RaceSetup {
    let mut setup = setup(policy);
    setup.view = memory.view(&home(), &host(), &TrustContext::default(), now);
    setup.target.service =
        TargetService::Plain { transports: TRANSPORTS.to_vec(), alpn: Vec::new() };
    RaceSetup { seed, ..setup }
}

fn check_starts(run: &Run, policy: &Policy) {
    let starts = run.starts();
    for pair in starts.windows(2) {
        let gap = pair[1].0 - pair[0].0;
        assert!(policy.simultaneous || gap >= ATTEMPT_DELAY_FLOOR, "{gap:?} between two starts");
        assert_eq!(pair[1].1.0, pair[0].1.0 + 1);
    }
    for (_, _, candidate) in &starts {
        assert!(policy.transports.contains(&candidate.transport));
        assert_eq!(candidate.security, Security::Tls, "security is never changed");
    }
}

/// A second try starts before the win, after its delay, and at most as often as allowed; never in
/// the background.
fn check_second_tries(run: &Run, policy: &Policy) {
    let race = replay(&run.trace).expect("a recording replays");
    let won_at = run.usable().map(|(at, _)| at);
    let least = policy.second_try_delay_min.min(policy.head_start).max(ATTEMPT_DELAY_FLOOR);
    for retry in race.attempts() {
        let Some(first) = retry.second_try_of else { continue };
        assert!(!policy.simultaneous && !policy.exhaustive);
        assert!(won_at.is_none_or(|won| retry.started <= won), "{retry:?} after the win");
        assert!(!retry.background);
        let mut before = race.attempts().iter().filter(|attempt| {
            attempt.id < retry.id && (attempt.id == first || attempt.second_try_of == Some(first))
        });
        let number = u32::try_from(before.clone().count()).unwrap();
        assert!(number <= policy.second_tries, "{retry:?}");
        let last = before.next_back().expect("the first attempt precedes it");
        let waited = retry.started - last.started;
        // With a round trip it waits for three of them and 10 ms, or less on a lossy network, where
        // it waits for one and 10 ms.
        let known = retry.initial_rtt.map(|rtt| match race.plan().is_lossy {
            true => rtt + ms(10),
            false => 3 * rtt + ms(10),
        });
        let delay = known.unwrap_or(least) * 2_u32.pow(number - 1);
        assert!(waited >= delay, "{retry:?} after {waited:?} instead of {delay:?}");
    }
}

/// A start that changed answers brought forward keeps the minimum delay, and something that started
/// before was unanswered then, and nothing answered.
fn check_early_starts(run: &Run, policy: &Policy) {
    let race = replay(&run.trace).expect("a recording replays");
    for early in race.attempts() {
        let after = early.reasons.iter().find_map(|PlanReason(reason)| match reason {
            ReasonKind::AnswersChanged { after } => Some(*after),
            _ => None,
        });
        let Some(after) = after else { continue };
        assert!(!policy.exhaustive);
        let mut before = race.attempts().iter().filter(|attempt| attempt.id < early.id);
        let last = before.clone().rfind(|attempt| attempt.second_try_of.is_none()).unwrap();
        assert!(early.started - last.started >= policy.attempt_delay_min, "{early:?}");
        let is_answered = |attempt: &RaceAttempt| {
            attempt.answered_at.is_some_and(|at| at < early.started)
                && attempt.ended().is_none_or(|ended| ended > early.started)
        };
        assert!(!before.clone().any(is_answered), "{early:?} beside one that makes progress");
        assert!(before.any(|attempt| early.started - attempt.started == after), "{early:?}");
    }
}

fn check_ending(run: &Run) {
    let usable = run.count(|output| matches!(output, RaceOutput::Usable(_)));
    let failed = run.count(|output| matches!(output, RaceOutput::Failed(_)));
    assert_eq!(usable + failed, 1, "one winner or one failure");
    assert_eq!(run.count(|output| *output == RaceOutput::Finished), 1);
    assert_eq!(run.outputs.last().map(|(_, output)| output), Some(&RaceOutput::Finished));
}

/// Every attempt ends in exactly one way.
fn check_attempts(run: &Run) {
    for (_, id, _) in run.starts() {
        let closed =
            run.count(|output| matches!(output, RaceOutput::Close { id: of, .. } if *of == id));
        let kept = run
            .count(|output| *output == RaceOutput::Usable(id) || *output == RaceOutput::Better(id));
        let failed = run.failed.iter().filter(|of| **of == id).count();
        assert_eq!(closed + kept + failed, 1, "attempt {id:?}: {:?}", run.outputs);
    }
}

fn check_in_flight(run: &Run, policy: &Policy) {
    let race = replay(&run.trace).expect("a recording replays");
    for (at, ..) in run.starts() {
        let running = race.attempts().iter().filter(|attempt| {
            attempt.started <= at && attempt.ended().is_none_or(|ended| ended > at)
        });
        assert!(running.count() <= policy.max_in_flight, "at {at:?}");
    }
    let plan = race.plan();
    for entry in &plan.entries {
        let tried = race.attempts().iter().any(|a| a.candidate.is_same_attempt(&entry.candidate));
        assert!(tried || !entry.reasons.is_empty(), "{} has no reason", entry.candidate);
    }
    assert!(plan.dropped.iter().all(|dropped| !dropped.reasons.is_empty()));
    let winners = race.attempts().iter().filter(|a| matches!(a.state, AttemptState::Usable(_)));
    assert!(winners.count() <= 1);
}

/// Whether a host presents a certificate that is not accepted.
fn is_distrusted(world: &World, ip: IpAddr) -> bool {
    world.fates.iter().any(|((_, address), fate)| {
        address.ip() == ip && matches!(fate, Fate::Fails(FailureCause::Certificate, _))
    })
}

/// A race in which something works finds a connection, however few attempts may be in flight and
/// however many addresses are silent. A server has one certificate: if it is not accepted over one
/// transport, the others are not waited for long.
fn check_success(run: &Run, world: &World, policy: &Policy) {
    let works = |transport: &Transport| {
        world.fates.iter().any(|((t, address), fate)| {
            t == transport && matches!(fate, Fate::Works(_)) && !is_distrusted(world, address.ip())
        })
    };
    if policy.transports.iter().any(works) {
        let Some((at, _)) = run.usable() else {
            panic!("something works, but {:?}", run.outputs);
        };
        assert!(at <= run.started_at + policy.deadline);
    }
}

proptest! {
    #[test]
    fn every_race_keeps_the_invariants(
        world in any_eventful_world(),
        policy in any_policy(),
        memory in any_memory(),
        seed in 0..8_u64,
        cancel_at in prop::option::weighted(0.2, any_time()),
    ) {
        let run = world.run(setup_of(policy.clone(), &memory, EPOCH, seed), EPOCH, cancel_at);
        check_starts(&run, &policy);
        check_second_tries(&run, &policy);
        check_early_starts(&run, &policy);
        check_ending(&run);
        check_attempts(&run);
        check_in_flight(&run, &policy);
    }

    /// No decision is ever due without a timer: polling the race more often changes nothing.
    #[test]
    fn a_race_that_is_polled_more_often_decides_the_same(
        world in any_eventful_world(),
        policy in any_policy(),
        memory in any_memory(),
        seed in 0..8_u64,
        polls in prop::collection::vec(1..40_000_u64, 1..40),
    ) {
        let setup = setup_of(policy, &memory, EPOCH, seed);
        let polled_when_due = world.run(setup.clone(), EPOCH, None);
        let polls_at = polls.into_iter().map(ms).collect();
        let polled_more_often = World { polls_at, ..world }.run(setup, EPOCH, None);
        prop_assert_eq!(polled_when_due.outputs, polled_more_often.outputs);
    }

    /// Given enough time; what a short deadline excludes is the choice of the caller.
    #[test]
    fn a_working_candidate_is_found_among_silent_ones(
        world in any_changing_world(),
        policy in any_policy(),
        memory in any_memory(),
        seed in 0..8_u64,
        process_limit in prop::option::of(1..6_usize),
    ) {
        let policy = Policy { deadline: Duration::from_mins(10), ..policy };
        // What has expired is not all that is tried; other answers count as they are.
        let (earlier_expired, update_fails) = (true, false);
        let world = World { process_limit, earlier_expired, update_fails, ..world };
        let run = world.run(setup_of(policy.clone(), &memory, EPOCH, seed), EPOCH, None);
        check_success(&run, &world, &policy);
    }

    #[test]
    fn the_order_of_inputs_in_one_instant_makes_no_difference(
        world in any_eventful_world(),
        policy in any_policy(),
        memory in any_memory(),
        seed in 0..8_u64,
    ) {
        let setup = setup_of(policy, &memory, EPOCH, seed);
        let in_order = world.run(setup.clone(), EPOCH, None);
        let reversed = World { reversed_inputs: true, ..world }.run(setup, EPOCH, None);
        prop_assert_eq!(in_order.outputs, reversed.outputs);
    }

    //= hev3 §5.3
    //# clients with different history MUST converge: failures are tried again, successes expire
    /// From any memory, against any stationary network, repeated races end at the most preferred
    /// transport that works, and start with it unless DNS returns its address later than another.
    /// The bound: back-offs last two days at most, so after seventy hours everything is due. A race
    /// has room for four attempts beside its winner, of which those to better transports that
    /// worked long ago take up to three; so each re-tests at least one of the sixteen candidates,
    /// starting with those that have been due for longest. Then a race starts with the best one.
    #[test]
    fn the_memory_converges(world in any_world(), memory in any_memory(), seed in 0..8_u64) {
        let policy = Policy { transports: TRANSPORTS.to_vec(), max_in_flight: 16, ..Policy::default() };
        let most_preferred = TRANSPORTS.into_iter().find(|transport| {
            world.fates.iter().any(|((t, _), fate)| t == transport && matches!(fate, Fate::Works(_)))
        });
        // A host has one certificate. If it is not accepted over one transport but is over another,
        // slow attempts are given up too early.
        let works_and_does_not = world.fates.iter().any(|((_, address), fate)| {
            matches!(fate, Fate::Works(_)) && is_distrusted(&world, address.ip())
        });
        // Not `prop_assume`: ten thousand cases would exceed the number of rejects that proptest
        // allows.
        if most_preferred.is_none() || works_and_does_not {
            return Ok(());
        }
        let (mut memory, mut now) = (memory, EPOCH);
        let gaps = [10 * 60; 7].into_iter().chain([2; 16]).map(Duration::from_mins);
        for (race, gap) in gaps.enumerate() {
            let run = world.run(setup_of(policy.clone(), &memory, now, seed + race as u64), now, None);
            run.learnt().for_each(|evidence| memory.learn(evidence, &TrustContext::default()));
            now += gap;
        }
        let run = world.run(setup_of(policy.clone(), &memory, now, seed), now, None);
        prop_assert_eq!(run.last_transport(), most_preferred, "{:?}", run.outputs);

        let at_once = World { dns: [ms(10); 2], ..world };
        let run = at_once.run(setup_of(policy, &memory, now, seed), now, None);
        prop_assert_eq!(run.last_transport(), most_preferred, "{:?}", run.outputs);
        let (_, _, first) = run.starts().into_iter().next().expect("something starts");
        prop_assert_eq!(Some(first.transport), most_preferred, "{:?}", run.outputs);
        prop_assert!(matches!(at_once.fate_of(&first), Fate::Works(_)), "{:?}", run.outputs);
    }
}

proptest! {
    /// The memory never makes a connection slow: it completes no later than the head start plus the
    /// handshakes of the less preferred transport, and the late switch ends at the preferred one. A
    /// preferred one that answers within the head start is waited for.
    #[test]
    fn memory_costs_no_more_than_the_head_start(quic in 1..900_u64, tcp in 1..900_u64) {
        let mut world = World { addresses: vec!["192.0.2.1".parse().unwrap()], ..World::default() };
        for (transport, round_trip) in [(Transport::Quic, quic), (Transport::Tcp, tcp)] {
            let address = candidate(transport, "192.0.2.1").address;
            world.fates.insert((transport, address), Fate::Works(ms(round_trip)));
        }
        let policy = Policy { losers: LoserPolicy::Finish(ms(5_000)), ..Policy::default() };
        let mut memory = Memory::new(MemoryConfig::default());
        let tcp_only = Policy { transports: vec![Transport::Tcp], ..policy.clone() };
        for (minute, policy) in [tcp_only, policy.clone()].into_iter().enumerate() {
            let now = EPOCH + Duration::from_mins(minute as u64);
            let run = world.run(setup_of(policy, &memory, now, 1), now, None);
            run.learnt().for_each(|evidence| memory.learn(evidence, &TrustContext::default()));
        }
        let now = EPOCH + Duration::from_mins(2);
        let run = world.run(setup_of(policy.clone(), &memory, now, 1), now, None);
        let waited = run.usable().expect("both work").0 - run.starts()[0].0;
        let by_tcp = policy.head_start + 2 * ms(tcp) + policy.grace;
        // 20 ms beyond the round trip, up to 100 ms and no longer than TCP would take.
        let head_start = policy.head_start.max(ms(quic + 20));
        let is_granted = head_start <= ms(100) && head_start <= policy.head_start + 2 * ms(tcp);
        let answers_in_time = ms(quic) <= policy.head_start || is_granted;
        let bound = if answers_in_time { by_tcp.max(2 * ms(quic)) } else { by_tcp };
        prop_assert!(waited <= bound, "{:?}", run.outputs);
        prop_assert_eq!(run.last_transport(), Some(Transport::Quic), "{:?}", run.outputs);
    }
}

proptest! {
    /// However far a remembered server is, no other transport waits longer for it than this.
    #[test]
    fn the_head_start_is_never_longer_than_its_bound(
        memory in any_memory(),
        seed in 0..8_u64,
        transports in prop::sample::subsequence(TRANSPORTS.to_vec(), 2..=TRANSPORTS.len()),
    ) {
        let policy = Policy { transports, ..Policy::default() };
        let addresses = vec!["192.0.2.1".parse().unwrap()];
        let world = World { addresses, dns: [ms(10); 2], ..World::default() };
        let run = world.run(setup_of(policy.clone(), &memory, EPOCH, seed), EPOCH, None);
        let race = replay(&run.trace).expect("a recording replays");
        let bound = policy.lossy_head_start.max(ms(100));
        for entry in &race.plan().entries {
            for reason in &entry.reasons {
                let PlanReason(ReasonKind::HeadStart { delay, .. }) = reason else { continue };
                prop_assert!(*delay >= policy.head_start && *delay <= bound, "{reason:?}");
                if race.plan().is_lossy {
                    prop_assert!(*delay <= policy.lossy_head_start, "{reason:?}");
                }
            }
        }
    }
}

/// The three steps that the documentation promises: learn it, use it, and notice when it is over.
#[test]
fn a_network_that_drops_udp_is_learnt_and_unlearnt() {
    let mut world = World { addresses: vec!["192.0.2.1".parse().unwrap()], ..World::default() };
    let tcp = candidate(Transport::Tcp, "192.0.2.1");
    let quic = candidate(Transport::Quic, "192.0.2.1");
    world.fates.insert((Transport::Tcp, tcp.address), Fate::Works(ms(10)));
    let config =
        MemoryConfig { retest_after: Some(Duration::from_secs(2)), ..MemoryConfig::default() };
    let mut memory = Memory::new(config);
    let mut race = |world: &World, after: Duration| {
        let now = EPOCH + after;
        let run = world.run(setup_of(Policy::of_first_tries(), &memory, now, 1), now, None);
        run.learnt().for_each(|evidence| memory.learn(evidence, &TrustContext::default()));
        run.starts()
            .into_iter()
            .map(|(at, _, candidate)| (candidate.transport, at - now))
            .collect::<Vec<_>>()
    };
    let first = race(&world, ms(0));
    assert_eq!(
        first.iter().map(|start| start.0).collect::<Vec<_>>(),
        [Transport::Quic, Transport::Tcp]
    );
    let second = race(&world, ms(4_000));
    assert_eq!(second.iter().map(|start| start.0).collect::<Vec<_>>(), [Transport::Tcp]);

    world.fates.insert((Transport::Quic, quic.address), Fate::Works(ms(10)));
    let third = race(&world, ms(6_000));
    assert_eq!(
        third.iter().map(|start| start.0).collect::<Vec<_>>(),
        [Transport::Tcp, Transport::Quic]
    );
    let fourth = race(&world, ms(8_000));
    assert_eq!(fourth.iter().map(|start| start.0).collect::<Vec<_>>(), [Transport::Quic]);
}
