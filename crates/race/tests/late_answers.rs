//! From DNS to attempts: answers that arrive during a race.

use std::net::IpAddr;
use std::time::Duration;

use eyas_race::candidate::Transport;
use eyas_race::dns::{DnsAnswer, DnsQuery, DnsRecords, HttpsRecord, RecordType};
use eyas_race::evidence::NetworkId;
use eyas_race::io::{NetworkView, RaceInput, RaceOutput, SourceAddress};
use eyas_race::memory::MemoryView;
use eyas_race::policy::Policy;
use eyas_race::race::{Race, RaceSetup};
use eyas_race::target::{Target, TargetHost};

/// A race to `https://example.com/` on a dual-stack network, whose attempts are all silent.
struct Scene {
    race: Race,
    now: Duration,
    queries: Vec<DnsQuery>,
    starts: Vec<String>,
}

impl Scene {
    fn new(policy: Policy) -> Self {
        let source = |address: &str, prefix_len| SourceAddress {
            address: address.parse().unwrap(),
            prefix_len,
            deprecated: false,
            routed: true,
        };
        let network = NetworkView {
            id: NetworkId("home".into()),
            sources: vec![source("2001:db8:ffff::9", 64), source("198.51.100.9", 24)],
            pref64: vec![],
            lacking: vec![],
        };
        let target = Target::https(TargetHost::parse("example.com").unwrap(), 443);
        let setup = RaceSetup { target, policy, view: MemoryView::empty(), network, seed: 1 };
        let now = Duration::ZERO;
        let race = Race::new(setup, now);
        let mut scene = Self { race, now, queries: vec![], starts: vec![] };
        scene.drain();
        scene
    }

    /// Polls until there is no more output, and returns the timeout.
    fn drain(&mut self) -> Option<Duration> {
        loop {
            match self.race.poll_output(self.now) {
                RaceOutput::Query(query) => self.queries.push(query),
                RaceOutput::Start { candidate, .. } => self.starts.push(format!(
                    "{} {} {}",
                    self.now.as_millis(),
                    candidate.transport,
                    candidate.address
                )),
                RaceOutput::Timeout(at) => return at,
                _ => {}
            }
        }
    }

    /// Lets time pass.
    fn until(&mut self, milliseconds: u64) {
        let end = Duration::from_millis(milliseconds);
        while let Some(at) = self.drain().filter(|at| *at <= end) {
            self.now = at;
            self.race.handle_input(at, RaceInput::Tick);
        }
        self.now = end;
        self.race.handle_input(end, RaceInput::Tick);
        self.drain();
    }

    fn answer(&mut self, records: DnsRecords) {
        let record_type = match records {
            DnsRecords::Https(_) => RecordType::Https,
            DnsRecords::Aaaa(_) => RecordType::Aaaa,
            DnsRecords::A(_) => RecordType::A,
        };
        let of_type = |query: &DnsQuery| query.record_type == record_type;
        let at = self.queries.iter().position(of_type).expect("it was queried");
        let id = self.queries.remove(at).id;
        let answer = DnsAnswer { id, records: Ok(records), protected: false, expired: false };
        self.race.handle_input(self.now, RaceInput::Answer(answer));
        self.drain();
    }

    /// The attempts started since the last call.
    fn started(&mut self) -> Vec<String> {
        std::mem::take(&mut self.starts)
    }
}

fn addresses(list: &[&str]) -> DnsRecords {
    let parsed: Vec<IpAddr> = list.iter().map(|address| address.parse().unwrap()).collect();
    let v6 = |ip: &IpAddr| if let IpAddr::V6(ip) = ip { Some(*ip) } else { None };
    let v4 = |ip: &IpAddr| if let IpAddr::V4(ip) = ip { Some(*ip) } else { None };
    match parsed[0] {
        IpAddr::V6(_) => DnsRecords::Aaaa(parsed.iter().filter_map(v6).collect()),
        IpAddr::V4(_) => DnsRecords::A(parsed.iter().filter_map(v4).collect()),
    }
}

/// The policy that these tests assume.
fn of_first_tries() -> Policy {
    Policy {
        head_start: Duration::from_millis(50),
        grace: Duration::ZERO,
        second_tries: 0,
        ..Policy::default()
    }
}

fn tcp_only() -> Policy {
    Policy { transports: vec![Transport::Tcp], ..of_first_tries() }
}

//= hev3 §4.3
//# late endpoints are added while attempts run
/// HEv3 §7: with one IPv6 attempt in progress, IPv4 that arrives late is next, ahead of the
/// remaining IPv6 addresses.
///
/// ```text
///   0 ms  HTTPS (none), AAAA (3 addresses)
/// 100 ms  A
/// ```
#[test]
fn late_ipv4_is_tried_next() {
    let mut scene = Scene::new(tcp_only());
    scene.answer(DnsRecords::Https(vec![]));
    scene.answer(addresses(&["2001:db8::1", "2001:db8::2", "2001:db8::3"]));
    scene.until(100);
    scene.answer(addresses(&["192.0.2.1"]));
    scene.until(800);
    assert_eq!(
        scene.started(),
        [
            "0 tcp [2001:db8::1]:443",
            "250 tcp 192.0.2.1:443",
            "500 tcp [2001:db8::2]:443",
            "750 tcp [2001:db8::3]:443",
        ]
    );
}

//= hev3 §7
//# when answers change, running attempts go on, and untried endpoints that are gone are removed
/// A record that arrives after the Resolution Delay applies to candidates that have not been
/// started: another port, and no HTTP/3. Attempts in progress continue.
///
/// ```text
///   0 ms  AAAA, A              start after the Resolution Delay
/// 120 ms  HTTPS 1 . alpn=h2 port=8443
/// ```
#[test]
fn a_late_record_applies_to_the_remaining_candidates() {
    let mut scene = Scene::new(of_first_tries());
    scene.answer(addresses(&["2001:db8::1"]));
    scene.answer(addresses(&["192.0.2.1"]));
    scene.until(120);
    assert_eq!(scene.started(), ["50 quic [2001:db8::1]:443", "100 tcp [2001:db8::1]:443"]);
    scene.answer(DnsRecords::Https(vec![HttpsRecord {
        priority: 1,
        alpn: vec!["h2".into()],
        port: Some(8443),
        ..HttpsRecord::default()
    }]));
    scene.until(1500);
    let started = scene.started();
    let what: Vec<&str> = started.iter().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    assert_eq!(what, ["tcp [2001:db8::1]:8443", "tcp 192.0.2.1:8443", "tcp 192.0.2.1:443"]);
}

//= hev3 §7
//# an endpoint from a hint goes when the answers have others
/// Hints start a race at once; an address that replaces a hint is tried instead of it.
///
/// ```text
///   0 ms  HTTPS 1 . alpn=h2 ipv6hint=2001:db8::1 ipv4hint=192.0.2.66
/// 100 ms  AAAA 2001:db8::1, A 192.0.2.1
/// ```
#[test]
fn an_address_replaces_its_hint() {
    let mut scene = Scene::new(tcp_only());
    scene.answer(DnsRecords::Https(vec![HttpsRecord {
        priority: 1,
        alpn: vec!["h2".into()],
        ipv6_hint: vec!["2001:db8::1".parse().unwrap()],
        ipv4_hint: vec!["192.0.2.66".parse().unwrap()],
        ..HttpsRecord::default()
    }]));
    scene.until(100);
    scene.answer(addresses(&["2001:db8::1"]));
    scene.answer(addresses(&["192.0.2.1"]));
    scene.until(1500);
    assert_eq!(scene.started(), ["0 tcp [2001:db8::1]:443", "250 tcp 192.0.2.1:443"]);
}

//= rfc9460 §3
//# where records list only h3 and UDP is dropped, TCP is tried
/// RFC 9460 §3: packets to the service of the record are dropped, so the host is tried as if there
/// were none.
///
/// ```text
/// 0 ms  HTTPS (1 . alpn=h3 no-default-alpn), AAAA (none), A
/// ```
#[test]
fn where_the_record_lists_only_h3_and_udp_is_dropped_tcp_is_tried() {
    let mut scene = Scene::new(of_first_tries());
    scene.answer(DnsRecords::Https(vec![HttpsRecord {
        priority: 1,
        alpn: vec!["h3".into()],
        no_default_alpn: true,
        ..HttpsRecord::default()
    }]));
    scene.answer(addresses(&["192.0.2.1"]));
    scene.answer(DnsRecords::Aaaa(vec![]));
    scene.until(29_000);
    assert_eq!(scene.started(), ["0 quic 192.0.2.1:443", "250 tcp 192.0.2.1:443"]);
}
