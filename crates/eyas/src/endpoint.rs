//! The state shared by all connections of a program.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use eyas_race::candidate::{Candidate, Transport};
use eyas_race::evidence::{AttemptFailure, NetworkId, TrustContext};
use eyas_race::io::NetworkView;
use eyas_race::memory::MemoryView;
use eyas_race::target::{Target, TargetHost};
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::SctpConnector;
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::protocol::config::AssociationConfig;

use crate::attempt::{AttemptReporter, CandidateAttempt, server_name};
use crate::connector::EndpointConnector;
use crate::ech::EchAttempt;
use crate::limit::{AttemptLimit, DEFAULT_ATTEMPTS};
use crate::local_addresses::LocalAddresses;
use crate::network::CurrentNetwork;
use crate::race_counts::{AttemptCounts, EndpointTally, RaceCounts};
#[cfg(feature = "encrypted-dns")]
use crate::resolver::ResolverMemory;
use crate::{
    Connection, ConnectionFeedback, Error, MemoryStore, Preconnection, Resolver, SecurityParameters,
};

#[cfg(feature = "quic")]
mod early;
mod network_changes;
mod secure;

#[cfg(feature = "quic")]
pub use early::EarlyConnection;
pub use network_changes::NetworkChanges;

/// The state shared by all connections of a program: security parameters, resolver, memory, and one
/// UDP socket per address family for QUIC. Cheap to clone; the sockets are closed when the last
/// clone or connection is dropped.
#[derive(Clone, Debug)]
pub struct Endpoint {
    shared: Arc<EndpointState>,
}

#[derive(Debug)]
struct EndpointState {
    connector: EndpointConnector,
    resolver: Resolver,
    memory: MemoryStore,
    /// The name of the security parameters in the memory.
    trust: String,
    authenticates_peers: bool,
    network: CurrentNetwork,
    limit: AttemptLimit,
    forwards: PortForwards,
    tally: EndpointTally,
}

/// Ports to connect to, by the requested host and port.
type PortForwards = BTreeMap<(TargetHost, u16), u16>;

/// Builds an [`Endpoint`].
#[derive(Clone, Debug)]
#[must_use]
pub struct EndpointBuilder {
    security: SecurityParameters,
    resolver: Resolver,
    memory: MemoryStore,
    max_attempts_in_flight: usize,
    mptcp: bool,
    fast_open: bool,
    forwards: PortForwards,
    local_addresses: Vec<IpAddr>,
    #[cfg(feature = "sctp")]
    sctp_encapsulation_port: u16,
    #[cfg(feature = "sctp")]
    sctp_association: AssociationConfig,
    #[cfg(feature = "sctp")]
    sctp_local_addresses: Vec<IpAddr>,
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        Self {
            security: SecurityParameters::default(),
            resolver: Resolver::default(),
            memory: MemoryStore::default(),
            max_attempts_in_flight: DEFAULT_ATTEMPTS,
            mptcp: false,
            fast_open: false,
            forwards: PortForwards::new(),
            local_addresses: Vec::new(),
            #[cfg(feature = "sctp")]
            sctp_encapsulation_port: eyas_sctp_tokio::ENCAPSULATION_PORT,
            #[cfg(feature = "sctp")]
            sctp_association: AssociationConfig::default(),
            #[cfg(feature = "sctp")]
            sctp_local_addresses: Vec::new(),
        }
    }
}

impl EndpointBuilder {
    /// Sets the security parameters. The default is [`SecurityParameters::platform`].
    pub fn security(mut self, security: SecurityParameters) -> Self {
        self.security = security;
        self
    }

    /// Sets the resolver. The default is [`Resolver::system`].
    pub fn resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// Sets where races store what they learn. The default is in memory, for this process only.
    pub fn memory(mut self, memory: MemoryStore) -> Self {
        self.memory = memory;
        self
    }

    /// Sets the maximum number of attempts in flight over all races. The default is 256, the
    /// minimum 1.
    pub fn max_attempts_in_flight(mut self, attempts: usize) -> Self {
        self.max_attempts_in_flight = attempts;
        self
    }

    /// Uses MPTCP where a policy asks for TCP. It falls back to TCP by itself if the peer or the
    /// path does not support it, at the cost of an option in the first packet. Off by default.
    pub fn mptcp(mut self, mptcp: bool) -> Self {
        self.mptcp = mptcp;
        self
    }

    /// Uses TCP Fast Open (RFC 7413) where there is no race; in a race it would win before the peer
    /// has answered. Off by default, because some paths drop such packets.
    pub fn fast_open(mut self, fast_open: bool) -> Self {
        self.fast_open = fast_open;
        self
    }

    /// Sets the local addresses that connections are opened from. For an address family without
    /// any, the routing table chooses, which is the default. TCP and MPTCP connections use the
    /// addresses in turn, so that more of them can be open, or in TIME-WAIT, than one address has
    /// ports. QUIC and SCTP share one socket and use the first address of the peer's family, unless
    /// SCTP has addresses of its own (`sctp_local_addresses`).
    pub fn local_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.local_addresses = addresses.into_iter().collect();
        self
    }

    /// Sets the peer's UDP port for SCTP over UDP (RFC 6951). The default is 9899.
    #[cfg(feature = "sctp")]
    pub fn sctp_encapsulation_port(mut self, port: u16) -> Self {
        self.sctp_encapsulation_port = port;
        self
    }

    /// Sets the configuration of SCTP associations.
    #[cfg(feature = "sctp")]
    pub fn sctp_association(mut self, association: AssociationConfig) -> Self {
        self.sctp_association = association;
        self
    }

    /// Sets the local addresses, at most eight, that SCTP associations use and announce to their
    /// peers. The default is all addresses whose scope the peer shares (no private ones if the
    /// peer's address is global), including those that are added or removed later
    /// ([`AssociationConfig::auto_asconf`]).
    #[cfg(feature = "sctp")]
    pub fn sctp_local_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.sctp_local_addresses = addresses.into_iter().collect();
        self
    }

    /// Connects to port `to` when `port` of `host` is requested, for a port that is forwarded
    /// elsewhere. Names and certificates remain those of the target. To use another address than
    /// the one from DNS, call [`Resolver::overriding`] with the port that is connected to.
    pub fn forwarding(mut self, host: TargetHost, port: u16, to: u16) -> Self {
        self.forwards.insert((host, port), to);
        self
    }

    /// Builds the endpoint. Sockets are opened when they are first needed.
    pub fn build(self) -> Result<Endpoint, Error> {
        let secret = self.memory.secret();
        let network = CurrentNetwork::new(self.resolver.clone(), secret);
        let (fast_open, mptcp) = (self.fast_open, self.mptcp);
        let connector = EndpointConnector::new(
            &self.security,
            #[cfg(feature = "quic")]
            network.clone(),
            fast_open,
            mptcp,
            LocalAddresses::new(&self.local_addresses),
        )?;
        #[cfg(feature = "sctp")]
        let connector = {
            let sctp = SctpConnector::new(self.sctp_encapsulation_port, self.sctp_association);
            let addresses = match self.sctp_local_addresses.is_empty() {
                true => one_of_each_family(&self.local_addresses),
                false => self.sctp_local_addresses,
            };
            connector.with_sctp(sctp.with_local_addresses(addresses))
        };
        let trust = self.security.name(&secret);
        #[cfg(feature = "encrypted-dns")]
        if !self.memory.is_disabled() {
            let memory = self.memory.clone();
            self.resolver.remember(ResolverMemory::new(
                memory,
                trust.clone(),
                network.identities(),
            ));
        }
        let shared = EndpointState {
            connector,
            network,
            resolver: self.resolver,
            memory: self.memory,
            trust,
            authenticates_peers: self.security.authenticates_peers(),
            forwards: self.forwards,
            limit: AttemptLimit::new(self.max_attempts_in_flight),
            tally: EndpointTally::default(),
        };
        Ok(Endpoint { shared: Arc::new(shared) })
    }
}

/// Returns the first address of each family.
#[cfg(feature = "sctp")]
fn one_of_each_family(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let first = |v4: bool| addresses.iter().find(|address| address.is_ipv4() == v4).copied();
    [first(true), first(false)].into_iter().flatten().collect()
}

impl Endpoint {
    /// Returns a builder with the defaults.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// Returns the resolver.
    pub fn resolver(&self) -> &Resolver {
        &self.shared.resolver
    }

    /// Returns the memory.
    pub fn memory(&self) -> &MemoryStore {
        &self.shared.memory
    }

    /// Returns whether the certificates of peers are verified.
    pub(crate) fn authenticates_peers(&self) -> bool {
        self.shared.authenticates_peers
    }

    /// Returns what the memory knows of a host, as far as it is used.
    pub(crate) fn memory_view(
        &self,
        network: &NetworkId,
        host: &TargetHost,
        trust: &TrustContext,
    ) -> MemoryView {
        let view = self.memory().view(network, host, trust);
        match self.connector().may_shorten_hello() {
            true => view,
            false => view.without_short_hellos(),
        }
    }

    /// Returns whom connections to this host trust, for the memory. `certificate_host` is the host
    /// that the certificate must be valid for, if another one was given.
    pub(crate) fn trust(
        &self,
        host: &TargetHost,
        certificate_host: Option<&TargetHost>,
    ) -> TrustContext {
        let certificate_host =
            certificate_host.filter(|certificate_host| *certificate_host != host).cloned();
        TrustContext { parameters: self.shared.trust.clone(), certificate_host }
    }

    /// Reads this machine's addresses and routes from the kernel now, and watches for changes from
    /// now on. Otherwise the first connection does so, which takes it a fraction of a millisecond.
    /// Must be called inside a tokio runtime, the one that connections will use.
    pub fn watch_network(&self) {
        self.network().view_without_waiting();
    }

    /// Returns the outcomes so far of the attempts of all races over one transport.
    pub fn attempts(&self, transport: Transport) -> AttemptCounts {
        self.shared.tally.transport_counts(transport)
    }

    /// Returns the outcomes of all races so far.
    pub fn races(&self) -> RaceCounts {
        self.shared.tally.races().counts()
    }

    /// Waits until every SCTP association and QUIC connection that was opened by this endpoint has
    /// ended. An association that is dropped shuts down gracefully, which takes a round trip (RFC
    /// 9260 §9.2), and a QUIC connection that was shut down and dropped stays open until its peer has
    /// everything; a program that exits earlier leaves its peer waiting. Those that are still in use
    /// are waited for as well, so use a timeout. What the kernel takes care of, TCP and its own SCTP,
    /// is not waited for.
    pub async fn connections_ended(&self) {
        #[cfg(feature = "quic")]
        self.shared.connector.quic_sockets().idle().await;
        #[cfg(feature = "sctp")]
        self.shared.connector.sctp().ended().await;
    }

    pub(crate) fn tally(&self) -> &EndpointTally {
        &self.shared.tally
    }

    /// Returns a [`Preconnection`], which describes a connection to `target`.
    pub fn preconnection(&self, mut target: Target) -> Preconnection {
        let forwards = &self.shared.forwards;
        if !forwards.is_empty()
            && let Some(port) = forwards.get(&(target.host.clone(), target.port))
        {
            target.port = *port;
        }
        Preconnection::new(self.clone(), target)
    }

    /// Returns the current state of the network.
    pub async fn network_view(&self) -> Arc<NetworkView> {
        self.shared.network.view().await
    }

    /// Returns a readable name of the current network, its interfaces and their gateways, such as
    /// `wlan0 via 192.168.1.1`. Two networks can have the same name.
    pub async fn network_name(&self) -> String {
        let view = self.network_view().await;
        self.network().final_id(&view.id).1.unwrap_or_default()
    }

    pub(crate) fn network(&self) -> &CurrentNetwork {
        &self.shared.network
    }

    pub(crate) fn limit(&self) -> &AttemptLimit {
        &self.shared.limit
    }

    pub(crate) fn connector(&self) -> &EndpointConnector {
        &self.shared.connector
    }

    /// Connects to exactly this candidate, without a race and without the memory. The certificate
    /// must be valid for `host`. Dropping the future closes the attempt.
    ///
    /// # Errors
    /// Returns how far the attempt got and what ended it. There is no deadline except that of the
    /// transport.
    pub async fn attempt(
        &self,
        host: &TargetHost,
        candidate: Candidate,
        initial_rtt: Option<Duration>,
    ) -> Result<Connection, AttemptFailure> {
        let attempt = CandidateAttempt {
            candidate,
            ech: EchAttempt::default(),
            without_ech: false,
            short_hello: AtomicBool::default(),
            server_name: server_name(host),
            initial_rtt,
            origin: Instant::now(),
            is_unraced: true,
            until_first_byte: false,
            opening: None,
            #[cfg(feature = "sctp")]
            proceed: None,
            #[cfg(feature = "sctp")]
            encapsulation_port: None,
            #[cfg(feature = "quic")]
            quic_config: None,
            #[cfg(feature = "quic")]
            without_keep_alive: false,
        };
        let established = attempt.run(&self.shared.connector, &AttemptReporter::none()).await?;
        Ok(Connection::new(
            established.transport,
            established.info,
            ConnectionFeedback::none(),
            established.read_ahead,
        ))
    }
}
