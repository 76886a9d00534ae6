//! Finds the encrypted resolver of a server, and connects to it: by the first of its protocols and addresses that works.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyas_race::dns::{DnsRecords, RecordType};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hickory_proto::rr::{Name, RecordType as WireType};
use rustls_pki_types::ServerName;

use super::super::encryption::designation::{
    self, Designation, DesignationAnswer, ResolverEndpoint,
};
use super::super::encryption::{
    DnsProtocol, EncryptionSetting, ProofResult, RequiredProof, UnencryptedReason,
};
#[cfg(feature = "quic")]
use super::http3::Http3Server;
use super::https::HttpsServer;
use super::message::{DnsQuestion, DnsResponse, ResponseContent};
#[cfg(feature = "quic")]
use super::quic::QuicServer;
use super::server::{NameServer, QueryTransport};
use super::tls::TlsServer;
use super::{NameServers, ServerOptions, wire_name};
use crate::Error;

/// How long the server may take to answer the question for its resolver.
const ANSWER: Duration = Duration::from_secs(2);
/// How long connecting may take.
const CONNECTED: Duration = Duration::from_secs(3);
/// How long all of it may take: no longer than the questions that wait for it, so that they say what is wrong.
const DISCOVERY: Duration = Duration::from_secs(6);
/// The time between two attempts, if the first has not ended (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The maximum number of attempts.
const MAX_ATTEMPTS: usize = 12;
/// How long records are believed, at least and at most: "the client MAY issue new queries if the SVCB record's TTL is
/// excessively long" (RFC 9462 §4.2).
const SHORTEST: Duration = Duration::from_mins(5);
const LONGEST: Duration = Duration::from_hours(24);
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

/// A resolver to which there is a connection.
#[derive(Debug)]
pub(super) struct FoundResolver {
    pub(super) server: NameServer,
    pub(super) endpoint: ResolverEndpoint,
    pub(super) proof: ProofResult,
}

impl ResolverDiscovery {
    pub(super) fn failed(why: UnencryptedReason) -> Self {
        let holds = if why == UnencryptedReason::NotAnswered { NO_ANSWER } else { NOTHING };
        Self { found: Err(why), until: Instant::now() + holds }
    }
}

/// Finds the encrypted resolver of this server.
pub(super) async fn discover(
    server: SocketAddr,
    setting: Arc<EncryptionSetting>,
) -> ResolverDiscovery {
    let found = tokio::time::timeout(DISCOVERY, find(server, &setting)).await;
    let discovery =
        found.unwrap_or_else(|_| ResolverDiscovery::failed(UnencryptedReason::NotReachable));
    match &discovery.found {
        Ok(FoundResolver { endpoint, proof, .. }) => {
            let is_verified = proof.is_verified();
            tracing::debug!(%server, ?endpoint, is_verified, "queries to a server are encrypted");
        }
        Err(why) => tracing::debug!(%server, %why, "queries to a server are not encrypted"),
    }
    discovery
}

async fn find(server: SocketAddr, setting: &EncryptionSetting) -> ResolverDiscovery {
    if let Some(known) = setting.known_endpoint(server) {
        return connect(vec![known], setting, LONGEST).await;
    }
    let (designations, holds) = match designations(server).await {
        Ok(found) => found,
        Err(why) => return ResolverDiscovery::failed(why),
    };
    let mut endpoints = Vec::new();
    for (designation, addresses) in designations {
        let addresses = match addresses.is_empty() {
            true => addresses_of(server, &designation.name).await,
            false => addresses,
        };
        endpoints.extend(designation.endpoints(&addresses));
    }
    let with_proof = |mut endpoint: ResolverEndpoint| {
        // A link-local address has the designator's interface, which no record has.
        if endpoint.address.ip() == server.ip()
            && let (SocketAddr::V6(own), SocketAddr::V6(of)) = (&mut endpoint.address, server)
        {
            own.set_scope_id(of.scope_id());
        }
        let proof = setting.proof(server, endpoint.address);
        (endpoint, proof)
    };
    connect(endpoints.into_iter().map(with_proof).collect(), setting, holds).await
}

/// What a server designates, with the addresses that it said beside, and for how long that holds.
type Designations = (Vec<(Designation, Vec<IpAddr>)>, Duration);

/// Asks a server what it designates (RFC 9462 §4).
async fn designations(server: SocketAddr) -> Result<Designations, UnencryptedReason> {
    let plain = NameServer::new(server.into());
    let mut name = designation::QUESTION.to_owned();
    // An alias of an alias is none of a server's own.
    for _ in 0..2 {
        let wire =
            wire_name(&name).ok_or(UnencryptedReason::NotUsable("it is an alias of no name"))?;
        let question = DnsQuestion::new(wire, WireType::SVCB);
        let options = ServerOptions { timeout: ANSWER, ..ServerOptions::default() };
        let answer = tokio::time::timeout(ANSWER, plain.ask(&question, &options)).await;
        let response = answer.ok().and_then(Result::ok).ok_or(UnencryptedReason::NotAnswered)?;
        let (records, holds) = match response.content(&question) {
            ResponseContent::Records(records, holds) => (records, holds),
            ResponseContent::Malformed => {
                return Err(UnencryptedReason::NotUsable("its records are malformed"));
            }
            ResponseContent::Alias(..) | ResponseContent::Nothing(_) => {
                return Err(UnencryptedReason::NotDesignated);
            }
        };
        match designation::read(&records) {
            DesignationAnswer::Resolvers(found) => {
                let with_addresses = found.into_iter().map(|designation| {
                    let addresses = said_beside(&response, &designation);
                    (designation, addresses)
                });
                return Ok((with_addresses.collect(), holds));
            }
            DesignationAnswer::Alias(target) => name = target,
            DesignationAnswer::Unusable(why) => return Err(UnencryptedReason::NotUsable(why)),
        }
    }
    Err(UnencryptedReason::NotUsable("it is an alias of an alias"))
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

/// Connects to the first of these that can be reached: each is tried when the one before has failed, or has not
/// succeeded for a while.
async fn connect(
    mut endpoints: Vec<(ResolverEndpoint, RequiredProof)>,
    setting: &EncryptionSetting,
    holds: Duration,
) -> ResolverDiscovery {
    setting.sort(&mut endpoints);
    let resolvers = match resolvers(endpoints, setting) {
        Ok(resolvers) => resolvers,
        Err(error) => {
            tracing::warn!(%error, "no encrypted DNS");
            let why = UnencryptedReason::NotUsable("this host cannot verify certificates");
            return ResolverDiscovery::failed(why);
        }
    };
    let proofs: Vec<ProofResult> = resolvers.iter().map(|found| found.proof.clone()).collect();
    let opened = tokio::time::timeout(CONNECTED, first_open(resolvers)).await;
    let found = match opened.ok().flatten() {
        Some(found) => {
            setting.learn(&found.endpoint);
            Ok(found)
        }
        None if proofs.iter().any(ProofResult::has_failed) => Err(UnencryptedReason::NotVerified),
        None => Err(UnencryptedReason::NotReachable),
    };
    let until = Instant::now() + holds.clamp(SHORTEST, LONGEST);
    ResolverDiscovery { found, until }
}

/// Returns the resolvers at these places, none of which there is a connection to yet.
fn resolvers(
    endpoints: Vec<(ResolverEndpoint, RequiredProof)>,
    setting: &EncryptionSetting,
) -> Result<Vec<FoundResolver>, Error> {
    let verifier = setting.verifier()?;
    let mut resolvers = Vec::new();
    for (endpoint, proof) in endpoints.into_iter().take(MAX_ATTEMPTS) {
        let (config, proof) = setting.client_config(Arc::clone(&verifier), proof)?;
        let (address, name) = (endpoint.address, server_name(&endpoint));
        let Ok(name) = name else { continue };
        let transport: Option<QueryTransport> = match endpoint.protocol {
            DnsProtocol::Tls => Some(TlsServer::designated(address, name, config).into()),
            DnsProtocol::Https => {
                let server = HttpsServer::new(address, &name.to_str(), &endpoint.path, config);
                server.map(QueryTransport::from)
            }
            #[cfg(feature = "quic")]
            DnsProtocol::Quic => QuicServer::new(address, &name, config).map(QueryTransport::from),
            #[cfg(feature = "quic")]
            DnsProtocol::Http3 => {
                Http3Server::new(address, &name, &endpoint.path, config).map(QueryTransport::from)
            }
            #[cfg(not(feature = "quic"))]
            DnsProtocol::Quic | DnsProtocol::Http3 => None,
        };
        if let Some(transport) = transport {
            resolvers.push(FoundResolver { server: NameServer::new(transport), endpoint, proof });
        }
    }
    Ok(resolvers)
}

/// Returns the name that is sent to a resolver.
fn server_name(
    endpoint: &ResolverEndpoint,
) -> Result<ServerName<'static>, rustls_pki_types::InvalidDnsNameError> {
    match endpoint.name.as_str() {
        "" => Ok(ServerName::IpAddress(endpoint.address.ip().into())),
        name => ServerName::try_from(name.to_owned()),
    }
}

async fn first_open(resolvers: Vec<FoundResolver>) -> Option<FoundResolver> {
    let mut waiting = resolvers.into_iter();
    let mut opening = FuturesUnordered::new();
    loop {
        match waiting.next() {
            Some(found) => opening.push(async move {
                let opened = found.server.open().await;
                opened.map(|()| found)
            }),
            None if opening.is_empty() => return None,
            None => {}
        }
        let is_last = waiting.len() == 0;
        let next = tokio::time::sleep(ATTEMPT_DELAY);
        tokio::select! {
            Some(opened) = opening.next() => if let Ok(found) = opened {
                return Some(found);
            },
            () = next, if !is_last => {}
        }
    }
}
