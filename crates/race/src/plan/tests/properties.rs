//! Properties that hold for every plan, whatever DNS, the memory and the policy contain.

use alloc::{collections::BTreeMap, format, string::String, vec, vec::Vec};
use core::{net::IpAddr, time::Duration};

use proptest::prelude::*;

use crate::candidate::{AddressFamily, AddressOrigin, Candidate, Security, Transport};
use crate::dns::{DnsAnswer, DnsFailure, DnsQuery, DnsRecords, HttpsRecord, RecordType};
use crate::evidence::{AttemptFailure, Evidence, EvidenceLevel, FailureCause, TrustContext};
use crate::io::NetworkView;
use crate::memory::{Memory, MemoryConfig};
use crate::plan::interleave::interleave;
use crate::plan::{MAX_CANDIDATES, Plan, PlanReason, PlanRequest, plan};
use crate::policy::{ATTEMPT_DELAY_FLOOR, Policy};
use crate::reason::ReasonKind;
use crate::resolve::{RaceResolution, ServiceAddress, ServiceInfo};
use crate::target::{TargetHost, TargetService};
use crate::vocabulary::{dual_stack, https, ipv4_only, ipv6_only, nat64, network};

const NOW: Duration = Duration::from_hours(1000);

type Zone = BTreeMap<(String, RecordType), Result<DnsRecords, DnsFailure>>;

/// Everything that goes into a plan.
#[derive(Clone, Debug)]
struct World {
    zone: Zone,
    network: NetworkView,
    policy: Policy,
    memory: Vec<(Candidate, bool, u64)>,
    seed: u64,
}

fn ipv6(host: u8) -> IpAddr {
    IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)])
}

fn ipv4(host: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, host])
}

fn address() -> impl Strategy<Value = IpAddr> {
    let special = ["64:ff9b::192.0.2.1", "fd00::1", "fe80::1", "::1", "127.0.0.1", "ff02::1", "::"];
    prop_oneof![
        4 => (1..6_u8).prop_map(ipv6),
        4 => (1..6_u8).prop_map(ipv4),
        1 => proptest::sample::select(special.map(|text| text.parse().unwrap()).to_vec()),
    ]
}

fn records_of_addresses(addresses: Vec<IpAddr>, record_type: RecordType) -> DnsRecords {
    let v6 = |address: &IpAddr| match address {
        IpAddr::V6(address) => Some(*address),
        IpAddr::V4(_) => None,
    };
    let v4 = |address: &IpAddr| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    };
    match record_type {
        RecordType::A => DnsRecords::A(addresses.iter().filter_map(v4).collect()),
        _ => DnsRecords::Aaaa(addresses.iter().filter_map(v6).collect()),
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), (0..3_u8).prop_map(|at| format!("alt{at}.example"))]
}

prop_compose! {
    fn https_record()(
        priority in 0..4_u16,
        target in name(),
        alpn in proptest::sample::subsequence(vec!["h3", "h2", "http/1.1", "other"], 0..=4),
        no_default_alpn in any::<bool>(),
        port in proptest::option::of(proptest::sample::select(vec![0, 443, 8443])),
        hints in proptest::collection::vec(address(), 0..4),
        ech in proptest::option::of(Just(vec![1, 2, 3])),
        mandatory in proptest::sample::subsequence(vec![0, 1, 3, 9], 0..2),
    ) -> HttpsRecord {
        let DnsRecords::A(ipv4_hint) = records_of_addresses(hints.clone(), RecordType::A) else {
            return HttpsRecord::default();
        };
        let DnsRecords::Aaaa(ipv6_hint) = records_of_addresses(hints, RecordType::Aaaa) else {
            return HttpsRecord::default();
        };
        let alpn = alpn.into_iter().map(String::from).collect();
        HttpsRecord {
            priority, target, mandatory, alpn, no_default_alpn, port, ipv4_hint, ipv6_hint, ech,
            unknown_keys: vec![],
        }
    }
}

fn outcome<T: core::fmt::Debug>(
    records: impl Strategy<Value = T>,
) -> impl Strategy<Value = Result<T, DnsFailure>> {
    let failures = vec![DnsFailure::NoData, DnsFailure::ServerFailure, DnsFailure::Timeout];
    prop_oneof![4 => records.prop_map(Ok), 1 => proptest::sample::select(failures).prop_map(Err)]
}

fn zone() -> impl Strategy<Value = Zone> {
    let names = ["example.com", "alt0.example", "alt1.example", "alt2.example"];
    let of_name = || {
        (
            outcome(proptest::collection::vec(https_record(), 0..4)),
            outcome(proptest::collection::vec(address(), 0..5)),
            outcome(proptest::collection::vec(address(), 0..5)),
        )
    };
    proptest::collection::vec(of_name(), names.len()).prop_map(move |answers| {
        let mut zone = Zone::new();
        for (name, (https, aaaa, a)) in names.iter().zip(answers) {
            let key = |record_type| ((*name).into(), record_type);
            let addresses = |answer: Result<_, _>, record_type| {
                answer.map(|list| records_of_addresses(list, record_type))
            };
            zone.insert(key(RecordType::Https), https.map(DnsRecords::Https));
            zone.insert(key(RecordType::Aaaa), addresses(aaaa, RecordType::Aaaa));
            zone.insert(key(RecordType::A), addresses(a, RecordType::A));
        }
        zone
    })
}

prop_compose! {
    fn policy()(
        transports in Just(Transport::ALL.to_vec()).prop_shuffle(),
        count in 1..=5_usize,
        family_count in 1..4_usize,
        prefer_ipv4 in any::<bool>(),
        only_family in proptest::option::weighted(0.2, prop_oneof![Just(AddressFamily::V4), Just(AddressFamily::V6)]),
        switches in any::<[bool; 3]>(),
        head_start in 0..300_u64,
        attempt_delay_min in 10..250_u64,
    ) -> Policy {
        let [exhaustive, ignore_memory, rely_on_ech] = switches;
        Policy {
            transports: transports[..count].to_vec(),
            preferred_family_count: family_count,
            head_start: Duration::from_millis(head_start),
            attempt_delay_min: Duration::from_millis(attempt_delay_min),
            prefer_ipv4, only_family, exhaustive, ignore_memory, rely_on_ech,
            ..Policy::of_first_tries()
        }
    }
}

prop_compose! {
    fn observation()(
        ip in address(),
        transport in proptest::sample::select(Transport::ALL.to_vec()),
        good in any::<bool>(),
        age in 0..4000_u64,
    ) -> (Candidate, bool, u64) {
        let candidate = Candidate {
            address: (ip, 443).into(),
            transport,
            security: Security::Tls,
            alpn: vec![],
            ech: None,
            priority: None,
            origin: AddressOrigin::Address,
        };
        (candidate, good, age)
    }
}

prop_compose! {
    fn world()(
        zone in zone(),
        network in proptest::sample::select(
            vec![dual_stack(), ipv4_only(), ipv6_only(), nat64(), network(&[])]
        ),
        policy in policy(),
        memory in proptest::collection::vec(observation(), 0..12),
        seed in any::<u64>(),
    ) -> World {
        World { zone, network, policy, memory, seed }
    }
}

/// Resolves with the answers in the order that `draws` chooses, all at the same time, and plans.
fn resolve_and_plan(world: &World, draws: &[usize]) -> (Vec<ServiceInfo>, Plan) {
    resolve_after_expired(world, &Zone::new(), draws)
}

/// The same, with expired answers from another zone before.
fn resolve_after_expired(
    world: &World,
    expired: &Zone,
    draws: &[usize],
) -> (Vec<ServiceInfo>, Plan) {
    let target = https("example.com", 443);
    let World { network, policy, seed, .. } = world;
    let mut resolution = RaceResolution::new(&target, network, policy, *seed, NOW);
    let mut open: Vec<DnsQuery> = vec![];
    for draw in draws.iter().cycle() {
        open.extend(core::iter::from_fn(|| resolution.poll_query()));
        if open.is_empty() {
            break;
        }
        let query = open.remove(draw % open.len());
        if let Some(records) = expired.get(&(query.name.clone(), query.record_type)).cloned() {
            let id = query.id;
            resolution
                .handle_answer(NOW, DnsAnswer { id, records, protected: false, expired: true });
            open.extend(core::iter::from_fn(|| resolution.poll_query()));
        }
        let records = world.zone.get(&(query.name, query.record_type)).cloned();
        let records = records.unwrap_or(Err(DnsFailure::NoSuchName));
        resolution.handle_answer(
            NOW,
            DnsAnswer { id: query.id, records, protected: false, expired: false },
        );
    }
    assert!(resolution.is_complete() && resolution.may_move_on(NOW));
    let services = resolution.services();
    let made = plan(&PlanRequest {
        target: &target,
        policy,
        services: &services,
        notes: &resolution.notes(),
        view: &memory_of(world).view(&network.id, &target.host, &TrustContext::default(), NOW),
        network,
        seed: *seed,
        now: NOW,
    });
    (services, made)
}

fn memory_of(world: &World) -> Memory {
    let mut memory = Memory::new(MemoryConfig::default());
    for (candidate, good, age) in &world.memory {
        let failure = AttemptFailure::new(FailureCause::Silent, EvidenceLevel::Started, "");
        memory.learn(
            &Evidence {
                at: NOW - Duration::from_secs(*age),
                network: world.network.id.clone(),
                host: TargetHost::parse("example.com").unwrap(),
                candidate: candidate.clone(),
                level: if *good { EvidenceLevel::Security } else { EvidenceLevel::Started },
                failure: (!good).then_some(failure),
                doubt: None,
                rtt: good.then_some(Duration::from_millis(1 + age % 700)),
                sent_again: None,
            },
            &TrustContext::default(),
        );
    }
    memory
}

/// The attempts that are possible on the wire: port, address and transport.
fn expected(world: &World, services: &[ServiceInfo]) -> Vec<(u16, IpAddr, Transport)> {
    let target = https("example.com", 443);
    let TargetService::Http { .. } = target.service else { return vec![] };
    let available = [Transport::Quic, Transport::Tcp, Transport::Mptcp];
    let mut expected = vec![];
    for service in services {
        for address in &service.addresses {
            let ip = world.network.on_the_wire(address.ip, world.policy.only_family);
            for transport in
                world.policy.transports.iter().filter(|transport| available.contains(transport))
            {
                expected.push((service.port, ip, *transport));
            }
        }
    }
    expected
}

proptest! {
    //= hev3 §4.4
    //# new answers replace expired ones whole: of an expired answer nothing is left
    #[test]
    fn a_new_answer_leaves_nothing_of_the_expired_one(
        world in world(),
        expired in zone(),
        draws in proptest::collection::vec(any::<usize>(), 1..12),
    ) {
        // A failure of the servers is the exception: then an expired answer stays.
        let is_answer = |answer: &Result<DnsRecords, DnsFailure>| match answer {
            Ok(_) => true,
            Err(failure) => matches!(failure, DnsFailure::NoData | DnsFailure::NoSuchName),
        };
        let mut world = world;
        world.zone.retain(|_, answer| is_answer(answer));
        // Names to which only expired records refer have been asked for, which notes may say.
        let with_notes_of = |(services, plan): (Vec<ServiceInfo>, Plan), notes: &Plan| {
            (services, Plan { notes: notes.notes.clone(), ..plan })
        };
        let never_expired = resolve_and_plan(&world, &draws);
        let replaced = resolve_after_expired(&world, &expired, &draws);
        prop_assert_eq!(with_notes_of(replaced, &never_expired.1), never_expired);
    }

    //= hev3 §4.2
    //# resolution is asynchronous: each answer is a fact from which services and plan are derived
    //# again
    /// "Input order at equal time does not change the outcome."
    #[test]
    fn the_order_of_answers_does_not_matter(
        world in world(),
        one in proptest::collection::vec(any::<usize>(), 1..12),
        other in proptest::collection::vec(any::<usize>(), 1..12),
    ) {
        prop_assert_eq!(resolve_and_plan(&world, &one), resolve_and_plan(&world, &other));
    }

    /// Every candidate is tried or carries a reason, and no two entries are the same attempt.
    #[test]
    fn every_candidate_is_tried_or_has_a_reason(world in world()) {
        let (services, plan) = resolve_and_plan(&world, &[0]);
        let entries = plan.entries.iter().map(|entry| (&entry.candidate, &entry.reasons));
        let dropped = plan.dropped.iter().map(|dropped| (&dropped.candidate, &dropped.reasons));
        let all: Vec<_> = entries.chain(dropped).collect();
        for (port, ip, transport) in expected(&world, &services) {
            prop_assert!(
                all.iter().any(|(candidate, _)| candidate.transport == transport
                    && candidate.address.ip() == ip
                    && candidate.address.port() == port),
                "{} {} {} is neither tried nor dropped", transport, ip, port
            );
        }
        prop_assert!(all.iter().all(|(_, reasons)| !reasons.is_empty()));
        for (at, entry) in plan.entries.iter().enumerate() {
            let is_same = |other: &crate::plan::PlanEntry| entry.candidate.is_same_attempt(&other.candidate);
            prop_assert!(!plan.entries[..at].iter().any(is_same));
        }
        prop_assert!(all.len() <= MAX_CANDIDATES);
    }

    //= rfc9848 §5.1
    //# in no world is anything tried without ECH if each record has it, and that is relied on
    #[test]
    fn nothing_is_tried_without_ech_if_each_record_has_it(
        world in world(),
        draws in proptest::collection::vec(any::<usize>(), 1..12),
    ) {
        let (services, plan) = resolve_and_plan(&world, &draws);
        let mut records = services.iter().filter(|service| service.priority().is_some()).peekable();
        let all_have_ech = records.peek().is_some() && records.all(|record| record.ech.is_some());
        if world.policy.rely_on_ech && all_have_ech {
            prop_assert!(plan.entries.iter().all(|entry| entry.candidate.ech.is_some()));
        }
    }

    /// If records, policy and security allow anything, something is tried.
    #[test]
    fn a_plan_is_empty_only_if_nothing_is_allowed(world in world()) {
        let (services, plan) = resolve_and_plan(&world, &[0]);
        let is_admitted = |address: &ServiceAddress| {
            world.network.admits(world.policy.only_family, address.ip)
        };
        // A transport excluded by a record is tried without the record, if there is an address.
        let has_fallback = services.iter().any(|service| {
            service.priority().is_none() && service.addresses.iter().any(is_admitted)
        });
        if plan.entries.is_empty() {
            for dropped in &plan.dropped {
                let is_forbidden = dropped.reasons.iter().any(|reason| match reason {
                    PlanReason(ReasonKind::NotInRecord { .. }) | PlanReason(ReasonKind::NotInAnyRecord { .. }) => !has_fallback,
                    reason => matches!(reason, PlanReason(ReasonKind::FamilyNotAllowed { .. })),
                });
                prop_assert!(is_forbidden, "{:?}", dropped);
            }
        }
    }

    //= hev3 §6, §9
    //# the delay between attempts is between 100 ms and 2 s
    /// Invariant 3: never within 10 ms, and never longer than the Maximum Connection Attempt
    /// Delay lets a lane wait.
    #[test]
    fn delays_keep_their_bounds(world in world()) {
        let (_, plan) = resolve_and_plan(&world, &[0]);
        for (at, entry) in plan.entries.iter().enumerate() {
            let least = if at == 0 { Duration::ZERO } else { ATTEMPT_DELAY_FLOOR };
            prop_assert!(entry.delay >= least);
            prop_assert!(entry.delay <= world.policy.attempt_delay_max);
        }
        if let Some(first) = plan.entries.first() {
            prop_assert!(first.delay.is_zero() && !first.retest);
        }
    }

    /// Candidates known to work are never behind those known to fail.
    #[test]
    fn good_goes_before_bad(world in world()) {
        let (_, plan) = resolve_and_plan(&world, &[0]);
        let is_bad = |reason: &PlanReason| matches!(reason, PlanReason(ReasonKind::KnownBad { .. }));
        let first_bad = plan.entries.iter().position(|entry| entry.reasons.iter().any(is_bad));
        let last_good = plan.entries.iter().rposition(|entry| entry.from_memory);
        if let (Some(bad), Some(good)) = (first_bad, last_good) {
            prop_assert!(good < bad);
        }
    }

    /// The caller decides about security, and no answer or memory weakens it.
    #[test]
    fn security_is_never_weakened(world in world()) {
        let (_, plan) = resolve_and_plan(&world, &[0]);
        prop_assert!(plan.entries.iter().all(|entry| entry.candidate.security == Security::Tls));
    }

    #[test]
    fn interleaving_is_a_permutation(
        addresses in proptest::collection::vec(address(), 0..40),
        count in 0..8_usize,
        ipv4_first in any::<bool>(),
    ) {
        let first = if ipv4_first { AddressFamily::V4 } else { AddressFamily::V6 };
        let numbered: Vec<(usize, IpAddr)> = addresses.iter().copied().enumerate().collect();
        let interleaved = interleave(numbered.clone(), first, count, |(_, ip)| AddressFamily::from_ip(*ip));
        let mut back = interleaved.clone();
        back.sort_unstable();
        prop_assert_eq!(&back, &numbered);
        for family in [AddressFamily::V4, AddressFamily::V6] {
            let of = |list: &[(usize, IpAddr)]| -> Vec<usize> {
                list.iter().filter(|(_, ip)| AddressFamily::from_ip(*ip) == family).map(|(at, _)| *at).collect()
            };
            prop_assert_eq!(of(&interleaved), of(&numbered), "the order within a family is kept");
        }
    }
}
