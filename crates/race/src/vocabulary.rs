//! The notation of the tests of resolution and planning: the lines of a zone, and a [`TestedResolution`] of
//! answers and waits.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::{net::IpAddr, time::Duration};

use crate::dns::{DnsAnswer, DnsFailure, DnsQuery, DnsRecords, HttpsRecord, RecordType};
use crate::evidence::NetworkId;
use crate::io::{NetworkView, SourceAddress};
use crate::memory::MemoryView;
use crate::plan::{Plan, PlanRequest, plan};
use crate::policy::Policy;
use crate::resolve::RaceResolution;
use crate::target::{Target, TargetHost};

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn network(sources: &[(&str, u8)]) -> NetworkView {
    let sources = sources
        .iter()
        .map(|(address, prefix_len)| SourceAddress {
            address: ip(address),
            prefix_len: *prefix_len,
            deprecated: false,
            routed: true,
        })
        .collect();
    NetworkView { id: NetworkId("test".into()), sources, pref64: vec![], lacking: vec![] }
}

pub(crate) fn dual_stack() -> NetworkView {
    network(&[("2001:db8:ffff::9", 64), ("198.51.100.9", 24)])
}

pub(crate) fn ipv6_only() -> NetworkView {
    network(&[("2001:db8:ffff::9", 64)])
}

pub(crate) fn ipv4_only() -> NetworkView {
    network(&[("198.51.100.9", 24)])
}

pub(crate) fn nat64() -> NetworkView {
    NetworkView { pref64: vec![crate::nat64::WELL_KNOWN_PREFIX], ..ipv6_only() }
}

pub(crate) fn https(host: &str, port: u16) -> Target {
    Target::https(TargetHost::parse(host).unwrap(), port)
}

/// Parses a zone line without TTL and class: `example.com HTTPS 1 . alpn=h3,h2 port=8443`. `-` in
/// place of the data is an answer without records.
fn line(text: &str) -> (String, RecordType, &str) {
    let mut parts = text.splitn(3, ' ');
    let name = parts.next().unwrap().to_string();
    let record_type = match parts.next().unwrap() {
        "HTTPS" => RecordType::Https,
        "AAAA" => RecordType::Aaaa,
        "A" => RecordType::A,
        other => panic!("no record type: {other}"),
    };
    (name, record_type, parts.next().unwrap().trim())
}

fn list<T: core::str::FromStr<Err: core::fmt::Debug>>(text: &str) -> Vec<T> {
    text.split(',').map(|item| item.parse().unwrap()).collect()
}

/// Parses the data of an HTTPS record in presentation form.
pub(crate) fn https_record(data: &str) -> HttpsRecord {
    let mut parts = data.split_whitespace();
    let priority = parts.next().unwrap().parse().unwrap();
    let target = parts.next().unwrap().trim_end_matches('.').to_string();
    let mut record = HttpsRecord { priority, target, ..HttpsRecord::default() };
    for param in parts {
        let (key, value) = param.split_once('=').unwrap_or((param, ""));
        match key {
            "alpn" => record.alpn = list(value),
            "no-default-alpn" => record.no_default_alpn = true,
            "port" => record.port = Some(value.parse().unwrap()),
            "ipv4hint" => record.ipv4_hint = list(value),
            "ipv6hint" => record.ipv6_hint = list(value),
            "ech" => record.ech = Some(value.as_bytes().to_vec()),
            "mandatory" => record.mandatory = list(value),
            key => record.unknown_keys.push(key.strip_prefix("key").unwrap().parse().unwrap()),
        }
    }
    record
}

/// Returns the answer that consists of these lines of one name and type.
pub(crate) fn records(lines: &[&str]) -> (String, RecordType, DnsRecords) {
    let (name, record_type, _) = line(lines[0]);
    let data = lines.iter().map(|text| line(text).2).filter(|data| *data != "-");
    let records = match record_type {
        RecordType::Https => DnsRecords::Https(data.map(https_record).collect()),
        RecordType::Aaaa => DnsRecords::Aaaa(data.map(|data| data.parse().unwrap()).collect()),
        RecordType::A => DnsRecords::A(data.map(|data| data.parse().unwrap()).collect()),
    };
    (name, record_type, records)
}

/// A resolution under test: its queries, the answers, and when it moves on.
pub(crate) struct TestedResolution {
    pub(crate) resolution: RaceResolution,
    pub(crate) target: Target,
    pub(crate) network: NetworkView,
    pub(crate) policy: Policy,
    pub(crate) seed: u64,
    pub(crate) view: MemoryView,
    pub(crate) now: Duration,
    queries: Vec<DnsQuery>,
    /// How many of them [`TestedResolution::asks`] has checked.
    checked: usize,
    protected: bool,
}

impl TestedResolution {
    /// Creates a resolution for `https://example.com/` on this network.
    pub(crate) fn for_network(network: NetworkView) -> Self {
        Self::new(https("example.com", 443), network, Policy::default(), 7)
    }

    pub(crate) fn new(target: Target, network: NetworkView, policy: Policy, seed: u64) -> Self {
        let now = Duration::ZERO;
        let resolution = RaceResolution::new(&target, &network, &policy, seed, now);
        let view = MemoryView::empty();
        Self {
            resolution,
            target,
            network,
            policy,
            seed,
            view,
            now,
            queries: vec![],
            checked: 0,
            protected: false,
        }
    }

    /// From now on, answers arrive over protected DNS.
    pub(crate) fn protected(mut self) -> Self {
        self.protected = true;
        self
    }

    /// From now on, answers arrive over unprotected DNS.
    pub(crate) fn unprotected(mut self) -> Self {
        self.protected = false;
        self
    }

    /// Expects exactly these queries since the last check, in this order.
    pub(crate) fn asks(mut self, expected: &[&str]) -> Self {
        self.poll();
        let queries: Vec<String> = self.queries[self.checked..]
            .iter()
            .map(|query| {
                let record_type = format!("{:?}", query.record_type).to_uppercase();
                format!("{} {record_type}", query.name)
            })
            .collect();
        assert_eq!(queries, expected);
        self.checked = self.queries.len();
        self
    }

    fn poll(&mut self) {
        while let Some(query) = self.resolution.poll_query() {
            self.queries.push(query);
        }
    }

    pub(crate) fn wait_milliseconds(mut self, milliseconds: u64) -> Self {
        self.now += ms(milliseconds);
        self
    }

    fn pass_answer(
        &mut self,
        question: &str,
        outcome: Result<DnsRecords, DnsFailure>,
        expired: bool,
    ) {
        self.poll();
        let (name, record_type, _) = line(question);
        let query = self
            .queries
            .iter()
            .find(|query| query.name == name && query.record_type == record_type)
            .unwrap_or_else(|| panic!("{name} {record_type:?} was never queried"));
        let (id, protected) = (query.id, self.protected);
        self.resolution
            .handle_answer(self.now, DnsAnswer { id, records: outcome, protected, expired });
    }

    /// Answers with these lines, all of one name and type.
    pub(crate) fn answers(mut self, lines: &[&str]) -> Self {
        self.pass_answer(lines[0], Ok(records(lines).2), false);
        self
    }

    /// Answers with these lines, whose time to live is over.
    pub(crate) fn answers_expired(mut self, lines: &[&str]) -> Self {
        self.pass_answer(lines[0], Ok(records(lines).2), true);
        self
    }

    /// Fails a query: `fails("example.com AAAA -", …)`.
    pub(crate) fn fails(mut self, question: &str, failure: DnsFailure) -> Self {
        self.pass_answer(question, Err(failure), false);
        self
    }

    /// Fails a query with a failure whose time to live is over.
    pub(crate) fn fails_expired(mut self, question: &str, failure: DnsFailure) -> Self {
        self.pass_answer(question, Err(failure), true);
        self
    }

    /// Expects that nothing may start, with no known time at which it may.
    pub(crate) fn waits(self) -> Self {
        assert!(!self.resolution.may_move_on(self.now), "starts at {:?}", self.now);
        assert_eq!(self.resolution.next_timeout(), None);
        self
    }

    /// Expects that nothing may start before this number of milliseconds has passed.
    pub(crate) fn waits_for(self, milliseconds: u64) -> Self {
        assert!(!self.resolution.may_move_on(self.now), "starts at {:?}", self.now);
        assert_eq!(self.resolution.next_timeout(), Some(self.now + ms(milliseconds)));
        let just_before = self.now + ms(milliseconds) - Duration::from_nanos(1);
        assert!(!self.resolution.may_move_on(just_before));
        self
    }

    /// Expects that the race may run, and that its preferred transport uses these addresses in this
    /// order.
    pub(crate) fn starts_with(self, expected: &[&str]) -> Self {
        assert!(self.resolution.may_move_on(self.now), "still waits at {:?}", self.now);
        assert_eq!(addresses(&self.plan()), expected);
        self
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(&PlanRequest {
            target: &self.target,
            policy: &self.policy,
            services: &self.resolution.services(),
            notes: &self.resolution.notes(),
            view: &self.view,
            network: &self.network,
            seed: self.seed,
            now: self.now,
        })
    }
}

/// Returns the addresses of a plan, in order, each once.
pub(crate) fn addresses(plan: &Plan) -> Vec<String> {
    let mut addresses: Vec<String> = vec![];
    for entry in &plan.entries {
        let address = entry.candidate.address.ip().to_string();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Returns the attempts of a plan with their starts in ms: `0 quic 2001:db8::1`.
pub(crate) fn timetable(plan: &Plan) -> Vec<String> {
    let mut start = Duration::ZERO;
    plan.entries
        .iter()
        .map(|entry| {
            start += entry.delay;
            let candidate = &entry.candidate;
            let retest = if entry.retest { " retest" } else { "" };
            format!(
                "{} {} {}{retest}",
                start.as_millis(),
                candidate.transport,
                candidate.address.ip()
            )
        })
        .collect()
}
