//! A workload for an instruction counter: `instructions CASE N` performs the operation of a case N
//! times.
//!
//! ```text
//! cargo bench -p eyas-race --bench instructions -- list
//! valgrind --tool=callgrind target/release/deps/instructions-… race-20 1000
//! ```
//!
//! Counts, unlike times, are the same on a busy machine. What a case sets up once is part of
//! every count; two counts with different N give the cost of one operation.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "this is a program beside the core: it reads its arguments and prints"
)]

use std::{
    hint::black_box,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use eyas_race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas_race::dns::{DnsAnswer, DnsFailure, DnsQuery, DnsRecords, RecordType};
use eyas_race::evidence::{
    AttemptFailure, Evidence, EvidenceLevel, FailureCause, NetworkId, TrustContext,
};
use eyas_race::io::{AttemptId, NetworkView, RaceInput, RaceOutput, SourceAddress};
use eyas_race::memory::{Memory, MemoryConfig, MemoryView};
use eyas_race::plan::{PlanRequest, plan};
use eyas_race::policy::Policy;
use eyas_race::race::{Race, RaceSetup};
use eyas_race::resolve::RaceResolution;
use eyas_race::target::{Target, TargetHost};

/// The cases, with a description of one operation.
const CASES: [(&str, Case, &str); 7] = [
    ("event", event, "one input to a race of four attempts, and draining it"),
    ("race-2", race_of_2, "a whole race of 2 candidates: DNS, starts, win, end"),
    ("race-20", race_of_20, "a whole race of 20 candidates of which the last one works"),
    ("event-once", event_once, "event, without second tries"),
    ("race-2-once", race_of_2_once, "race-2, without second tries"),
    ("race-20-once", race_of_20_once, "race-20, without second tries"),
    ("plan-10000", plan_10000, "a view of a memory of 10,000 rows, and a plan of 20 candidates"),
];

type Case = fn(u64);

const NOW: Duration = Duration::from_secs(1_800_000_000);
const TRANSPORTS: [Transport; 2] = [Transport::Quic, Transport::Tcp];

fn main() -> ExitCode {
    // `cargo bench` adds the argument `--bench`.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] | ["list"] => CASES.iter().for_each(|(name, ..)| println!("{name}")),
        [name, repetitions] => {
            let case = CASES.iter().find(|(known, ..)| known == name);
            let (Some((_, case, _)), Ok(repetitions)) = (case, repetitions.parse()) else {
                return usage();
            };
            case(repetitions);
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("instructions list\ninstructions CASE N");
    for (name, _, about) in CASES {
        eprintln!("  {name:12} {about}");
    }
    ExitCode::FAILURE
}

fn network() -> NetworkView {
    let source = SourceAddress {
        address: IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9)),
        prefix_len: 24,
        deprecated: false,
        routed: true,
    };
    NetworkView {
        id: NetworkId("home".into()),
        sources: vec![source],
        pref64: Vec::new(),
        lacking: Vec::new(),
    }
}

fn host(number: u32) -> TargetHost {
    TargetHost::Name(format!("host{number}.test"))
}

fn setup(policy: Policy) -> RaceSetup {
    let target = Target::plain(host(0), 443, TRANSPORTS.to_vec(), Security::Tls);
    let policy = Policy { max_in_flight: 20, ..policy };
    RaceSetup { target, policy, view: MemoryView::empty(), network: network(), seed: 1 }
}

/// A policy under which each candidate is tried once.
fn once() -> Policy {
    Policy { second_tries: 0, ..Policy::default() }
}

/// Answers with this many A records, and with none of the other types.
fn answer(query: &DnsQuery, addresses: u8) -> DnsAnswer {
    let records = match query.record_type {
        RecordType::A => {
            Ok(DnsRecords::A((1..=addresses).map(|n| Ipv4Addr::new(192, 0, 2, n)).collect()))
        }
        _ => Err(DnsFailure::NoData),
    };
    DnsAnswer { id: query.id, records, protected: false, expired: false }
}

fn ready(id: u32) -> RaceInput {
    let rtt = Some(Duration::from_millis(10));
    RaceInput::Ready { id: AttemptId(id), alpn: None, rtt }
}

/// Runs a race until nothing is due any more or `starts` attempts have started.
fn run(race: &mut Race, mut now: Duration, addresses: u8, starts: u32) -> Duration {
    let mut started = 0;
    loop {
        match race.poll_output(now) {
            RaceOutput::Query(query) => {
                race.handle_input(now, RaceInput::Answer(answer(&query, addresses)))
            }
            RaceOutput::Start { .. } => {
                started += 1;
                if started == starts {
                    return now;
                }
            }
            RaceOutput::Timeout(Some(next)) => now = next,
            RaceOutput::Timeout(None) => return now,
            output => {
                black_box(output);
            }
        }
    }
}

fn event(repetitions: u64) {
    events(&Policy::default(), repetitions);
}

fn event_once(repetitions: u64) {
    events(&once(), repetitions);
}

fn events(policy: &Policy, repetitions: u64) {
    let mut race = Race::new(setup(policy.clone()), NOW);
    let now = run(&mut race, NOW, 2, 4);
    for n in 0..repetitions {
        let now = now + Duration::from_nanos(n);
        let (id, level) = (AttemptId(3), EvidenceLevel::Answered);
        race.handle_input(now, RaceInput::Progress { id, level, rtt: Some(now - NOW) });
        while !matches!(black_box(race.poll_output(now)), RaceOutput::Timeout(_)) {}
    }
}

fn whole_race(policy: Policy, addresses: u8, candidates: u32) {
    let mut race = Race::new(setup(policy), NOW);
    let mut now = run(&mut race, NOW, addresses, candidates);
    now += Duration::from_millis(5);
    for id in 0..candidates - 1 {
        let failure = AttemptFailure::new(FailureCause::Refused, EvidenceLevel::Started, "");
        race.handle_input(now, RaceInput::Failed { id: AttemptId(id), failure });
    }
    race.handle_input(now, ready(candidates - 1));
    run(&mut race, now, addresses, u32::MAX);
    assert!(race.is_over());
    black_box(race);
}

fn race_of_2(repetitions: u64) {
    (0..repetitions).for_each(|_| whole_race(Policy::default(), 1, 2));
}

fn race_of_20(repetitions: u64) {
    (0..repetitions).for_each(|_| whole_race(Policy::default(), 10, 20));
}

fn race_of_2_once(repetitions: u64) {
    (0..repetitions).for_each(|_| whole_race(once(), 1, 2));
}

fn race_of_20_once(repetitions: u64) {
    (0..repetitions).for_each(|_| whole_race(once(), 10, 20));
}

fn memory(rows: u32) -> Memory {
    let mut memory = Memory::new(MemoryConfig::default());
    let mut next = 0;
    while memory.len() < rows as usize - 1 {
        let octets = [192, 0, 2, 1 + (next % 10) as u8];
        memory.learn(
            &Evidence {
                at: NOW - Duration::from_secs(60),
                network: NetworkId("home".into()),
                host: host(next / 20),
                candidate: Candidate {
                    address: SocketAddr::new(IpAddr::from(octets), 443),
                    transport: TRANSPORTS[(next / 10 % 2) as usize],
                    security: Security::Tls,
                    alpn: Vec::new(),
                    ech: None,
                    priority: None,
                    origin: AddressOrigin::Address,
                },
                level: EvidenceLevel::Security,
                failure: None,
                doubt: None,
                rtt: Some(Duration::from_millis(u64::from(next % 300))),
                sent_again: None,
            },
            &TrustContext::default(),
        );
        next += 1;
    }
    memory
}

fn plan_10000(repetitions: u64) {
    let memory = memory(10_000);
    let setup = setup(Policy::default());
    let RaceSetup { target, policy, network, seed, .. } = &setup;
    let mut resolution = RaceResolution::new(target, network, policy, *seed, NOW);
    while let Some(query) = resolution.poll_query() {
        resolution.handle_answer(NOW, answer(&query, 10));
    }
    let (services, notes) = (resolution.services(), resolution.notes());
    for _ in 0..repetitions {
        let view = memory.view(&network.id, &target.host, &TrustContext::default(), NOW);
        let plan = plan(&PlanRequest {
            target,
            policy,
            services: &services,
            notes: &notes,
            view: &view,
            network,
            seed: *seed,
            now: NOW,
        });
        assert_eq!(black_box(plan).entries.len(), 20);
    }
}
