//! From DNS answers to service information.
//!
//! A [`RaceResolution`] stores which queries were sent and what the answers were. Everything else
//! (which records apply, whether the race may begin, which hints are still valid) is derived from
//! these each time, so answers may arrive in any order, and a late one is treated as if it had been
//! first.
//!
//! | rule | source |
//! | --- | --- |
//! | HTTPS, AAAA and A are queried at once, a family only if it has connectivity | HEv3 §4.1 |
//! | the race begins when the preferred answers are in, or after the Resolution Delay | HEv3 §4.2 |
//! | an answer that may have the address that worked recently is among the preferred ones | eyas |
//! | AliasMode is followed, the addresses of ServiceMode targets are queried | RFC 9460 §2.4, §3 |
//! | after the records comes what would be tried without them, unless all have ECH that is relied on | RFC 9460 §3, RFC 9848 §5.1 |
//! | hints are used until the addresses themselves are known, and come last if there are none | RFC 9460 §7.3 |
//! | behind a PREF64, A is queried, and addresses synthesised by a DNS64 are converted back | HEv3 §8 |
//! | an expired answer is used until the new one arrives | HEv3 §4.4 |
//! | with ECH over protected DNS, nothing begins without the records | HEv3 §6.3 |

use alloc::{borrow::ToOwned, sync::Arc, vec::Vec};
use core::time::Duration;

use crate::candidate::{AddressFamily, AddressOrigin};
use crate::dns::{DnsAnswer, DnsFailure, DnsQuery, QueryId, RecordType, https_owner};
use crate::io::NetworkView;
use crate::memory::MemoryView;
use crate::policy::Policy;
use crate::race::RaceSetup;
use crate::reason::{PlanReason, ReasonKind};
use crate::target::{Target, TargetHost};

mod chain;
mod filter;
mod names;
mod query_state;
mod record;
mod service;

#[cfg(test)]
mod tests;

pub use filter::{MAX_ADDRESSES, MAX_ALPN, MAX_ECH, MAX_RECORDS};
pub use service::{ServiceAddress, ServiceInfo, ServiceKind};

use chain::{AliasChain, ChainEnd};
use query_state::QueryState;

/// The maximum number of consecutive aliases (RFC 9460 §3.1 requires a limit; recursive resolvers
/// use 8).
pub const MAX_ALIASES: usize = 8;

/// The maximum number of names, besides the target's own, that records may refer to.
pub const MAX_NAMES: usize = 8;

/// The maximum number of queries: three for each alias and the host, two for each other name.
pub const MAX_QUESTIONS: usize = 3 * (1 + MAX_ALIASES) + 2 * (1 + MAX_NAMES);

/// The DNS queries of one race, and their answers.
#[derive(Clone, Debug)]
pub struct RaceResolution {
    /// The target, the network and the policy.
    setup: Arc<RaceSetup>,
    questions: Vec<QueryState>,
    next_id: u32,
    /// When the first usable address was known.
    first_address_at: Option<Duration>,
    derived: DerivedFacts,
    /// Whether an answer has arrived since `derived` was computed.
    is_stale: bool,
}

/// What follows from the answers. Only an answer changes it, so it is derived once for all answers
/// of an instant.
#[derive(Clone, Debug)]
struct DerivedFacts {
    chain: AliasChain,
    services: Arc<Vec<ServiceInfo>>,
    /// Whether there is a positive answer: an address that can be tried from here.
    has_address: bool,
    /// Whether the answers that the draft requires have arrived.
    is_settled: bool,
    /// Whether nothing may begin before the records have arrived.
    waits_for_records: bool,
    /// Whether every query has been answered, by an answer that has not expired if there is one.
    is_complete: bool,
}

impl DerivedFacts {
    const fn nothing(services: Arc<Vec<ServiceInfo>>) -> Self {
        Self {
            chain: AliasChain::none(),
            services,
            has_address: false,
            is_settled: false,
            waits_for_records: false,
            is_complete: false,
        }
    }
}

impl RaceResolution {
    /// Starts the resolution of this target on this network. Literals and `localhost` are complete
    /// at once.
    pub fn new(
        target: &Target,
        network: &NetworkView,
        policy: &Policy,
        seed: u64,
        now: Duration,
    ) -> Self {
        let setup = RaceSetup {
            target: target.clone(),
            policy: policy.clone(),
            view: MemoryView::empty(),
            network: network.clone(),
            seed,
        };
        let mut resolution = Self::unsent(Arc::new(setup));
        resolution.apply_answers(now);
        resolution
    }

    /// Returns the resolution that a race with this set-up needs.
    pub(crate) fn from_setup(setup: Arc<RaceSetup>, now: Duration) -> Self {
        let mut resolution = Self::unsent(setup);
        // If there are queries to send, nothing can be derived before there is an answer.
        resolution.is_stale = resolution.questions.is_empty();
        resolution.apply_answers(now);
        resolution
    }

    fn unsent(setup: Arc<RaceSetup>) -> Self {
        let mut resolution = Self {
            setup,
            questions: Vec::new(),
            next_id: 0,
            first_address_at: None,
            derived: DerivedFacts::nothing(Arc::default()),
            is_stale: true,
        };
        resolution.query_host();
        resolution
    }

    /// Returns the next query to send, or `None`. New answers can lead to new queries.
    pub fn poll_query(&mut self) -> Option<DnsQuery> {
        let question = self.questions.iter_mut().find(|question| !question.sent)?;
        question.sent = true;
        Some(question.query.clone())
    }

    /// Processes an answer. An answer to an unknown query is ignored; a second answer to a query
    /// replaces the first, unless that one has expired and the second is a failure of the servers.
    pub fn handle_answer(&mut self, now: Duration, answer: DnsAnswer) {
        self.store_answer(answer);
        self.apply_answers(now);
    }

    /// Stores an answer; others of the same instant may follow before
    /// [`RaceResolution::apply_answers`].
    pub(crate) fn store_answer(&mut self, answer: DnsAnswer) {
        let Some(question) =
            self.questions.iter_mut().find(|question| question.query.id == answer.id)
        else {
            return;
        };
        question.store(&self.setup, answer);
        self.is_stale = true;
    }

    /// Derives the consequences of all stored answers.
    pub(crate) fn apply_answers(&mut self, now: Duration) {
        if core::mem::take(&mut self.is_stale) {
            let chain = self.chain();
            self.query_references(&chain);
            self.derive(chain, now);
        }
    }

    /// Returns the end of the Resolution Delay, when [`RaceResolution::may_move_on`] becomes true
    /// without further answers. Only meaningful until the race has begun.
    pub fn next_timeout(&self) -> Option<Duration> {
        let end = self.first_address_at?.saturating_add(self.setup.policy.resolution_delay);
        let DerivedFacts { has_address, is_settled, waits_for_records, is_complete, .. } =
            self.derived;
        (has_address && !is_settled && !waits_for_records && !is_complete).then_some(end)
    }

    /// Returns whether there is enough to begin connecting (HEv3 §4.2), or nothing more to wait
    /// for.
    pub fn may_move_on(&self, now: Duration) -> bool {
        let DerivedFacts { has_address, is_settled, waits_for_records, is_complete, .. } =
            self.derived;
        let Some(first) = self.first_address_at else { return is_complete };
        let delay_is_over = now >= first.saturating_add(self.setup.policy.resolution_delay);
        is_complete || (has_address && !waits_for_records && (is_settled || delay_is_over))
    }

    /// Returns the services known so far, in order of preference and without duplicates, including
    /// those whose addresses are not known yet.
    pub fn services(&self) -> Vec<ServiceInfo> {
        self.derived.services.to_vec()
    }

    /// Like [`RaceResolution::services`], but without a copy.
    pub(crate) const fn known_services(&self) -> &Arc<Vec<ServiceInfo>> {
        &self.derived.services
    }

    /// Returns what was ignored in the answers, and why, and which of them have expired.
    pub fn notes(&self) -> Vec<PlanReason> {
        let chain = &self.derived.chain;
        let mut notes: Vec<PlanReason> =
            self.questions.iter().flat_map(|question| question.notes()).collect();
        if self.records_unavailable(chain) {
            notes.push(PlanReason(ReasonKind::RecordsUnavailable { name: chain.owner.clone() }));
        }
        if service::relies_on_records(self, chain) {
            notes.push(PlanReason(ReasonKind::OnlyWithEch { name: chain.owner.clone() }));
        }
        notes.extend(chain.notes.iter().cloned());
        let names = names::referenced(&chain.records, self.name()).count();
        if names > MAX_NAMES {
            notes.push(PlanReason(ReasonKind::TooManyNames {
                used: MAX_NAMES,
                ignored: names - MAX_NAMES,
            }));
        }
        notes
    }

    /// Returns whether every query has been answered.
    pub const fn is_complete(&self) -> bool {
        self.derived.is_complete
    }

    /// Returns how queries failed, each combination of type and failure once.
    pub fn failures(&self) -> Vec<(RecordType, DnsFailure)> {
        let mut failures = Vec::new();
        for question in &self.questions {
            let failure = match &question.answer {
                Some(Err(failure)) => failure.clone(),
                Some(Ok(filtered)) if filtered.is_empty() => DnsFailure::NoData,
                _ => continue,
            };
            let failure = (question.query.record_type, failure);
            if !failures.contains(&failure) {
                failures.push(failure);
            }
        }
        failures.sort_by_key(|(record_type, _)| *record_type);
        failures
    }

    fn name(&self) -> &str {
        self.setup.target.host.name().unwrap_or_default()
    }

    /// Queries HTTPS, AAAA and A of the host, in this order (HEv3 §4.1).
    fn query_host(&mut self) {
        let setup = Arc::clone(&self.setup);
        let target = &setup.target;
        let TargetHost::Name(name) = &target.host else { return };
        if target.host.is_localhost() {
            return;
        }
        if target.asks_https_records() {
            self.query(&https_owner(name, target.port), RecordType::Https);
        }
        self.query_addresses(name);
    }

    /// Queries the names to which the aliases and records so far refer.
    fn query_references(&mut self, chain: &AliasChain) {
        for alias in &chain.aliases {
            self.query(alias, RecordType::Https);
        }
        for alias in &chain.aliases {
            self.query_addresses(alias);
        }
        let setup = Arc::clone(&self.setup);
        let host = setup.target.host.name().unwrap_or_default();
        for target in names::referenced(&chain.records, host).take(MAX_NAMES) {
            self.query_addresses(target);
        }
    }

    /// Queries AAAA if IPv6 has connectivity, and A if IPv4 has or a PREF64 is known. If neither
    /// has, both: the name can still be that of this machine, which the resolver can tell. An
    /// unwanted family is not queried, except for IPv4 addresses that a NAT64 can translate.
    fn query_addresses(&mut self, name: &str) {
        let only = self.setup.policy.only_family;
        let offline = self.setup.network.is_offline();
        let has = |family| self.setup.network.has_connectivity(family);
        let wants_aaaa = only != Some(AddressFamily::V4) && (offline || has(AddressFamily::V6));
        let has_nat64 = !self.setup.network.pref64.is_empty();
        let can_use_a = offline || has(AddressFamily::V4);
        let wants_a = has_nat64 || (only != Some(AddressFamily::V6) && can_use_a);
        if wants_aaaa {
            self.query(name, RecordType::Aaaa);
        }
        if wants_a {
            self.query(name, RecordType::A);
        }
    }

    fn query(&mut self, name: &str, record_type: RecordType) {
        if self.question(name, record_type).is_some() || self.questions.len() >= MAX_QUESTIONS {
            return;
        }
        let query = DnsQuery { id: QueryId(self.next_id), name: name.to_owned(), record_type };
        self.next_id = self.next_id.wrapping_add(1);
        self.questions.push(QueryState::new(query));
    }

    fn question(&self, name: &str, record_type: RecordType) -> Option<&QueryState> {
        self.questions.iter().find(|question| {
            question.query.record_type == record_type && question.query.name == name
        })
    }

    fn chain(&self) -> AliasChain {
        if !self.setup.target.asks_https_records() {
            return AliasChain::none();
        }
        AliasChain::follow(
            https_owner(self.name(), self.setup.target.port),
            self.setup.seed,
            |name| self.question(name, RecordType::Https)?.answer.as_ref(),
        )
    }

    /// Brings [`DerivedFacts`] up to date with the answers.
    fn derive(&mut self, chain: AliasChain, now: Duration) {
        let services = self.services_of(&chain);
        // Records that any attacker can withhold are not worth waiting for; with protected DNS only
        // the zone can (HEv3 §6.3).
        let relies = self.setup.policy.rely_on_ech && self.is_protected(&chain);
        self.derived = DerivedFacts {
            has_address: services.iter().any(|service| self.is_usable(service)),
            is_settled: self.is_settled(&chain, &services)
                && !self.awaits_known_good(&services, now),
            waits_for_records: relies && chain.end == ChainEnd::Pending,
            is_complete: self.questions.iter().all(QueryState::is_final),
            services: Arc::new(services),
            chain,
        };
        if self.derived.has_address && self.first_address_at.is_none() {
            self.first_address_at = Some(now);
        }
    }

    fn services_of(&self, chain: &AliasChain) -> Vec<ServiceInfo> {
        match &self.setup.target.host {
            TargetHost::Literal(ip, scope_id) => {
                let address = [(*ip, *scope_id)];
                alloc::vec![service::local(&self.setup.target, &address, AddressOrigin::Literal)]
            }
            host if host.is_localhost() => {
                alloc::vec![service::local(
                    &self.setup.target,
                    &service::LOCALHOST,
                    AddressOrigin::Localhost
                )]
            }
            TargetHost::Name(_) if self.records_unavailable(chain) => Vec::new(),
            TargetHost::Name(_) => service::list(self, chain),
        }
    }

    fn is_usable(&self, service: &ServiceInfo) -> bool {
        service.addresses.iter().any(|address| self.can_use(address))
    }

    fn can_use(&self, address: &ServiceAddress) -> bool {
        let network = &self.setup.network;
        network.admits(self.setup.policy.only_family, address.ip)
            && (network.is_offline() || network.can_try(address.ip))
    }

    /// Returns whether everything that the draft requires is known: service information, and for a
    /// service that it names, the answer of the preferred family. Addresses to which no record
    /// leads do not count while there are records, nor do hints that contradict DNS: they are used
    /// last.
    fn is_settled(&self, chain: &AliasChain, services: &[ServiceInfo]) -> bool {
        let has_records = !chain.records.is_empty();
        let counts = |service: &&ServiceInfo| !has_records || service.priority().is_some();
        let is_usable_now = |address: &ServiceAddress| {
            address.origin != AddressOrigin::DeniedHint && self.can_use(address)
        };
        chain.end != ChainEnd::Pending
            && services.iter().filter(counts).any(|service| {
                service.addresses.iter().any(is_usable_now) && self.has_preferred_family(service)
            })
    }

    /// Returns whether there is a positive or negative answer of the preferred family, or its hint.
    fn has_preferred_family(&self, service: &ServiceInfo) -> bool {
        let family =
            self.setup.policy.only_family.unwrap_or_else(|| {
                self.setup.network.preferred_family(self.setup.policy.prefer_ipv4)
            });
        service.addresses.iter().any(|address| AddressFamily::from_ip(address.ip) == family)
            || self
                .question(&service.name, RecordType::from_family(family))
                .is_none_or(|question| question.answer.is_some())
    }

    /// Returns whether an address that worked recently may still be in a pending answer, and none
    /// of those is known yet. Without this, an answer of the other family that arrives a
    /// microsecond earlier would cost a Connection Attempt Delay wherever that family is broken.
    fn awaits_known_good(&self, services: &[ServiceInfo], now: Duration) -> bool {
        let mut worked = self.setup.view.worked(now);
        let is_known = |ip| {
            services.iter().flat_map(|service| &service.addresses).any(|address| address.ip == ip)
        };
        let is_pending = |ip| {
            let wanted = RecordType::from_family(AddressFamily::from_ip(ip));
            let mut of_type =
                self.questions.iter().filter(|question| question.query.record_type == wanted);
            of_type.any(|question| question.answer.is_none())
        };
        !worked.clone().any(is_known) && worked.any(is_pending)
    }

    /// Returns whether the caller relies on the records and they are unavailable (RFC 9460 §3.1).
    fn records_unavailable(&self, chain: &AliasChain) -> bool {
        let relies = self.setup.policy.rely_on_ech && self.is_protected(chain);
        relies && chain.end == ChainEnd::Unavailable
    }

    /// Returns whether the DNS information about the records is protected: each HTTPS answer that
    /// led to them was. Before the first one, the answers about addresses decide; a single answer
    /// that could have been forged shows that the others need not be protected either.
    fn is_protected(&self, chain: &AliasChain) -> bool {
        let first = https_owner(self.name(), self.setup.target.port);
        let on_the_way = core::iter::once(&first).chain(&chain.aliases);
        let answered = |question: &&QueryState| question.answer.is_some();
        let mut of_records = on_the_way
            .filter_map(|owner| self.question(owner, RecordType::Https))
            .filter(answered)
            .peekable();
        if of_records.peek().is_some() {
            return of_records.all(|question| question.is_protected);
        }
        let mut others = self.questions.iter().filter(answered).peekable();
        others.peek().is_some() && others.all(|question| question.is_protected)
    }
}

/// Returns whether a failure means that there is no record, rather than that no server could be
/// queried.
fn is_negative(failure: &DnsFailure) -> bool {
    matches!(failure, DnsFailure::NoData | DnsFailure::NoSuchName)
}
