//! The effect of the memory on the plan.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use crate::candidate::{Candidate, Transport};
use crate::evidence::{AttemptFailure, Evidence, EvidenceLevel, FailureCause, TrustContext};
use crate::memory::{Memory, MemoryConfig};
use crate::plan::{Plan, PlanReason};
use crate::policy::Policy;
use crate::reason::ReasonKind;
use crate::target::TargetHost;
use crate::vocabulary::{TestedResolution, dual_stack, https, ms, timetable};

/// When the evidence was observed.
const LEARNT: Duration = Duration::from_hours(1000);

/// ```text
/// example.com AAAA 2001:db8::1
/// example.com A    192.0.2.1
/// ```
struct Learnt {
    ladder: TestedResolution,
    memory: Memory,
}

impl Learnt {
    fn new() -> Self {
        Self::under(Policy::of_first_tries())
    }

    fn under(policy: Policy) -> Self {
        let ladder = TestedResolution::new(https("example.com", 443), dual_stack(), policy, 3)
            .answers(&["example.com HTTPS -"])
            .answers(&["example.com AAAA 2001:db8::1"])
            .answers(&["example.com A 192.0.2.1"]);
        Self { ladder, memory: Memory::new(MemoryConfig::default()) }
    }

    fn candidate(&self, transport: Transport, ip: &str) -> Candidate {
        let mut plain = TestedResolution::for_network(dual_stack());
        plain.resolution = self.ladder.resolution.clone();
        let is_wanted = |candidate: &Candidate| {
            candidate.transport == transport && candidate.address.ip() == crate::vocabulary::ip(ip)
        };
        let entries = plain.plan().entries.into_iter().map(|entry| entry.candidate);
        entries.into_iter().find(is_wanted).unwrap()
    }

    fn learn(
        mut self,
        host: &str,
        candidate: Candidate,
        outcome: Result<u64, FailureCause>,
    ) -> Self {
        let failure =
            outcome.err().map(|cause| AttemptFailure::new(cause, EvidenceLevel::Started, ""));
        self.memory.learn(
            &Evidence {
                at: LEARNT,
                network: self.ladder.network.id.clone(),
                host: TargetHost::parse(host).unwrap(),
                candidate,
                level: if outcome.is_ok() {
                    EvidenceLevel::Security
                } else {
                    EvidenceLevel::Started
                },
                failure,
                doubt: None,
                rtt: outcome.ok().map(ms),
                sent_again: None,
            },
            &TrustContext::default(),
        );
        self
    }

    fn good(self, transport: Transport, ip: &str, rtt: u64) -> Self {
        let candidate = self.candidate(transport, ip);
        self.learn("example.com", candidate, Ok(rtt))
    }

    fn bad(self, transport: Transport, ip: &str, cause: FailureCause) -> Self {
        let candidate = self.candidate(transport, ip);
        self.learn("example.com", candidate, Err(cause))
    }

    /// Other hosts were silent over this path, so the network is assumed to drop its packets.
    fn path_dropped(mut self, transport: Transport, ip: &str) -> Self {
        for host in ["a.example", "b.example", "c.example"] {
            let candidate = self.candidate(transport, ip);
            self = self.learn(host, candidate, Err(FailureCause::Silent));
        }
        self
    }

    /// The plan this many seconds after the evidence.
    fn plan_after(&mut self, seconds: u64) -> Plan {
        self.ladder.now = LEARNT + Duration::from_secs(seconds);
        let host = &self.ladder.target.host;
        self.ladder.view = self.memory.view(
            &self.ladder.network.id,
            host,
            &TrustContext::default(),
            self.ladder.now,
        );
        self.ladder.plan()
    }

    fn timetable_after(&mut self, seconds: u64) -> Vec<String> {
        timetable(&self.plan_after(seconds))
    }
}

use Transport::{Quic, Tcp};

/// The next connection goes straight to what works, and tries what is more preferred beside it.
#[test]
fn what_works_goes_first_and_the_preferred_one_is_tried_beside_it() {
    let mut learnt = Learnt::new().good(Tcp, "2001:db8::1", 20);
    let plan = learnt.plan_after(60);
    assert_eq!(
        timetable(&plan),
        [
            "0 tcp 2001:db8::1",
            "100 quic 2001:db8::1 retest",
            "150 tcp 192.0.2.1",
            "200 quic 192.0.2.1",
        ]
    );
    assert!(plan.entries[0].from_memory && !plan.entries[1].from_memory);
    assert_eq!(plan.entries[0].initial_rtt, Some(ms(20)));
    assert!(matches!(plan.entries[0].reasons[0], PlanReason(ReasonKind::KnownGood { .. })));
    assert!(matches!(plan.entries[1].reasons[0], PlanReason(ReasonKind::MoreWanted { .. })));
}

/// The most preferred works, so there is nothing to test.
#[test]
fn when_the_most_preferred_works_nothing_is_retested() {
    let mut learnt = Learnt::new().good(Quic, "2001:db8::1", 20);
    assert_eq!(
        learnt.timetable_after(60),
        ["0 quic 2001:db8::1", "50 tcp 2001:db8::1", "100 quic 192.0.2.1", "150 tcp 192.0.2.1"],
        "TCP is delayed as long as without memory"
    );
}

/// IPv4 works, IPv6 was never tried: it is more preferred.
#[test]
fn a_preferred_family_is_tried_beside_what_works() {
    let mut learnt = Learnt::new().good(Quic, "192.0.2.1", 20);
    let plan = learnt.plan_after(60);
    assert_eq!(
        timetable(&plan)[..3],
        ["0 quic 192.0.2.1", "50 tcp 2001:db8::1", "100 quic 2001:db8::1 retest"]
    );
}

/// When UDP is dropped, the second connection goes to TCP at once.
#[test]
fn what_failed_goes_behind_everything() {
    let mut learnt =
        Learnt::new().bad(Quic, "2001:db8::1", FailureCause::Silent).good(Tcp, "2001:db8::1", 20);
    let plan = learnt.plan_after(60);
    assert_eq!(
        timetable(&plan),
        [
            "0 tcp 2001:db8::1",
            "100 quic 192.0.2.1 retest",
            "150 tcp 192.0.2.1",
            "400 quic 2001:db8::1",
        ]
    );
    let text = plan.entries[3].reasons[0].to_string();
    assert_eq!(text, "was silent recently; retest in 4 min");
}

#[test]
fn what_failed_is_retested_beside_what_works() {
    let mut learnt = Learnt::new()
        .bad(Quic, "2001:db8::1", FailureCause::Silent)
        .bad(Quic, "192.0.2.1", FailureCause::Silent)
        .good(Tcp, "2001:db8::1", 20);
    assert_eq!(
        learnt.timetable_after(301),
        [
            "0 tcp 2001:db8::1",
            "100 tcp 192.0.2.1",
            "350 quic 2001:db8::1 retest",
            "450 quic 192.0.2.1 retest",
        ]
    );
}

/// Nothing works and nothing is untried: candidates that failed have their turn like any other.
#[test]
fn when_everything_failed_everything_is_tried() {
    let mut learnt = Learnt::new();
    for transport in [Quic, Tcp] {
        for ip in ["2001:db8::1", "192.0.2.1"] {
            learnt = learnt.bad(transport, ip, FailureCause::Refused);
        }
    }
    let expected =
        ["0 quic 2001:db8::1", "50 tcp 2001:db8::1", "250 quic 192.0.2.1", "300 tcp 192.0.2.1"];
    assert_eq!(learnt.timetable_after(60), expected, "during the back-off");
    assert_eq!(
        learnt.timetable_after(301),
        expected,
        "after it: no working connection to wait for"
    );
}

/// "QUIC to this network's UDP/443 has been silent": hosts that were never tried benefit too.
#[test]
fn what_the_network_drops_goes_last() {
    let mut learnt = Learnt::new()
        .path_dropped(Quic, "2001:db8::1")
        .path_dropped(Quic, "192.0.2.1")
        .good(Tcp, "2001:db8::1", 20);
    learnt.ladder.seed = 2;
    let plan = learnt.plan_after(60);
    let last =
        ["0 tcp 2001:db8::1", "100 tcp 192.0.2.1", "350 quic 2001:db8::1", "450 quic 192.0.2.1"];
    assert_eq!(timetable(&plan), last);
    assert_eq!(
        plan.entries[2].reasons[0].to_string(),
        "quic to port 443 over IPv6 has been silent on this network for 3 other hosts"
    );
}

#[test]
fn what_the_network_drops_goes_last_where_nothing_is_known_to_work() {
    let mut learnt =
        Learnt::new().path_dropped(Quic, "2001:db8::1").path_dropped(Quic, "192.0.2.1");
    learnt.ladder.seed = 2;
    assert_eq!(
        learnt.timetable_after(60),
        ["0 tcp 2001:db8::1", "250 tcp 192.0.2.1", "500 quic 2001:db8::1", "750 quic 192.0.2.1"]
    );
}

//= hev3 §5.3
//# preferred and untried candidates are tried beside what works
/// One race in four probes the network again, beside a working connection.
#[test]
fn the_network_is_probed_by_some_races() {
    let mut learnt = Learnt::new().path_dropped(Quic, "2001:db8::1").good(Tcp, "2001:db8::1", 20);
    let mut probing = 0;
    for seed in 0..400 {
        learnt.ladder.seed = seed;
        let plan = learnt.plan_after(60);
        let probes =
            |reason: &PlanReason| matches!(reason, PlanReason(ReasonKind::Probe { one_in: 4 }));
        probing += plan
            .entries
            .iter()
            .filter(|entry| entry.retest && entry.reasons.iter().any(probes))
            .count();
    }
    assert!((60..140).contains(&probing), "{probing} of 400");
}

/// `race --all` and a caller who does not trust the memory.
#[test]
fn the_memory_can_be_ignored_and_an_exhaustive_race_tries_everything() {
    let exhaustive = Policy { exhaustive: true, ..Policy::of_first_tries() };
    let mut learnt = Learnt::under(exhaustive)
        .path_dropped(Quic, "2001:db8::1")
        .bad(Quic, "192.0.2.1", FailureCause::Refused)
        .good(Tcp, "2001:db8::1", 20);
    let plan = learnt.plan_after(60);
    assert_eq!((plan.entries.len(), plan.dropped.len()), (4, 0));
    assert!(plan.entries.iter().all(|entry| !entry.retest));
    let without_memory = Policy { ignore_memory: true, ..Policy::of_first_tries() };
    let mut learnt = Learnt::under(without_memory).good(Tcp, "192.0.2.1", 400);
    let expected =
        ["0 quic 2001:db8::1", "50 tcp 2001:db8::1", "250 quic 192.0.2.1", "300 tcp 192.0.2.1"];
    assert_eq!(learnt.timetable_after(60), expected);
}

/// However distant it is: a lost first flight must not cost more than with an unknown host. If it
/// costs little, the less preferred transport is delayed so that it is not started in vain.
#[test]
fn a_distant_remembered_server_gets_no_more_time_than_an_unknown_one() {
    let tcp = |rtt| {
        let plan = Learnt::new().good(Quic, "2001:db8::1", rtt).plan_after(60);
        timetable(&plan).into_iter().find(|line| line.contains(" tcp ")).unwrap()
    };
    assert_eq!(tcp(100), "50 tcp 2001:db8::1");
    assert_eq!(tcp(400), "50 tcp 2001:db8::1");
    assert_eq!(tcp(80), "100 tcp 2001:db8::1");
    assert_eq!(tcp(45), "65 tcp 2001:db8::1");
    assert_eq!(tcp(20), "50 tcp 2001:db8::1");
}

//= hev3 §6
//# the delay between attempts is 250 ms, or three remembered round trips
/// The delays follow the remembered round trip, within the draft's bounds.
#[test]
fn delays_come_from_remembered_round_trips() {
    let timetable = |rtt| {
        let learnt = Learnt::new().good(Quic, "2001:db8::1", rtt).good(Quic, "192.0.2.1", rtt);
        let mut learnt = learnt.good(Tcp, "2001:db8::1", rtt).good(Tcp, "192.0.2.1", rtt);
        learnt.timetable_after(60)
    };
    assert_eq!(
        timetable(200),
        ["0 quic 2001:db8::1", "50 tcp 2001:db8::1", "600 quic 192.0.2.1", "650 tcp 192.0.2.1"],
        "at this distance a longer head start costs more than it saves"
    );
    assert_eq!(
        timetable(60),
        ["0 quic 2001:db8::1", "80 tcp 2001:db8::1", "180 quic 192.0.2.1", "260 tcp 192.0.2.1"]
    );
    assert_eq!(
        timetable(1),
        ["0 quic 2001:db8::1", "50 tcp 2001:db8::1", "100 quic 192.0.2.1", "150 tcp 192.0.2.1"],
        "not below the recommended minimum"
    );
    assert_eq!(
        timetable(900),
        ["0 quic 2001:db8::1", "50 tcp 2001:db8::1", "2000 quic 192.0.2.1", "2050 tcp 192.0.2.1"],
        "not above the maximum"
    );
}

//= hev3 §5.2
//# priorities of records override the memory
/// The memory reorders within a priority, never across priorities.
///
/// ```text
/// example.com HTTPS 1 a.example. alpn=h2 ipv4hint=192.0.2.1
/// example.com HTTPS 2 b.example. alpn=h2 ipv4hint=192.0.2.2    works
/// ```
#[test]
fn priorities_of_records_override_the_memory() {
    let lines = [
        "example.com HTTPS 1 a.example. alpn=h2 ipv4hint=192.0.2.1",
        "example.com HTTPS 2 b.example. alpn=h2 ipv4hint=192.0.2.2",
    ];
    let mut learnt = Learnt::new();
    learnt.ladder = TestedResolution::for_network(dual_stack()).answers(&lines);
    let mut learnt = learnt.good(Tcp, "192.0.2.2", 20);
    assert_eq!(learnt.timetable_after(60), ["0 tcp 192.0.2.1", "250 tcp 192.0.2.2"]);
    let equal = lines.map(|line| line.replace("HTTPS 2", "HTTPS 1"));
    let equal: Vec<&str> = equal.iter().map(String::as_str).collect();
    for seed in 0..8 {
        learnt.ladder = TestedResolution::for_network(dual_stack()).answers(&equal);
        learnt.ladder.seed = seed;
        assert_eq!(
            learnt.timetable_after(60)[0],
            "0 tcp 192.0.2.2",
            "the memory decides between equals"
        );
    }
}

/// HEv3 §5.3: the nearer of two addresses of one family.
#[test]
fn the_nearer_address_goes_first() {
    let mut learnt = Learnt::new();
    learnt.ladder = TestedResolution::for_network(dual_stack())
        .answers(&["example.com HTTPS 1 . alpn=h2"])
        .answers(&["example.com A 192.0.2.1", "example.com A 192.0.2.2"]);
    let mut learnt = learnt.good(Tcp, "192.0.2.1", 80).good(Tcp, "192.0.2.2", 20);
    assert_eq!(learnt.timetable_after(60), ["0 tcp 192.0.2.2", "100 tcp 192.0.2.1"]);
}

/// QUIC is far slower than TCP: with memory, TCP waits no longer for it than without.
#[test]
fn a_slow_transport_gets_only_a_bounded_head_start() {
    let mut learnt = Learnt::new().good(Quic, "2001:db8::1", 80).good(Tcp, "2001:db8::1", 1);
    let plan = learnt.plan_after(60);
    let tcp = plan.entries.iter().find(|entry| entry.candidate.transport == Tcp).unwrap();
    let text = tcp.reasons.last().unwrap().to_string();
    assert_eq!(
        text,
        "quic is preferred, but with a round trip of 80 ms its head start is only 50 ms: tcp \
         needs no more than 2 ms"
    );
    assert_eq!(timetable(&plan)[..2], ["0 quic 2001:db8::1", "50 tcp 2001:db8::1"]);
}

/// 80 ms and 20 for QUIC; 50 ms and 2 × 25 ms for TCP and TLS.
#[test]
fn the_head_start_is_cut_where_the_less_preferred_transport_would_be_ready_first() {
    let starts = |tcp| {
        let learnt = Learnt::new().good(Quic, "2001:db8::1", 80).good(Tcp, "2001:db8::1", tcp);
        let plan = { learnt }.plan_after(60);
        let is_tcp = |line: &String| line.ends_with(" tcp 2001:db8::1");
        timetable(&plan).into_iter().find(is_tcp).unwrap()
    };
    assert_eq!(starts(25), "100 tcp 2001:db8::1");
    assert_eq!(starts(24), "50 tcp 2001:db8::1");
}
