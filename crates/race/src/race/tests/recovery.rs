//! The memory returns to the preferred family once it has worked again, whatever happened before.

use core::{net::IpAddr, net::SocketAddr, time::Duration};

use proptest::prelude::*;

use super::scene::{EPOCH, ms, setup};
use super::world::{Fate, Run, World};
use crate::candidate::{AddressFamily, Candidate, Transport};
use crate::evidence::{Evidence, FailureCause, NetworkId, TrustContext};
use crate::memory::{Memory, MemoryConfig};
use crate::policy::Policy;
use crate::race::RaceSetup;
use crate::target::{TargetHost, TargetService};

const ADDRESSES: [&str; 4] = ["2001:db8::1", "2001:db8::2", "192.0.2.1", "192.0.2.2"];
const TRANSPORTS: [Transport; 3] = [Transport::Quic, Transport::Mptcp, Transport::Tcp];

/// The number of races on a network that does not change.
const RACES_OF_A_PHASE: usize = 12;

/// The longest back-off of bad news.
const MAX_BACK_OFF: Duration = Duration::from_hours(48);

/// A race in a sequence: what every candidate does during it, and when it follows the one before.
#[derive(Clone, Debug)]
struct Step {
    gap: Duration,
    fates: Vec<Fate>,
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        5 => (1..30_u64).prop_map(|tens| Fate::Works(ms(10 * tens))),
        4 => Just(Fate::Silent),
        1 => Just(Fate::Stalls(ms(30))),
        2 => prop::sample::select(vec![FailureCause::Unreachable, FailureCause::Refused, FailureCause::Reset])
            .prop_map(|cause| Fate::Fails(cause, ms(20))),
    ]
}

fn any_gap() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1..60_u64).prop_map(Duration::from_secs),
        (1..60_u64).prop_map(Duration::from_mins),
        (1..12_u64).prop_map(Duration::from_hours),
    ]
}

/// Outages take a family or a transport as a whole; loss takes single candidates.
fn any_step(transports: usize) -> impl Strategy<Value = Step> {
    let up = prop::collection::vec(any::<bool>(), 2 + transports);
    let fates = prop::collection::vec(any_fate(), 4 * transports);
    (any_gap(), up, fates).prop_map(move |(gap, up, fates)| {
        let fates = fates.into_iter().enumerate().map(|(index, fate)| {
            let (family, transport) = (index / (2 * transports), index % transports);
            if up[family] && up[2 + transport] { fate } else { Fate::Silent }
        });
        Step { gap, fates: fates.collect() }
    })
}

fn world(transports: &[Transport], fates: &[Fate]) -> World {
    let mut world = World {
        addresses: ADDRESSES.map(|text| text.parse().unwrap()).to_vec(),
        dns: [ms(10); 2],
        ..World::default()
    };
    let everything = ADDRESSES.into_iter().flat_map(|text| {
        let ip: IpAddr = text.parse().unwrap();
        transports.iter().map(move |transport| (*transport, SocketAddr::new(ip, 443)))
    });
    world.fates = everything.zip(fates.iter().copied()).collect();
    world
}

struct Sequence {
    memory: Memory,
    now: Duration,
    policy: Policy,
    seed: u64,
}

impl Sequence {
    fn race(&mut self, world: &World) -> Run {
        let network = NetworkId("home".into());
        let host = TargetHost::Name("a.test".into());
        let mut setup = setup(self.policy.clone());
        setup.view = self.memory.view(&network, &host, &TrustContext::default(), self.now);
        let transports = self.policy.transports.clone();
        setup.target.service = TargetService::Plain { transports, alpn: Vec::new() };
        let setup = RaceSetup { seed: self.seed, ..setup };
        self.seed += 1;
        let run = world.run(setup, self.now, None);
        run.learnt().for_each(|evidence| self.memory.learn(evidence, &TrustContext::default()));
        run
    }
}

fn family(candidate: &Candidate) -> AddressFamily {
    AddressFamily::from_ip(candidate.address.ip())
}

/// What every candidate does when nothing is out of order, but for UDP if it is blocked.
fn healthy(transports: &[Transport], udp_blocked: bool, round_trips: &[u64]) -> World {
    let mut round_trips = round_trips.iter().cycle();
    let fates: Vec<Fate> = ADDRESSES
        .iter()
        .flat_map(|_| transports)
        .map(|transport| match transport {
            Transport::Quic if udp_blocked => Fate::Silent,
            _ => Fate::Works(ms(*round_trips.next().unwrap())),
        })
        .collect();
    world(transports, &fates)
}

fn is_good_over(evidence: &Evidence, transport: Transport, of: AddressFamily) -> bool {
    evidence.is_good()
        && evidence.candidate.transport == transport
        && family(&evidence.candidate) == of
}

/// What one race did, for the message of a failure.
fn described(run: &Run) -> String {
    let learnt: Vec<String> = run
        .learnt()
        .map(|evidence| {
            let failure = evidence.failure.as_ref().map_or("good", |failure| failure.cause.name());
            format!("{} {failure}", evidence.candidate)
        })
        .collect();
    let starts: Vec<String> =
        run.starts().iter().map(|(_, _, candidate)| candidate.to_string()).collect();
    format!("{:?}: tried {starts:?}, learnt {learnt:?}", run.started_at - EPOCH)
}

proptest! {
    /// After any outages and losses, a network on which everything works again, and then one that
    /// drops UDP. Once the best transport has worked over IPv6, races begin with IPv6 again. At most
    /// one race in between goes elsewhere: a retest over IPv4 may be faster than an attempt over
    /// IPv6 beside the same winner.
    #[test]
    fn the_preferred_family_is_used_again_once_it_has_worked(
        transports in prop::sample::subsequence(TRANSPORTS.to_vec(), 1..=3),
        steps in prop::collection::vec(any_step(3), 1..14),
        gaps in prop::collection::vec(any_gap(), 2 * RACES_OF_A_PHASE),
        round_trips in prop::collection::vec(5..60_u64, 12),
        seed in 0..8_u64,
    ) {
        let policy = Policy { transports: transports.clone(), ..Policy::default() };
        let memory = Memory::new(MemoryConfig::default());
        let mut sequence = Sequence { memory, now: EPOCH, policy, seed };
        for step in &steps {
            sequence.race(&world(&transports, &step.fates));
            sequence.now += step.gap;
        }
        let mut history = Vec::new();
        let mut phases = vec![(false, transports[0])];
        if let [Transport::Quic, next, ..] = transports[..] {
            phases.push((true, next));
        }
        for ((udp_blocked, best), gaps) in phases.into_iter().zip(gaps.chunks(RACES_OF_A_PHASE)) {
            let world = healthy(&transports, udp_blocked, &round_trips);
            let (mut has_worked, mut was_preferred) = (false, true);
            for gap in gaps {
                let run = sequence.race(&world);
                sequence.now += *gap;
                history.push(described(&run));
                prop_assert!(run.usable().is_some());
                if has_worked {
                    let mut starts = run.starts().into_iter().map(|(_, _, candidate)| candidate);
                    let first = starts.find(|candidate| candidate.transport == best);
                    let is_preferred = first.is_some_and(|first| family(&first) == AddressFamily::V6);
                    prop_assert!(is_preferred || was_preferred, "{:#?}", history);
                    was_preferred = is_preferred;
                }
                has_worked |= run.learnt().any(|evidence| is_good_over(evidence, best, AddressFamily::V6));
            }
            // What failed often is re-tested late, at most two days after it was due.
            for _ in 0..RACES_OF_A_PHASE {
                if has_worked {
                    break;
                }
                sequence.now += MAX_BACK_OFF;
                let run = sequence.race(&world);
                history.push(described(&run));
                has_worked = run.learnt().any(|evidence| is_good_over(evidence, best, AddressFamily::V6));
            }
            prop_assert!(has_worked, "{history:#?}");
        }
    }
}
