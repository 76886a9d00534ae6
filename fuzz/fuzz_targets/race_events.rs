//! Arbitrary inputs to a race: it never panics, and the invariants of the design hold.
#![no_main]

use std::{net::Ipv4Addr, net::Ipv6Addr, time::Duration};

use arbitrary::Arbitrary;
use eyas_race::candidate::{Security, Transport};
use eyas_race::dns::{DnsAnswer, DnsFailure, DnsRecords, HttpsRecord, QueryId};
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause, NetworkId};
use eyas_race::io::{AttemptId, NetworkChange, NetworkView, RaceInput, RaceOutput, SourceAddress};
use eyas_race::memory::MemoryView;
use eyas_race::policy::{ATTEMPT_DELAY_FLOOR, LoserPolicy, Policy};
use eyas_race::race::RaceSetup;
use eyas_race::report::RaceReport;
use eyas_race::target::{Target, TargetHost};
use eyas_race::trace::{TraceRecorder, replay};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<9> = Reach::new([
    "a query",
    "an attempt starts",
    "an attempt closes",
    "a usable connection",
    "a better connection",
    "evidence is learnt",
    "a race fails",
    "a race ends",
    "a timeout",
]);

const NOW: Duration = Duration::from_secs(1_800_000_000);
/// The maximum inputs of one run; more find nothing new.
const MAX_EVENTS: usize = 200;

#[derive(Debug, Arbitrary)]
struct Run {
    is_https: bool,
    simultaneous: bool,
    late_switch: bool,
    exhaustive: bool,
    finish_losers: Option<u16>,
    win_at: u8,
    max_in_flight: u8,
    second_tries: u8,
    delays_ms: [u16; 4],
    seed: u64,
    events: Vec<Event>,
}

#[derive(Debug, Arbitrary)]
enum Event {
    Wait {
        ms: u16,
    },
    Poll,
    Https {
        id: u8,
        priority: u16,
        target: u8,
        alpn: u8,
        port: Option<u16>,
        v4: Vec<u8>,
        v6: Vec<u8>,
    },
    Aaaa {
        id: u8,
        hosts: Vec<u8>,
    },
    A {
        id: u8,
        hosts: Vec<u8>,
    },
    NoAnswer {
        id: u8,
        failure: u8,
    },
    Progress {
        id: u8,
        level: u8,
        rtt_ms: Option<u16>,
    },
    Ready {
        id: u8,
        rtt_ms: Option<u16>,
        /// Whether the driver reports first that the transport fell back.
        fell_back: bool,
        /// Whether it reports first that a long ClientHello did not get through.
        long_hello_failed: bool,
    },
    Failed {
        id: u8,
        cause: u8,
        level: u8,
    },
    Slots(u8),
    Network {
        id: u8,
        v4: bool,
        v6: bool,
    },
    Cancel,
}

fn ms(milliseconds: u16) -> Duration {
    Duration::from_millis(milliseconds.into())
}

fn level(byte: u8) -> EvidenceLevel {
    let levels = [
        EvidenceLevel::Started,
        EvidenceLevel::Answered,
        EvidenceLevel::Transport,
        EvidenceLevel::Security,
        EvidenceLevel::FirstByte,
        EvidenceLevel::FullPacket,
    ];
    levels[usize::from(byte) % levels.len()]
}

fn cause(byte: u8) -> FailureCause {
    let causes = [
        FailureCause::Refused,
        FailureCause::Silent,
        FailureCause::Reset,
        FailureCause::Tls,
        FailureCause::Certificate,
        FailureCause::Unreachable,
        FailureCause::Deadline,
        FailureCause::Local,
    ];
    causes[usize::from(byte) % causes.len()]
}

fn v4(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, host)
}

fn v6(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into())
}

fn network(id: u8, has_v4: bool, has_v6: bool) -> NetworkView {
    let source = |address: &str| SourceAddress {
        address: address.parse().expect("a constant"),
        prefix_len: 24,
        deprecated: false,
        routed: true,
    };
    let mut sources = Vec::new();
    sources.extend(has_v6.then(|| source("2001:db8::99")));
    sources.extend(has_v4.then(|| source("198.51.100.9")));
    NetworkView {
        id: NetworkId(id.to_string().into()),
        sources,
        pref64: Vec::new(),
        lacking: Vec::new(),
    }
}

impl Run {
    fn setup(&self) -> RaceSetup {
        let host = TargetHost::Name("a.test".into());
        let transports = vec![Transport::Quic, Transport::Mptcp, Transport::Tcp];
        let target = if self.is_https {
            Target::https(host, 443)
        } else {
            Target::plain(host, 443, transports.clone(), Security::Tls)
        };
        let [resolution, attempt, head_start, grace] = self.delays_ms.map(ms);
        let policy = Policy {
            transports,
            simultaneous: self.simultaneous,
            late_switch: self.late_switch,
            exhaustive: self.exhaustive,
            losers: self
                .finish_losers
                .map_or(LoserPolicy::Cancel, |budget| LoserPolicy::Finish(ms(budget))),
            win_at: level(self.win_at),
            max_in_flight: self.max_in_flight.into(),
            second_tries: u32::from(self.second_tries % 9),
            resolution_delay: resolution,
            attempt_delay: attempt,
            head_start,
            grace,
            ..Policy::default()
        };
        let view = MemoryView::empty();
        RaceSetup { target, policy, view, network: network(0, true, true), seed: self.seed }
    }
}

fn answer(id: u8, records: Result<DnsRecords, DnsFailure>) -> RaceInput {
    RaceInput::Answer(DnsAnswer { id: QueryId(id.into()), records, protected: false, expired: false })
}

fn input(event: &Event) -> Option<RaceInput> {
    Some(match event {
        Event::Wait { .. } | Event::Poll => return None,
        Event::Https { id, priority, target, alpn, port, v4: hosts4, v6: hosts6 } => {
            let names = ["", "a.test", "b.test", "_443._https.a.test"];
            let protocols = ["h3", "h2", "http/1.1", "x"];
            let record = HttpsRecord {
                priority: *priority,
                target: names[usize::from(*target) % names.len()].into(),
                alpn: vec![protocols[usize::from(*alpn) % protocols.len()].into()],
                port: *port,
                ipv4_hint: hosts4.iter().copied().map(v4).collect(),
                ipv6_hint: hosts6.iter().copied().map(v6).collect(),
                ..HttpsRecord::default()
            };
            answer(*id, Ok(DnsRecords::Https(vec![record])))
        }
        Event::Aaaa { id, hosts } => {
            answer(*id, Ok(DnsRecords::Aaaa(hosts.iter().copied().map(v6).collect())))
        }
        Event::A { id, hosts } => {
            answer(*id, Ok(DnsRecords::A(hosts.iter().copied().map(v4).collect())))
        }
        Event::NoAnswer { id, failure } => {
            let failures = [DnsFailure::NoData, DnsFailure::NoSuchName, DnsFailure::Timeout];
            answer(*id, Err(failures[usize::from(*failure) % failures.len()].clone()))
        }
        Event::Progress { id, level: reached, rtt_ms } => RaceInput::Progress {
            id: AttemptId((*id).into()),
            level: level(*reached),
            rtt: rtt_ms.map(ms),
        },
        Event::Ready { id, rtt_ms, .. } => {
            RaceInput::Ready { id: AttemptId((*id).into()), alpn: None, rtt: rtt_ms.map(ms) }
        }
        Event::Failed { id, cause: reason, level: reached } => {
            let failure = AttemptFailure::new(cause(*reason), level(*reached), "");
            RaceInput::Failed { id: AttemptId((*id).into()), failure }
        }
        Event::Slots(slots) => RaceInput::Slots((*slots).into()),
        Event::Network { id, v4, v6 } => RaceInput::NetworkChanged(Box::new(NetworkChange {
            network: network(*id, *v4, *v6),
            view: MemoryView::empty(),
        })),
        Event::Cancel => RaceInput::Cancel,
    })
}

fn count(output: &RaceOutput) {
    REACH.hit(match output {
        RaceOutput::Query(_) => "a query",
        RaceOutput::Start { .. } => "an attempt starts",
        RaceOutput::Close { .. } => "an attempt closes",
        RaceOutput::Usable(_) => "a usable connection",
        RaceOutput::Better(_) => "a better connection",
        RaceOutput::Learn(_) => "evidence is learnt",
        RaceOutput::Failed(_) => "a race fails",
        RaceOutput::Finished => "a race ends",
        RaceOutput::Timeout(Some(_)) => "a timeout",
        // No transport of these races waits for data, and after the end there are no timeouts.
        _ => return,
    });
}

/// Checks the invariants of a race's outputs.
#[derive(Default)]
struct Checker {
    last_start: Option<Duration>,
    starts: u32,
    verdicts: u32,
    is_finished: bool,
}

impl Checker {
    fn check(&mut self, now: Duration, output: &RaceOutput, simultaneous: bool) {
        let is_silent = *output == RaceOutput::Timeout(None);
        assert!(is_silent || !self.is_finished, "output after the end");
        count(output);
        match output {
            RaceOutput::Start { id, .. } => {
                assert_eq!(id.0, self.starts);
                self.starts += 1;
                let is_late_enough =
                    self.last_start.is_none_or(|last| now - last >= ATTEMPT_DELAY_FLOOR);
                assert!(is_late_enough || simultaneous, "two starts are too close");
                self.last_start = Some(now);
            }
            RaceOutput::Usable(_) | RaceOutput::Failed(_) => {
                self.verdicts += 1;
                assert_eq!(self.verdicts, 1, "a second winner or failure");
            }
            RaceOutput::Better(_) => assert_eq!(self.verdicts, 1),
            RaceOutput::Finished => {
                assert_eq!(self.verdicts, 1);
                self.is_finished = true;
            }
            RaceOutput::Timeout(Some(next)) => assert!(*next > now),
            _ => {}
        }
    }
}

fuzz_target!(|run: Run| {
    REACH.begin();
    let mut race = TraceRecorder::new(run.setup(), NOW);
    let mut checker = Checker::default();
    let mut now = NOW;
    let mut drain = |race: &mut TraceRecorder, now: Duration| loop {
        let output = race.poll_output(now);
        checker.check(now, &output, run.simultaneous);
        if let RaceOutput::Timeout(next) = output {
            // All due decisions have been made: polling again changes nothing.
            let mut clone = race.race().clone();
            clone.handle_input(now, RaceInput::Tick);
            assert_eq!(clone.poll_output(now), output, "a decision was due");
            return next;
        }
    };
    for event in run.events.iter().take(MAX_EVENTS) {
        if let Event::Wait { ms: wait } = event {
            now += ms(*wait);
        }
        if let Event::Ready { id, fell_back: true, .. } = event {
            race.handle_input(now, RaceInput::FellBack { id: AttemptId((*id).into()) });
        }
        if let Event::Ready { id, long_hello_failed: true, .. } = event {
            let detail = "simulated".to_owned();
            race.handle_input(
                now,
                RaceInput::LongHelloFailed { id: AttemptId((*id).into()), detail },
            );
        }
        match input(event) {
            Some(input) => race.handle_input(now, input),
            None => {
                drain(&mut race, now);
            }
        }
    }
    // Without further input, every race ends by itself.
    while let Some(next) = drain(&mut race, now) {
        now = next;
    }
    assert!(race.race().is_over(), "the race does not end");
    RaceReport::from_trace(race.trace()).expect("a race replays");
    replay(race.trace()).expect("a race replays");
});
