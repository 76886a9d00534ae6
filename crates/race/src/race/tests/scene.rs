//! The notation of the tests. A [`Scene`] is a race whose DNS has answered; the test specifies what
//! the attempts do, and reads the outputs of the race as lines such as `50 start 1 tcp 192.0.2.1`:
//! milliseconds, then the output.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use crate::candidate::{Candidate, Security, Transport};
use crate::dns::{DnsAnswer, DnsFailure, DnsQuery, DnsRecords, RecordType};
use crate::evidence::{AttemptFailure, Evidence, EvidenceLevel, FailureCause, NetworkId};
use crate::io::{AttemptId, NetworkChange, NetworkView, RaceInput, RaceOutput, SourceAddress};
use crate::memory::MemoryView;
use crate::policy::Policy;
use crate::race::{Race, RaceSetup};
use crate::target::{Target, TargetHost};

pub(super) const EPOCH: Duration = Duration::from_hours(500_000);
pub(super) const V4: &str = "192.0.2.1";
pub(super) const V6: &str = "2001:db8::1";

pub(super) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(super) fn network(name: &str) -> NetworkView {
    let source = |address: &str, prefix_len| SourceAddress {
        address: address.parse().unwrap(),
        prefix_len,
        deprecated: false,
        routed: true,
    };
    NetworkView {
        id: NetworkId(name.into()),
        sources: vec![source("2001:db8::99", 64), source("198.51.100.9", 24)],
        pref64: Vec::new(),
        lacking: Vec::new(),
    }
}

pub(super) fn target() -> Target {
    let transports = vec![Transport::Quic, Transport::Tcp];
    Target::plain(TargetHost::Name("a.test".into()), 443, transports, Security::Tls)
}

/// A candidate at this address, port 443, with TLS.
pub(super) fn candidate(transport: Transport, address: &str) -> Candidate {
    Candidate::under_tls(transport, SocketAddr::new(address.parse().unwrap(), 443))
}

/// Evidence that this transport to the target has just worked at home.
pub(super) fn good(transport: Transport) -> Evidence {
    Evidence {
        at: EPOCH,
        network: NetworkId("home".into()),
        host: target().host,
        candidate: candidate(transport, V4),
        level: EvidenceLevel::Security,
        failure: None,
        doubt: None,
        rtt: None,
        sent_again: None,
    }
}

pub(super) fn setup(policy: Policy) -> RaceSetup {
    RaceSetup {
        target: target(),
        policy,
        view: MemoryView::empty(),
        network: network("home"),
        seed: 1,
    }
}

/// A race in progress.
pub(super) struct Scene {
    pub(super) race: Race,
    now: Duration,
    queries: Vec<DnsQuery>,
    answered: Vec<DnsQuery>,
}

impl Scene {
    /// A race without a memory to these addresses.
    pub(super) fn new(addresses: &[&str], policy: Policy) -> Self {
        Self::with(setup(policy), addresses)
    }

    /// A race whose DNS answers at once.
    pub(super) fn with(setup: RaceSetup, addresses: &[&str]) -> Self {
        let mut scene = Self::unanswered(setup);
        scene.answer(addresses);
        scene
    }

    /// A race whose DNS has not answered.
    pub(super) fn unanswered(setup: RaceSetup) -> Self {
        let mut scene = Self::created(Race::new(setup, EPOCH), EPOCH);
        assert_eq!(scene.until(0), Vec::<String>::new());
        scene
    }

    /// A race that was created at another time than the epoch.
    pub(super) fn resumed(race: Race, now: Duration) -> Self {
        let mut scene = Self::created(race, now);
        while let RaceOutput::Query(query) = scene.race.poll_output(now) {
            scene.queries.push(query);
        }
        scene
    }

    fn created(race: Race, now: Duration) -> Self {
        Self { race, now, queries: Vec::new(), answered: Vec::new() }
    }

    /// The transports in the order of starting, if the first attempt completes after 30 ms.
    pub(super) fn starts_of_a_race_over_tcp(&mut self) -> Vec<String> {
        let passed = self.now - EPOCH;
        let at = |after: u64| u64::try_from(passed.as_millis()).unwrap() + after;
        let mut lines = self.until(at(30));
        self.ready(0);
        lines.extend(self.until(at(1_000)));
        let starts = lines.iter().filter(|line| line.contains(" start "));
        starts.map(|line| line.split(' ').nth(3).unwrap().to_owned()).collect()
    }

    /// Answers all queries, with these addresses or with none.
    pub(super) fn answer(&mut self, addresses: &[&str]) {
        for query in core::mem::take(&mut self.queries) {
            self.answer_one(&query, addresses);
            self.answered.push(query);
        }
    }

    /// Answers the queries of one type again, with other addresses.
    pub(super) fn answer_again(&mut self, record_type: RecordType, addresses: &[&str]) {
        let answered = self.answered.clone();
        for query in answered.iter().filter(|query| query.record_type == record_type) {
            self.answer_one(query, addresses);
        }
    }

    /// Answers the queries of one type with addresses whose time to live is over; they stay open.
    pub(super) fn answer_expired(&mut self, record_type: RecordType, addresses: &[&str]) {
        for query in self.queries.clone() {
            if query.record_type == record_type {
                let expired =
                    DnsAnswer { expired: true, ..answer(&query, records(&query, addresses)) };
                self.input(RaceInput::Answer(expired));
            }
        }
    }

    /// Fails the queries of one type.
    pub(super) fn fail_queries(&mut self, record_type: RecordType, failure: DnsFailure) {
        for query in self.queries.clone() {
            if query.record_type == record_type {
                self.input(RaceInput::Answer(answer(&query, Err(failure.clone()))));
            }
        }
        self.queries.retain(|query| query.record_type != record_type);
    }

    fn answer_one(&mut self, query: &DnsQuery, addresses: &[&str]) {
        self.input(RaceInput::Answer(answer(query, records(query, addresses))));
    }

    /// Answers the queries of one type.
    pub(super) fn answer_only(&mut self, record_type: RecordType, addresses: &[&str]) {
        let (asked, rest) = core::mem::take(&mut self.queries)
            .into_iter()
            .partition(|q| q.record_type == record_type);
        self.queries = asked;
        self.answer(addresses);
        self.queries = rest;
    }

    /// The next output of the race at this time.
    pub(super) fn output(&mut self) -> RaceOutput {
        self.race.poll_output(self.now)
    }

    pub(super) fn input(&mut self, input: RaceInput) {
        self.race.handle_input(self.now, input);
    }

    pub(super) fn answered(&mut self, id: u32) {
        self.reaches(id, EvidenceLevel::Answered, Some(ms(20)));
    }

    pub(super) fn reaches(&mut self, id: u32, level: EvidenceLevel, rtt: Option<Duration>) {
        self.input(RaceInput::Progress { id: AttemptId(id), level, rtt });
    }

    pub(super) fn ready(&mut self, id: u32) {
        let rtt = Some(ms(20));
        self.input(RaceInput::Ready { id: AttemptId(id), alpn: None, rtt });
    }

    pub(super) fn fails(&mut self, id: u32, cause: FailureCause) {
        let failure = AttemptFailure::new(cause, EvidenceLevel::Started, "simulated failure");
        self.input(RaceInput::Failed { id: AttemptId(id), failure });
    }

    pub(super) fn moves_to(&mut self, name: &str) {
        let change = NetworkChange { network: network(name), view: MemoryView::empty() };
        self.input(RaceInput::NetworkChanged(Box::new(change)));
    }

    /// The outputs of the race until this time in milliseconds, inclusive.
    pub(super) fn until(&mut self, milliseconds: u64) -> Vec<String> {
        let end = EPOCH + ms(milliseconds);
        let mut lines = Vec::new();
        loop {
            match self.race.poll_output(self.now) {
                RaceOutput::Timeout(Some(next)) if next <= end => {
                    assert!(next > self.now, "the race asks to be woken in the past");
                    self.now = next;
                }
                RaceOutput::Timeout(_) => {
                    self.now = end;
                    // Time has passed; the race must not depend on being polled at each timeout.
                    assert!(matches!(self.race.poll_output(end), RaceOutput::Timeout(_)));
                    return lines;
                }
                RaceOutput::Query(query) => self.queries.push(query),
                output => {
                    lines.push(format!("{} {}", (self.now - EPOCH).as_millis(), line(&output)))
                }
            }
        }
    }
}

fn answer(query: &DnsQuery, records: Result<DnsRecords, DnsFailure>) -> DnsAnswer {
    DnsAnswer { id: query.id, records, protected: false, expired: false }
}

fn records(query: &DnsQuery, addresses: &[&str]) -> Result<DnsRecords, DnsFailure> {
    let addresses = addresses.iter().map(|text| text.parse::<IpAddr>().unwrap());
    let v6 = addresses.clone().filter_map(|ip| match ip {
        IpAddr::V6(ip) => Some(ip),
        IpAddr::V4(_) => None,
    });
    let v4 = addresses.filter_map(|ip| match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    });
    let records = match query.record_type {
        RecordType::Https => return Err(DnsFailure::NoData),
        RecordType::Aaaa => DnsRecords::Aaaa(v6.collect()),
        RecordType::A => DnsRecords::A(v4.collect()),
    };
    match &records {
        DnsRecords::Aaaa(list) if list.is_empty() => Err(DnsFailure::NoData),
        DnsRecords::A(list) if list.is_empty() => Err(DnsFailure::NoData),
        _ => Ok(records),
    }
}

/// One output as a line.
pub(super) fn line(output: &RaceOutput) -> String {
    match output {
        RaceOutput::Query(query) => format!("ask {:?} {}", query.record_type, query.name),
        RaceOutput::Start { id, candidate, background, .. } => {
            let ip = candidate.address.ip();
            let background = if *background { " background" } else { "" };
            format!("start {} {} {ip}{background}", id.0, candidate.transport)
        }
        RaceOutput::Proceed { id } => format!("proceed {}", id.0),
        RaceOutput::Close { id, why } => format!("close {} {why:?}", id.0),
        RaceOutput::Usable(id) => format!("usable {}", id.0),
        RaceOutput::Better(id) => format!("better {}", id.0),
        RaceOutput::Learn(evidence) => {
            let outcome = match &evidence.failure {
                Some(failure) => format!("{} at", failure.cause),
                None => "good at".to_owned(),
            };
            format!("learn {} {outcome} {:?}", evidence.candidate.transport, evidence.level)
        }
        RaceOutput::Failed(failure) => format!("failed {failure:?}"),
        RaceOutput::Finished => "finished".to_owned(),
        RaceOutput::Timeout(_) => "wait".to_owned(),
    }
}
