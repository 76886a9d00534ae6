//! Random worlds and the decisions of a race in each of them, as text: `worlds FROM COUNT`.
//!
//! `cargo xtask differential` builds this one file against two revisions of the crate and compares
//! what they print, so all randomness derives from the number of the world, and only items that
//! both revisions have are used.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "this is a program beside the core: it reads its arguments and prints"
)]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::Write as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use eyas_race::candidate::{AddressFamily, Candidate, Security, Transport};
use eyas_race::dns::{DnsAnswer, DnsFailure, DnsQuery, DnsRecords, HttpsRecord, RecordType};
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause, NetworkId};
use eyas_race::io::{AttemptId, NetworkChange, NetworkView, RaceInput, RaceOutput, SourceAddress};
use eyas_race::memory::MemoryView;
use eyas_race::policy::{LoserPolicy, Policy};
use eyas_race::race::{Race, RaceSetup};
use eyas_race::target::{Target, TargetHost};

const NOW: Duration = Duration::from_secs(1_800_000_000);
/// A race with more steps than this spins, and is not compared further.
const MAX_STEPS: usize = 20_000;

const TRANSPORTS: [Transport; 5] =
    [Transport::Quic, Transport::Sctp, Transport::SctpUdp, Transport::Mptcp, Transport::Tcp];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Option<Vec<u64>> = arguments.iter().map(|word| word.parse().ok()).collect();
    let Some([from, count]) = numbers.as_deref() else {
        eprintln!("worlds FROM COUNT");
        return ExitCode::FAILURE;
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for number in *from..from.saturating_add(*count) {
        // The reader may close the pipe early.
        if out.write_all(World::new(number).decisions(number).as_bytes()).is_err() {
            return ExitCode::SUCCESS;
        }
    }
    ExitCode::SUCCESS
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Up to this many steps of 10 ms, so that much happens in one instant.
    fn time(&mut self, steps: u64) -> Duration {
        Duration::from_millis(10 * (1 + self.below(steps)))
    }
}

/// The outcome of an attempt at a candidate.
#[derive(Clone, Copy)]
enum Fate {
    Works(Duration),
    Silent,
    Stalls(Duration),
    Fails(FailureCause, Duration),
}

/// What DNS returns for the names of a world.
enum Kind {
    /// Addresses alone.
    Plain,
    /// HTTPS records of the host.
    Records,
    /// HTTPS records with hints, some beside empty answers.
    Hints,
    /// HTTPS records with ECH, which the caller relies on.
    Ech,
    /// A network with a NAT64, or a caller that uses only one family.
    Families,
}

struct World {
    dice: Dice,
    kind: Kind,
    setup: RaceSetup,
    records: Vec<HttpsRecord>,
    hosts: Vec<IpAddr>,
    delays: [Duration; 3],
    protected: bool,
    fates: BTreeMap<(Transport, SocketAddr), Fate>,
    events: Vec<(Duration, RaceInput)>,
}

impl World {
    fn new(number: u64) -> Self {
        let mut dice = Dice(number);
        let kind = match dice.below(8) {
            0..=3 => Kind::Plain,
            4 => Kind::Records,
            5 => Kind::Hints,
            6 => Kind::Ech,
            _ => Kind::Families,
        };
        let host_count = if dice.one_in(20) { 0 } else { dice.pick(&[1, 2, 4, 10]) };
        let hosts: Vec<IpAddr> = (0..host_count).map(|host| address(&mut dice, host)).collect();
        let setup = setup(&mut dice, &kind);
        let delays = [dice.time(30), dice.time(30), dice.time(30)];
        let protected = dice.one_in(2);
        let mut world = Self {
            kind,
            setup,
            records: Vec::new(),
            hosts,
            delays,
            protected,
            fates: BTreeMap::new(),
            events: Vec::new(),
            dice,
        };
        world.draw_records();
        world.draw_events();
        world
    }

    fn draw_records(&mut self) {
        if matches!(self.kind, Kind::Plain | Kind::Families) {
            return;
        }
        let has_hints = matches!(self.kind, Kind::Hints);
        for priority in 0..self.dice.below(3) {
            let dice = &mut self.dice;
            let hints = if has_hints { dice.below(3) } else { 0 };
            let mut record = HttpsRecord {
                priority: 1 + priority as u16,
                alpn: dice
                    .pick(&[&["h3"][..], &["h2"], &["h3", "h2"], &[]])
                    .iter()
                    .map(|one| (*one).into())
                    .collect(),
                no_default_alpn: dice.one_in(2),
                port: dice.one_in(4).then_some(8443),
                ..HttpsRecord::default()
            };
            record.no_default_alpn &= !record.alpn.is_empty();
            record.ech = (matches!(self.kind, Kind::Ech) && !dice.one_in(3)).then(|| vec![1, 2, 3]);
            for host in 0..hints {
                match address(dice, 20 + host) {
                    IpAddr::V4(ip) => record.ipv4_hint.push(ip),
                    IpAddr::V6(ip) => record.ipv6_hint.push(ip),
                }
            }
            self.records.push(record);
        }
    }

    fn draw_events(&mut self) {
        if self.dice.one_in(6) {
            self.events.push((NOW + self.dice.time(300), RaceInput::Cancel));
        }
        if self.dice.one_in(6) {
            let change = NetworkChange {
                network: network(&mut self.dice, "cafe"),
                view: MemoryView::empty(),
            };
            self.events
                .push((NOW + self.dice.time(300), RaceInput::NetworkChanged(Box::new(change))));
        }
        if self.dice.one_in(8) {
            let slots = self.dice.below(4) as usize;
            self.events.push((NOW + Duration::from_millis(1), RaceInput::Slots(slots)));
            self.events.push((NOW + self.dice.time(300), RaceInput::Slots(slots + 2)));
        }
    }

    /// Returns the outcome of this candidate, which is the same whenever it is tried.
    fn fate(&mut self, candidate: &Candidate) -> Fate {
        let key = (candidate.transport, candidate.address);
        if let Some(fate) = self.fates.get(&key) {
            return *fate;
        }
        // Depends only on the candidate and the world, since the order of starting may differ.
        let ip = match candidate.address.ip() {
            IpAddr::V4(ip) => u64::from(u32::from(ip)),
            IpAddr::V6(ip) => u128::from(ip) as u64 ^ 0x6,
        };
        let rank = TRANSPORTS.iter().position(|one| *one == candidate.transport).unwrap_or(9);
        let port = u64::from(candidate.address.port());
        let mut dice =
            Dice(self.setup.seed ^ ip.rotate_left(20) ^ (rank as u64) << 50 ^ port << 30);
        let fate = match dice.below(8) {
            0 | 1 => Fate::Works(dice.time(40)),
            2..=4 => Fate::Silent,
            5 => Fate::Stalls(dice.time(40)),
            _ => {
                let causes = [
                    FailureCause::Refused,
                    FailureCause::Refused,
                    FailureCause::Unreachable,
                    FailureCause::Reset,
                    FailureCause::Tls,
                ];
                Fate::Fails(dice.pick(&causes), dice.time(40))
            }
        };
        self.fates.insert(key, fate);
        fate
    }

    fn attempt(&mut self, now: Duration, id: AttemptId, candidate: &Candidate) {
        let answered =
            |rtt| RaceInput::Progress { id, level: EvidenceLevel::Answered, rtt: Some(rtt) };
        match self.fate(candidate) {
            Fate::Works(rtt) => {
                self.events.push((now + rtt, answered(rtt)));
                if !candidate.transport.waits_when_answered() {
                    self.complete(now + 2 * rtt, id, rtt);
                }
            }
            Fate::Silent => {}
            Fate::Stalls(rtt) => self.events.push((now + rtt, answered(rtt))),
            Fate::Fails(cause, after) => {
                let failure = AttemptFailure::new(cause, EvidenceLevel::Started, "");
                self.events.push((now + after, RaceInput::Failed { id, failure }));
            }
        }
    }

    fn complete(&mut self, at: Duration, id: AttemptId, rtt: Duration) {
        let ready = RaceInput::Ready { id, alpn: None, rtt: Some(rtt) };
        self.events.push((at, ready));
        let first_byte = RaceInput::Progress { id, level: EvidenceLevel::FirstByte, rtt: None };
        if !self.setup.seed.is_multiple_of(3) {
            self.events.push((at + rtt, first_byte));
        }
    }

    fn answer(&self, query: &DnsQuery) -> RaceInput {
        let records = match query.record_type {
            RecordType::Https if self.records.is_empty() => Err(DnsFailure::NoData),
            RecordType::Https => Ok(DnsRecords::Https(self.records.clone())),
            RecordType::Aaaa => Ok(DnsRecords::Aaaa(self.hosts.iter().filter_map(v6).collect())),
            RecordType::A => Ok(DnsRecords::A(self.hosts.iter().filter_map(v4).collect())),
        };
        RaceInput::Answer(DnsAnswer {
            id: query.id,
            records,
            protected: self.protected,
            expired: false,
        })
    }

    /// Returns the decisions of the race, one per line, after the number and the properties of the
    /// world.
    fn decisions(mut self, number: u64) -> String {
        let kind = match self.kind {
            Kind::Plain => "plain",
            Kind::Records => "records",
            Kind::Hints => "hints",
            Kind::Ech => "ech",
            Kind::Families => "families",
        };
        let Policy { max_in_flight, exhaustive, win_at, .. } = self.setup.policy;
        let mut text = format!(
            "world {number} {kind} max_in_flight={max_in_flight} exhaustive={exhaustive} win_at={win_at:?}\n"
        );
        let mut race = Race::new(self.setup.clone(), NOW);
        let (mut now, mut planned) = (NOW, String::new());
        for _ in 0..MAX_STEPS {
            let output = race.poll_output(now);
            let since = (now - NOW).as_millis();
            match &output {
                RaceOutput::Timeout(next) => {
                    let plan = plan(&race);
                    if plan != planned {
                        _ = writeln!(text, "{since} plan{plan}");
                        planned = plan;
                    }
                    let event = self.events.iter().map(|(at, _)| *at).min();
                    let Some(next) = next.iter().copied().chain(event).min() else { return text };
                    now = now.max(next);
                    let events = std::mem::take(&mut self.events);
                    let (due, rest): (Vec<_>, Vec<_>) =
                        events.into_iter().partition(|(at, _)| *at <= now);
                    self.events = rest;
                    due.into_iter().for_each(|(_, input)| race.handle_input(now, input));
                    continue;
                }
                RaceOutput::Query(query) => {
                    let delay = self.delays[query.record_type as usize];
                    let answer = self.answer(query);
                    self.events.push((now + delay, answer));
                }
                RaceOutput::Start { id, candidate, .. } => self.attempt(now, *id, candidate),
                RaceOutput::Proceed { id } => {
                    let candidate = race.attempt(*id).map(|attempt| attempt.candidate.clone());
                    if let Some(Fate::Works(rtt)) = candidate.map(|candidate| self.fate(&candidate))
                    {
                        self.complete(now + rtt, *id, rtt);
                    }
                }
                RaceOutput::Close { id, .. } => {
                    self.events.retain(|(_, input)| attempt_of(input) != Some(*id));
                }
                _ => {}
            }
            if let Some(line) = line(&output) {
                _ = writeln!(text, "{since} {line}");
            }
        }
        text + "spins\n"
    }
}

fn setup(dice: &mut Dice, kind: &Kind) -> RaceSetup {
    let mut transports: Vec<Transport> =
        TRANSPORTS.into_iter().filter(|_| !dice.one_in(3)).collect();
    if transports.is_empty() || dice.one_in(2) {
        transports = vec![Transport::Quic, Transport::Tcp];
    }
    let host = TargetHost::Name("a.test".into());
    let security = dice.pick(&[Security::Tls, Security::None]);
    let target = match kind {
        Kind::Plain | Kind::Families => Target::plain(host, 443, transports.clone(), security),
        _ => Target::https(host, 443),
    };
    let policy = Policy {
        transports,
        simultaneous: dice.one_in(8),
        late_switch: !dice.one_in(4),
        exhaustive: dice.one_in(6),
        // Set explicitly, so that a change of the default does not make every world differ.
        head_start: 50_u64.ms(),
        grace: dice.pick(&[0, 0, 100, 300]).ms(),
        win_at: dice.pick(&[
            EvidenceLevel::Security,
            EvidenceLevel::Security,
            EvidenceLevel::Answered,
            EvidenceLevel::FirstByte,
        ]),
        losers: if dice.one_in(4) {
            LoserPolicy::Finish(dice.time(300))
        } else {
            LoserPolicy::Cancel
        },
        max_in_flight: dice.pick(&[8, 8, 2, 20]),
        second_tries: dice.pick(&[0, 0, 3]),
        only_family: match kind {
            Kind::Families => dice.pick(&[None, Some(AddressFamily::V4), Some(AddressFamily::V6)]),
            _ => None,
        },
        rely_on_ech: matches!(kind, Kind::Ech),
        ..Policy::default()
    };
    let mut network = network(dice, "home");
    if matches!(kind, Kind::Families) && !dice.one_in(3) {
        network.pref64 = vec![(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96)];
    }
    RaceSetup { target, policy, view: MemoryView::empty(), network, seed: dice.draw() }
}

trait Milliseconds {
    fn ms(self) -> Duration;
}

impl Milliseconds for u64 {
    fn ms(self) -> Duration {
        Duration::from_millis(self)
    }
}

fn network(dice: &mut Dice, name: &str) -> NetworkView {
    let source = |address: IpAddr| SourceAddress {
        address,
        prefix_len: 24,
        deprecated: false,
        routed: true,
    };
    let families = dice.pick(&[3, 3, 3, 1, 2]);
    let mut sources = Vec::new();
    if families & 1 != 0 {
        sources.push(source(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x99).into()));
    }
    if families & 2 != 0 {
        sources.push(source(Ipv4Addr::new(198, 51, 100, 9).into()));
    }
    NetworkView { id: NetworkId(name.into()), sources, pref64: Vec::new(), lacking: Vec::new() }
}

fn address(dice: &mut Dice, host: u64) -> IpAddr {
    if dice.one_in(2) {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1 + host as u16).into()
    } else {
        Ipv4Addr::new(192, 0, 2, 1 + host as u8).into()
    }
}

fn v6(ip: &IpAddr) -> Option<Ipv6Addr> {
    match ip {
        IpAddr::V6(ip) => Some(*ip),
        IpAddr::V4(_) => None,
    }
}

fn v4(ip: &IpAddr) -> Option<Ipv4Addr> {
    match ip {
        IpAddr::V4(ip) => Some(*ip),
        IpAddr::V6(_) => None,
    }
}

fn attempt_of(input: &RaceInput) -> Option<AttemptId> {
    match input {
        RaceInput::Progress { id, .. }
        | RaceInput::Ready { id, .. }
        | RaceInput::Failed { id, .. } => Some(*id),
        _ => None,
    }
}

fn describe(candidate: &Candidate) -> String {
    let ech = if candidate.ech.is_some() { "+ech" } else { "" };
    format!("{}{ech}@{}", candidate.transport, candidate.address)
}

fn plan(race: &Race) -> String {
    let mut text = String::new();
    for entry in &race.plan().entries {
        _ = write!(text, " {}+{}", describe(&entry.candidate), entry.delay.as_millis());
    }
    text
}

fn line(output: &RaceOutput) -> Option<String> {
    Some(match output {
        RaceOutput::Query(query) => format!("ask {:?} {}", query.record_type, query.name),
        RaceOutput::Start { id, candidate, background, .. } => {
            let background = if *background { " background" } else { "" };
            format!("start {} {}{background}", id.0, describe(candidate))
        }
        RaceOutput::Proceed { id } => format!("proceed {}", id.0),
        RaceOutput::Close { id, why } => format!("close {} {why:?}", id.0),
        RaceOutput::Usable(id) => format!("usable {}", id.0),
        RaceOutput::Better(id) => format!("better {}", id.0),
        RaceOutput::Learn(evidence) => {
            let failure = evidence.failure.as_ref().map_or("good", |failure| failure.cause.name());
            let describe = describe(&evidence.candidate);
            format!("learn {describe} {failure} {:?} {:?}", evidence.level, evidence.doubt)
        }
        RaceOutput::Failed(failure) => {
            let text = format!("{failure:?}");
            format!("failed {}", text.split(['(', '[']).next().unwrap_or_default())
        }
        RaceOutput::Finished => "finished".into(),
        _ => return None,
    })
}
