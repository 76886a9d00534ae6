//! Which encrypted resolvers worked on this network, in the memory of races.

use std::fmt;

use eyas_race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas_race::evidence::{Evidence, EvidenceLevel, NetworkId, TrustContext};
use eyas_race::memory::MemoryVerdict;
use eyas_race::target::TargetHost;

use super::designation::ResolverEndpoint;
use super::{DnsProtocol, RequiredProof};
use crate::memory_store::{MemoryStore, ObservedOutcome, now};

/// The memory of an endpoint, for its resolver.
pub(crate) struct ResolverMemory {
    store: MemoryStore,
    trust: TrustContext,
    /// Returns the current network; `None` once the endpoint has ended.
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
        let trust = TrustContext { parameters: trust, certificate_host: None };
        Self { store, trust, network: Box::new(network) }
    }

    /// Puts those first that worked on this network, and those last that did not; all else keeps its order.
    pub(super) fn sort(&self, endpoints: &mut [(ResolverEndpoint, RequiredProof)]) {
        let Some(network) = (self.network)() else { return };
        let now = now();
        endpoints.sort_by_cached_key(|(endpoint, _)| {
            let view = self.store.view(&network, &host(endpoint), &self.trust);
            match view.verdict(&candidate(endpoint), now) {
                MemoryVerdict::Good { .. } => 0,
                MemoryVerdict::Bad { .. } | MemoryVerdict::NetworkBad { .. } => 2,
                _ => 1,
            }
        });
    }

    /// Remembers that this one works on this network.
    pub(super) fn learn(&self, endpoint: &ResolverEndpoint) {
        let Some(network) = (self.network)() else { return };
        let evidence = Evidence {
            at: now(),
            network,
            host: host(endpoint),
            candidate: candidate(endpoint),
            level: EvidenceLevel::Security,
            failure: None,
            doubt: None,
            rtt: None,
            sent_again: None,
        };
        let trust = self.trust.clone();
        self.store.learn_in_background(ObservedOutcome { evidence, trust, network_name: None });
    }
}

fn host(endpoint: &ResolverEndpoint) -> TargetHost {
    match endpoint.name.as_str() {
        "" => TargetHost::Literal(endpoint.address.ip(), 0),
        name => TargetHost::Name(name.to_owned()),
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
        alpn: Vec::new(),
        ech: None,
        priority: None,
        origin: AddressOrigin::Hint,
    }
}
