//! What is remembered of a network: which encrypted resolvers its name servers designate, and which of these worked.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use eyas_race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas_race::evidence::{
    AttemptFailure, Evidence, EvidenceLevel, FailureCause, FailureDoubt, NetworkId, TrustContext,
};
use eyas_race::memory::{MemoryEntry, MemoryKey, MemoryRecord, MemoryVerdict};
use eyas_race::target::TargetHost;

use super::designation::{self, ResolverEndpoint};
use super::row::{self, RememberedAnswer, RememberedDesignation};
use super::{DnsProtocol, RequiredProof, SharedResolverMemory, UnencryptedReason};
use crate::memory_store::{MemoryStore, ObservedOutcome, now};

/// The memory of an endpoint, for its resolver.
pub(crate) struct ResolverMemory {
    store: MemoryStore,
    /// The name of the security parameters.
    trust: String,
    /// Returns the current network; `None` if it is not certain, and once the endpoint has ended.
    network: Box<dyn Fn() -> Option<NetworkId> + Send + Sync>,
}

impl fmt::Debug for ResolverMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolverMemory").field("trust", &self.trust).finish_non_exhaustive()
    }
}

impl ResolverMemory {
    /// Creates the memory, in which certificates are trusted by parameters of this name.
    pub(crate) fn new(
        store: MemoryStore,
        trust: String,
        network: impl Fn() -> Option<NetworkId> + Send + Sync + 'static,
    ) -> Self {
        Self { store, trust, network: Box::new(network) }
    }

    /// Returns what decides about the certificate of a resolver: what fails where a proof is required may work where
    /// none is.
    fn trust(&self, proof: RequiredProof) -> TrustContext {
        let parameters = if proof.is_optional { "anyone" } else { &*self.trust };
        TrustContext {
            parameters: parameters.to_owned(),
            certificate_host: proof.designator.map(|ip| TargetHost::Literal(ip, 0)),
        }
    }
}

/// What is remembered of one network.
///
/// "A Designated Resolver that has been discovered on one network SHOULD NOT be reused on any of the other networks
/// without repeating the discovery process for each network" (RFC 9462 §4.1.1): all rows are those of the network on
/// which a discovery began, and nothing is written once it is another one.
#[derive(Clone, Debug)]
pub(in super::super) struct NetworkMemory {
    memory: SharedResolverMemory,
    network: NetworkId,
}

/// How an attempt to use an encrypted resolver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum EndpointOutcome {
    /// It has answered a query.
    Answered,
    /// It failed like this, after it had come this far.
    Failed(FailureCause, EvidenceLevel),
    /// It was silent, for less time than a lost packet takes to be repeated.
    CutShort,
}

impl NetworkMemory {
    /// Returns what is remembered of the current network, if it is certain which that is.
    pub(in super::super) fn of_current(memory: &SharedResolverMemory) -> Option<Self> {
        let network = (memory.get()?.network)()?;
        Some(Self { memory: Arc::clone(memory), network })
    }

    /// Returns what a name server of this network designates, which was said earlier and still holds.
    pub(in super::super) async fn designation(
        &self,
        host: TargetHost,
        address: SocketAddr,
    ) -> Option<RememberedDesignation> {
        let key = MemoryKey::resolver(&self.network, &host, address);
        let store = self.memory.get()?.store.clone();
        // Without its runtime nobody asks any more.
        let row = tokio::task::spawn_blocking(move || store.row(&key)).await.ok().flatten()?;
        match row {
            MemoryEntry::Resolver(entry) => row::read(&entry, now()),
            _ => None,
        }
    }

    /// Remembers what a name server has just said, and for how long it holds.
    pub(in super::super) fn remember(
        &self,
        host: &TargetHost,
        address: SocketAddr,
        said: &RememberedAnswer,
        holds: Duration,
    ) {
        let Some(memory) = self.writable() else { return };
        let key = MemoryKey::resolver(&self.network, host, address);
        let entry = MemoryEntry::Resolver(row::written(said, now(), holds));
        memory.store.insert_in_background(MemoryRecord { key, entry });
    }

    /// Puts those first that worked on this network, and those last that did not; all else keeps its order.
    pub(in super::super) fn sort(&self, endpoints: &mut [(ResolverEndpoint, RequiredProof)]) {
        endpoints.sort_by_cached_key(|(endpoint, proof)| match self.verdict(endpoint, *proof) {
            MemoryVerdict::Good { .. } => 0,
            MemoryVerdict::Bad { .. } | MemoryVerdict::NetworkBad { .. } => 2,
            _ => 1,
        });
    }

    /// Returns why none of these is worth an attempt, and for how long, if each failed of late.
    pub(in super::super) fn hopeless(
        &self,
        endpoints: &[(ResolverEndpoint, RequiredProof)],
    ) -> Option<(UnencryptedReason, Duration)> {
        let mut hopeless = None;
        for (endpoint, proof) in endpoints {
            let MemoryVerdict::Bad { cause, until } = self.verdict(endpoint, *proof) else {
                return None;
            };
            let why = match cause {
                FailureCause::Certificate => UnencryptedReason::NotVerified,
                _ => UnencryptedReason::NotReachable,
            };
            let holds = until.saturating_sub(now());
            hopeless = Some(hopeless.map_or((why, holds), |(worst, soonest)| {
                (Ord::max(worst, why), Duration::min(soonest, holds))
            }));
        }
        hopeless
    }

    fn verdict(&self, endpoint: &ResolverEndpoint, proof: RequiredProof) -> MemoryVerdict {
        let Some(memory) = self.memory.get() else { return MemoryVerdict::Unknown };
        let trust = memory.trust(proof);
        let view = memory.store.view(&self.network, &endpoint.host(), &trust);
        view.verdict(&candidate(endpoint), now())
    }

    /// Remembers how an attempt to use a resolver ended.
    pub(in super::super) fn learn(
        &self,
        endpoint: &ResolverEndpoint,
        proof: RequiredProof,
        outcome: EndpointOutcome,
    ) {
        let Some(memory) = self.writable() else { return };
        let (level, cause, doubt) = match outcome {
            EndpointOutcome::Answered => (EvidenceLevel::FirstByte, None, None),
            EndpointOutcome::Failed(cause, reached) => (reached, Some(cause), None),
            EndpointOutcome::CutShort => {
                let doubt = Some(FailureDoubt::CutShort);
                (EvidenceLevel::Started, Some(FailureCause::Silent), doubt)
            }
        };
        let evidence = Evidence {
            at: now(),
            network: self.network.clone(),
            host: endpoint.host(),
            candidate: candidate(endpoint),
            level,
            failure: cause.map(|cause| AttemptFailure::new(cause, level, "")),
            doubt,
            rtt: None,
            sent_again: None,
        };
        let trust = memory.trust(proof);
        memory.store.learn_in_background(ObservedOutcome { evidence, trust, network_name: None });
    }

    /// Returns the memory, unless this is another network by now.
    fn writable(&self) -> Option<&ResolverMemory> {
        let memory = self.memory.get()?;
        ((memory.network)().as_ref() == Some(&self.network)).then_some(memory)
    }
}

fn candidate(endpoint: &ResolverEndpoint) -> Candidate {
    let transport = match endpoint.protocol {
        DnsProtocol::Quic | DnsProtocol::Http3 => Transport::Quic,
        DnsProtocol::Tls | DnsProtocol::Https => Transport::Tcp,
    };
    Candidate {
        address: endpoint.address,
        transport,
        security: Security::Tls,
        alpn: vec![designation::identifier(endpoint.protocol).to_owned()],
        ech: None,
        priority: None,
        origin: AddressOrigin::Hint,
    }
}
