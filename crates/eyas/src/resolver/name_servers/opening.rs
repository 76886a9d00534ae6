//! Connects to an encrypted resolver: by the first of its protocols and addresses that works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eyas_race::evidence::{EvidenceLevel, FailureCause};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rustls_pki_types::ServerName;
use tokio::time::Instant;

use super::super::encryption::designation::ResolverEndpoint;
use super::super::encryption::{
    DnsProtocol, EncryptionSetting, EndpointOutcome, NetworkMemory, ProofResult, RequiredProof,
    UnencryptedReason,
};
use super::ServerTrouble;
use super::attempt::{ATTEMPT_DELAY, outcome};
#[cfg(feature = "quic")]
use super::http3::Http3Server;
use super::https::HttpsServer;
#[cfg(feature = "quic")]
use super::quic::QuicServer;
use super::server::{NameServer, QueryTransport};
use super::tls::TlsServer;
use crate::Error;

/// How long connecting may take.
const CONNECTED: Duration = Duration::from_secs(3);
/// The maximum number of attempts.
const MAX_ATTEMPTS: usize = 12;

/// A resolver to which there is a connection.
#[derive(Debug)]
pub(super) struct FoundResolver {
    pub(super) server: NameServer,
    pub(super) endpoint: ResolverEndpoint,
    pub(super) proof: ProofResult,
    /// Whether an earlier process had found it.
    pub(super) is_remembered: bool,
    required: RequiredProof,
    memory: Option<NetworkMemory>,
    has_answered: AtomicBool,
}

impl FoundResolver {
    /// Notes that it has answered a query. Only that is remembered as a success: a resolver may accept connections and
    /// be silent.
    pub(super) fn note_answer(&self) {
        if !self.has_answered.swap(true, Ordering::Relaxed) {
            self.learn(EndpointOutcome::Answered);
        }
    }

    /// Notes that it has stopped answering.
    pub(super) fn note_silence(&self) {
        self.learn(EndpointOutcome::Failed(FailureCause::Silent, EvidenceLevel::Security));
    }

    fn learn(&self, outcome: EndpointOutcome) {
        if let Some(memory) = &self.memory {
            memory.learn(&self.endpoint, self.required, outcome);
        }
    }

    /// Waits until a query would leave at once. Remembers why that failed, unless this host is to blame.
    async fn open(&self, until: Instant) -> Result<(), ()> {
        let since = Instant::now();
        let opened = tokio::time::timeout_at(until, self.server.open()).await;
        let trouble = match opened {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(trouble)) => trouble,
            Err(_) => ServerTrouble::Silent,
        };
        if let Some(outcome) = outcome(trouble, since.elapsed(), self.proof.has_failed()) {
            self.learn(outcome);
        }
        Err(())
    }
}

/// Connects to the first of these that can be reached: each is tried when the one before has failed, or has not
/// succeeded for a while.
pub(super) async fn connect(
    endpoints: Vec<(ResolverEndpoint, RequiredProof)>,
    setting: &EncryptionSetting,
    memory: Option<&NetworkMemory>,
) -> Result<FoundResolver, UnencryptedReason> {
    let resolvers = resolvers(endpoints, setting, memory).map_err(|error| {
        tracing::warn!(%error, "no encrypted DNS");
        UnencryptedReason::NotUsable("this host cannot verify certificates")
    })?;
    let proofs: Vec<ProofResult> = resolvers.iter().map(|found| found.proof.clone()).collect();
    let opened = first_open(resolvers).await;
    opened.ok_or_else(|| match proofs.iter().any(ProofResult::has_failed) {
        true => UnencryptedReason::NotVerified,
        false => UnencryptedReason::NotReachable,
    })
}

/// Returns the resolvers at these places, those first that worked on this network, none of which there is a connection to
/// yet.
fn resolvers(
    mut endpoints: Vec<(ResolverEndpoint, RequiredProof)>,
    setting: &EncryptionSetting,
    memory: Option<&NetworkMemory>,
) -> Result<Vec<FoundResolver>, Error> {
    if let Some(memory) = memory {
        memory.sort(&mut endpoints);
    }
    let verifier = setting.verifier()?;
    let mut resolvers = Vec::new();
    for (endpoint, required) in endpoints.into_iter().take(MAX_ATTEMPTS) {
        let (config, proof) = setting.client_config(Arc::clone(&verifier), required)?;
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
            let (server, memory) = (NameServer::new(transport), memory.cloned());
            resolvers.push(FoundResolver {
                server,
                endpoint,
                proof,
                is_remembered: false,
                required,
                memory,
                has_answered: AtomicBool::new(false),
            });
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
    let until = Instant::now() + CONNECTED;
    let mut waiting = resolvers.into_iter();
    let mut opening = FuturesUnordered::new();
    loop {
        match waiting.next() {
            Some(found) => opening.push(async move {
                let opened = found.open(until).await;
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
