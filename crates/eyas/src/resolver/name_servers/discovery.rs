//! Finds the encrypted resolver of a server: where it was remembered to be, or by asking the server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyas_race::dns::{DnsRecords, RecordType};
use eyas_race::memory::DesignationEntry;
use eyas_race::target::TargetHost;
use hickory_proto::rr::{Name, RecordType as WireType};

use super::super::encryption::designation::{
    self, Designation, DesignationAnswer, ResolverEndpoint,
};
use super::super::encryption::way::EncryptionMode;
use super::super::encryption::{
    EncryptionSetting, NetworkMemory, RememberedAnswer, RequiredProof, UnencryptedReason,
};
use super::message::{DnsQuestion, DnsResponse, ResponseContent};
use super::opening::{FoundResolver, connect};
use super::server::NameServer;
use super::{NameServers, ServerOptions, wire_name};

/// How long the server may take to answer the question for its resolver.
const ANSWER: Duration = Duration::from_secs(2);
/// How long all of it may take: no longer than the questions that wait for it, so that they say what is wrong.
const DISCOVERY: Duration = Duration::from_secs(6);
/// How long this process keeps to what it found, at least: its connection works, however long records last.
const SHORTEST: Duration = Duration::from_mins(5);
/// How long it counts that nothing was found, and that the server has not answered.
const NOTHING: Duration = Duration::from_mins(10);
const NO_ANSWER: Duration = Duration::from_mins(1);

/// What was found.
#[derive(Debug)]
pub(super) struct ResolverDiscovery {
    pub(super) found: Result<FoundResolver, UnencryptedReason>,
    /// For how long that counts.
    pub(super) until: Instant,
}

/// Why a resolver is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiscoveryPurpose {
    /// To ask it: what is remembered counts.
    Query,
    /// To say how things are now.
    Examination,
}

/// Ways to reach resolvers, with what these have to prove.
type ProvedEndpoints = Vec<(ResolverEndpoint, RequiredProof)>;

impl ResolverDiscovery {
    fn new(found: Result<FoundResolver, UnencryptedReason>, holds: Duration) -> Self {
        Self { found, until: Instant::now() + holds }
    }

    pub(super) fn failed(why: UnencryptedReason) -> Self {
        let holds = if why == UnencryptedReason::NotAnswered { NO_ANSWER } else { NOTHING };
        Self::new(Err(why), holds)
    }
}

/// Finds the encrypted resolver of this server.
pub(super) async fn discover(
    server: SocketAddr,
    setting: Arc<EncryptionSetting>,
    purpose: DiscoveryPurpose,
) -> ResolverDiscovery {
    let memory = setting.network_memory();
    let discoverer = Discoverer { server, setting: &setting, memory: memory.as_ref(), purpose };
    let found = tokio::time::timeout(DISCOVERY, discoverer.find()).await;
    let discovery =
        found.unwrap_or_else(|_| ResolverDiscovery::failed(UnencryptedReason::NotReachable));
    match &discovery.found {
        Ok(FoundResolver { endpoint, proof, is_remembered, .. }) => {
            let is_verified = proof.is_verified();
            tracing::debug!(%server, ?endpoint, is_verified, is_remembered, "queries to a server are encrypted");
        }
        Err(why) => tracing::debug!(%server, %why, "queries to a server are not encrypted"),
    }
    discovery
}

/// Looks for the encrypted resolver of a server.
struct Discoverer<'a> {
    server: SocketAddr,
    setting: &'a EncryptionSetting,
    memory: Option<&'a NetworkMemory>,
    purpose: DiscoveryPurpose,
}

impl Discoverer<'_> {
    async fn find(&self) -> ResolverDiscovery {
        if let Some(known) = self.setting.known_endpoint(self.server) {
            return self.connect(vec![known], DesignationEntry::LONGEST).await;
        }
        let failed = match self.remembered().await {
            Ok(remembered) => return remembered,
            Err(failed) => failed,
        };
        let (endpoints, holds) = match self.asked().await {
            Ok(found) => found,
            Err(why) => return ResolverDiscovery::failed(why),
        };
        match failed {
            // It says what it said, and these were tried just now.
            Some((tried, why)) if tried == endpoints => {
                ResolverDiscovery::new(Err(why), holds.max(SHORTEST))
            }
            _ => self.connect(endpoints, holds.max(SHORTEST)).await,
        }
    }

    /// Connects to what the server was remembered to designate. If that fails, returns what was tried, and why it
    /// failed: the server may designate others by now.
    async fn remembered(
        &self,
    ) -> Result<ResolverDiscovery, Option<(ProvedEndpoints, UnencryptedReason)>> {
        let memory = match self.purpose {
            DiscoveryPurpose::Query => self.memory.ok_or(None)?,
            DiscoveryPurpose::Examination => return Err(None),
        };
        let remembered = memory.designation(self.host(), self.server).await.ok_or(None)?;
        let why = match remembered.said {
            RememberedAnswer::Resolvers(endpoints) => {
                let endpoints = self.with_proofs(endpoints);
                if memory.hopeless(&endpoints).is_some() {
                    // Others may be designated by now, which matters where nothing may go unencrypted.
                    return self.hopeless(&endpoints, remembered.holds).ok_or(None);
                }
                let mut discovery = self.connect(endpoints.clone(), remembered.holds).await;
                return match &mut discovery.found {
                    Ok(found) => {
                        found.is_remembered = true;
                        Ok(discovery)
                    }
                    // "the client SHOULD suppress any further queries for Designated Resolvers using this Unencrypted
                    // DNS Resolver for the length of time indicated by the SVCB record's Time to Live" (RFC 9462 §4.2)
                    Err(UnencryptedReason::NotVerified) if self.may_go_without() => Ok(discovery),
                    Err(why) => Err(Some((endpoints, *why))),
                };
            }
            RememberedAnswer::Nothing => UnencryptedReason::NotDesignated,
            RememberedAnswer::Silence => UnencryptedReason::NotAnswered,
        };
        // Where nothing may go unencrypted, a failure of a while ago is no reason to fail now.
        match self.may_go_without() {
            true => Ok(ResolverDiscovery::new(Err(why), remembered.holds)),
            false => Err(None),
        }
    }

    /// Asks the server what it designates, and remembers that. Returns for how long it holds, too.
    async fn asked(&self) -> Result<(ProvedEndpoints, Duration), UnencryptedReason> {
        let (designations, holds) = match designations(self.server).await {
            Ok(found) => found,
            Err((why, holds)) => {
                match (why, holds) {
                    (UnencryptedReason::NotDesignated, Some(holds)) => {
                        self.remember(&RememberedAnswer::Nothing, holds.min(NOTHING));
                    }
                    (UnencryptedReason::NotAnswered, _) => {
                        self.remember(&RememberedAnswer::Silence, NO_ANSWER);
                    }
                    _ => {}
                }
                return Err(why);
            }
        };
        let mut endpoints = Vec::new();
        for (designation, addresses) in designations {
            let addresses = match addresses.is_empty() {
                true => addresses_of(self.server, &designation.name).await,
                false => addresses,
            };
            endpoints.extend(designation.endpoints(&addresses));
        }
        endpoints.truncate(DesignationEntry::MAX_RESOLVERS);
        if !endpoints.is_empty() {
            self.remember(&RememberedAnswer::Resolvers(endpoints.clone()), holds);
        }
        Ok((self.with_proofs(endpoints), holds.min(DesignationEntry::LONGEST)))
    }

    fn remember(&self, said: &RememberedAnswer, holds: Duration) {
        if let Some(memory) = self.memory {
            memory.remember(&self.host(), self.server, said, holds);
        }
    }

    fn with_proofs(&self, endpoints: Vec<ResolverEndpoint>) -> ProvedEndpoints {
        let with_proof = |mut endpoint: ResolverEndpoint| {
            // A link-local address has the designator's interface, which no record has.
            if endpoint.address.ip() == self.server.ip()
                && let (SocketAddr::V6(own), SocketAddr::V6(of)) =
                    (&mut endpoint.address, self.server)
            {
                own.set_scope_id(of.scope_id());
            }
            let proof = self.setting.proof(self.server, endpoint.address);
            (endpoint, proof)
        };
        endpoints.into_iter().map(with_proof).collect()
    }

    /// Returns that there is no resolver if each of these failed of late, and queries may go unencrypted.
    fn hopeless(&self, endpoints: &ProvedEndpoints, holds: Duration) -> Option<ResolverDiscovery> {
        let is_query = self.purpose == DiscoveryPurpose::Query;
        let memory = self.memory.filter(|_| is_query && self.may_go_without())?;
        let (why, hopeless) = memory.hopeless(endpoints)?;
        Some(ResolverDiscovery::new(Err(why), hopeless.min(holds)))
    }

    /// Connects to one of these, unless that is hopeless.
    async fn connect(&self, endpoints: ProvedEndpoints, holds: Duration) -> ResolverDiscovery {
        if let Some(hopeless) = self.hopeless(&endpoints, holds) {
            return hopeless;
        }
        let found = connect(endpoints, self.setting, self.memory).await;
        ResolverDiscovery::new(found, holds)
    }

    /// Returns whether queries may go unencrypted.
    fn may_go_without(&self) -> bool {
        self.setting.mode(self.server) != EncryptionMode::Required
    }

    /// Returns the server as a host of the memory.
    fn host(&self) -> TargetHost {
        let scope = match self.server {
            SocketAddr::V4(_) => 0,
            SocketAddr::V6(v6) => v6.scope_id(),
        };
        TargetHost::Literal(self.server.ip(), scope)
    }
}

/// What a server designates, with the addresses that it said beside, and for how long that holds.
type Designations = (Vec<(Designation, Vec<IpAddr>)>, Duration);

/// Why there is nothing, and for how long that holds, if it was said.
type NoDesignation = (UnencryptedReason, Option<Duration>);

/// Asks a server what it designates (RFC 9462 §4).
async fn designations(server: SocketAddr) -> Result<Designations, NoDesignation> {
    let unusable = |why| (UnencryptedReason::NotUsable(why), None);
    let plain = NameServer::new(server.into());
    let mut name = designation::QUESTION.to_owned();
    let mut longest = Duration::MAX;
    // An alias of an alias is none of a server's own.
    for _ in 0..2 {
        let wire = wire_name(&name).ok_or_else(|| unusable("it is an alias of no name"))?;
        let question = DnsQuestion::new(wire, WireType::SVCB);
        let options = ServerOptions { timeout: ANSWER, ..ServerOptions::default() };
        let answer = tokio::time::timeout(ANSWER, plain.ask(&question, &options)).await;
        let response = answer.ok().and_then(Result::ok);
        let response = response.ok_or((UnencryptedReason::NotAnswered, None))?;
        let (records, holds) = match response.content(&question) {
            ResponseContent::Records(records, holds) => (records, holds),
            ResponseContent::Malformed => return Err(unusable("its records are malformed")),
            ResponseContent::Alias(..) => return Err((UnencryptedReason::NotDesignated, None)),
            ResponseContent::Nothing(holds) => {
                return Err((UnencryptedReason::NotDesignated, holds));
            }
        };
        longest = longest.min(holds);
        match designation::read(&records) {
            DesignationAnswer::Resolvers(found) => {
                let with_addresses = found.into_iter().map(|designation| {
                    let addresses = said_beside(&response, &designation);
                    (designation, addresses)
                });
                return Ok((with_addresses.collect(), longest));
            }
            DesignationAnswer::Alias(target) => name = target,
            DesignationAnswer::Unusable(why) => return Err(unusable(why)),
        }
    }
    Err(unusable("it is an alias of an alias"))
}

/// Returns the addresses of a designated resolver in a response: records of its name, or else hints.
fn said_beside(response: &DnsResponse, designation: &Designation) -> Vec<IpAddr> {
    let mut name = wire_name(&designation.name).unwrap_or_else(Name::root);
    name.set_fqdn(true);
    let addresses = response.addresses(&name);
    if addresses.is_empty() { designation.hints().to_vec() } else { addresses }
}

/// Asks a server for the addresses of its resolver.
async fn addresses_of(server: SocketAddr, name: &str) -> Vec<IpAddr> {
    let options = ServerOptions { timeout: ANSWER, attempts: 1, ..ServerOptions::default() };
    let plain = NameServers::new([server], options);
    let (aaaa, a) =
        tokio::join!(plain.query(name, RecordType::Aaaa), plain.query(name, RecordType::A));
    let mut addresses = Vec::new();
    for found in [aaaa, a] {
        match found.records {
            Ok(DnsRecords::Aaaa(found)) => addresses.extend(found.into_iter().map(IpAddr::from)),
            Ok(DnsRecords::A(found)) => addresses.extend(found.into_iter().map(IpAddr::from)),
            _ => {}
        }
    }
    addresses
}
