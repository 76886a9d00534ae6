//! What all connections of a program share.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyas_race::candidate::{Candidate, Transport};
use eyas_race::evidence::{Failure, Trust};
use eyas_race::io::NetworkView;
use eyas_race::target::{Host, Target};

use crate::attempt::{Attempt, Reporter, server_name};
use crate::connector::Connector;
use crate::limit::{AttemptLimit, DEFAULT_ATTEMPTS};
use crate::local_addresses::LocalAddresses;
use crate::network::Network;
#[cfg(feature = "sctp")]
use crate::sctp::client::Clients;
#[cfg(feature = "sctp")]
use crate::sctp::protocol::config::AssociationConfig;
use crate::tally::{AttemptCounts, Tally};
use crate::{
    Connection, Error, Feedback, MemoryStore, Preconnection, Resolver, SecurityParameters,
};

#[cfg(feature = "quic")]
mod early;
mod network_changes;
mod secure;

#[cfg(feature = "quic")]
pub use early::Early;
pub use network_changes::NetworkChanges;

/// What all connections of a program share: security parameters, resolver, memory, and one UDP
/// socket per address family for all of QUIC. Cheap to clone; the last clone or connection that
/// is dropped closes the sockets.
#[derive(Clone, Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    connector: Connector,
    resolver: Resolver,
    memory: MemoryStore,
    /// What the security parameters are called in the memory.
    trust: String,
    network: Network,
    limit: AttemptLimit,
    forwards: Forwards,
    tally: Tally,
}

/// Ports to connect to, by the host and port that are asked for.
type Forwards = BTreeMap<(Host, u16), u16>;

/// Settles what an [`Endpoint`] is made of.
#[derive(Clone, Debug)]
#[must_use]
pub struct EndpointBuilder {
    security: SecurityParameters,
    resolver: Resolver,
    memory: MemoryStore,
    max_attempts_in_flight: usize,
    mptcp: bool,
    fast_open: bool,
    forwards: Forwards,
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
            forwards: Forwards::new(),
            local_addresses: Vec::new(),
            #[cfg(feature = "sctp")]
            sctp_encapsulation_port: crate::sctp::ENCAPSULATION_PORT,
            #[cfg(feature = "sctp")]
            sctp_association: AssociationConfig::default(),
            #[cfg(feature = "sctp")]
            sctp_local_addresses: Vec::new(),
        }
    }
}

impl EndpointBuilder {
    /// Whom to trust; [`SecurityParameters::platform`] unless said.
    pub fn security(mut self, security: SecurityParameters) -> Self {
        self.security = security;
        self
    }

    /// Whom to ask for names; [`Resolver::system`] unless said.
    pub fn resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// Where to keep what races learn; in this process unless said.
    pub fn memory(mut self, memory: MemoryStore) -> Self {
        self.memory = memory;
        self
    }

    /// How many attempts all races together may have in flight: 256 unless said, at least 1.
    pub fn max_attempts_in_flight(mut self, attempts: usize) -> Self {
        self.max_attempts_in_flight = attempts;
        self
    }

    /// Speaks MPTCP where a policy asks for TCP: it falls back by itself where the peer or the
    /// path has none, at the cost of an option in the first packet. Off unless asked.
    pub fn mptcp(mut self, mptcp: bool) -> Self {
        self.mptcp = mptcp;
        self
    }

    /// TCP Fast Open (RFC 7413) where nothing races: in a race it would win before the peer has
    /// answered. Off unless asked, for some paths swallow it.
    pub fn fast_open(mut self, fast_open: bool) -> Self {
        self.fast_open = fast_open;
        self
    }

    /// The addresses of this host that connections leave from; the routing's choice unless said, and
    /// for the address family that none is of. Connections over TCP and MPTCP take them in turn, so
    /// that more of them can be open, or waited out after their end (TIME-WAIT), than one address
    /// has ports. QUIC and SCTP have one socket for all and take the first of the peer's family, SCTP
    /// unless it has its own (`sctp_local_addresses`).
    pub fn local_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.local_addresses = addresses.into_iter().collect();
        self
    }

    /// The UDP port at which peers await SCTP inside UDP (RFC 6951): 9899 unless said.
    #[cfg(feature = "sctp")]
    pub fn sctp_encapsulation_port(mut self, port: u16) -> Self {
        self.sctp_encapsulation_port = port;
        self
    }

    /// How SCTP associations behave.
    #[cfg(feature = "sctp")]
    pub fn sctp_association(mut self, association: AssociationConfig) -> Self {
        self.sctp_association = association;
        self
    }

    /// The addresses of this host that SCTP associations use, and that their peers are told of, at
    /// most eight. Unless said, all that have a scope which the peer shares (no private ones if the
    /// peer's is global), also as they come and go ([`AssociationConfig::auto_asconf`]).
    #[cfg(feature = "sctp")]
    pub fn sctp_local_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.sctp_local_addresses = addresses.into_iter().collect();
        self
    }

    /// Connects to port `to` where `port` of `host` is asked for, as a port forwarded elsewhere
    /// wants it. Names and certificates stay the target's; another address than DNS gives is the
    /// part of [`Resolver::overriding`], for the port that is connected to.
    pub fn forwarding(mut self, host: Host, port: u16, to: u16) -> Self {
        self.forwards.insert((host, port), to);
        self
    }

    /// Makes the endpoint. Sockets are opened when they are needed.
    pub fn build(self) -> Result<Endpoint, Error> {
        let secret = self.memory.secret();
        let network = Network::new(self.resolver.clone(), secret);
        let (fast_open, mptcp) = (self.fast_open, self.mptcp);
        let connector = Connector::new(
            &self.security,
            #[cfg(feature = "quic")]
            network.clone(),
            fast_open,
            mptcp,
            LocalAddresses::new(&self.local_addresses),
        )?;
        #[cfg(feature = "sctp")]
        let connector = {
            let clients = Clients::new(self.sctp_encapsulation_port, self.sctp_association);
            let own = match self.sctp_local_addresses.is_empty() {
                true => one_of_each_family(&self.local_addresses),
                false => self.sctp_local_addresses,
            };
            connector.with_sctp(clients.at(own))
        };
        let shared = Shared {
            connector,
            network,
            resolver: self.resolver,
            memory: self.memory,
            trust: self.security.name(&secret),
            forwards: self.forwards,
            limit: AttemptLimit::new(self.max_attempts_in_flight),
            tally: Tally::default(),
        };
        Ok(Endpoint { shared: Arc::new(shared) })
    }
}

/// The first address of each family.
#[cfg(feature = "sctp")]
fn one_of_each_family(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let first = |v4: bool| addresses.iter().find(|address| address.is_ipv4() == v4).copied();
    [first(true), first(false)].into_iter().flatten().collect()
}

impl Endpoint {
    /// Starts with the defaults.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// The resolver in use.
    pub fn resolver(&self) -> &Resolver {
        &self.shared.resolver
    }

    /// The memory in use.
    pub fn memory(&self) -> &MemoryStore {
        &self.shared.memory
    }

    /// Whom connections to this host trust, for the memory. `certificate_host` is the host that the
    /// certificate must be good for, if another was named.
    pub(crate) fn trust(&self, host: &Host, certificate_host: Option<&Host>) -> Trust {
        let certificate_host = certificate_host.filter(|named| *named != host).cloned();
        Trust { parameters: self.shared.trust.clone(), certificate_host }
    }

    /// What became of the attempts of all races over one transport, so far.
    pub fn attempts(&self, transport: Transport) -> AttemptCounts {
        self.shared.tally.of(transport)
    }

    /// Waits until every association of SCTP that was opened here has ended. One that is dropped
    /// ends in order, for which it needs a round trip (RFC 9260 §9.2): a program that leaves before
    /// leaves its peer waiting. Associations in use are waited for as well, so set a limit. A
    /// kernel that speaks SCTP ends its associations by itself; they are not waited for.
    #[cfg(feature = "sctp")]
    pub async fn associations_ended(&self) {
        self.shared.connector.sctp().ended().await;
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    /// Begins to describe a connection to this target.
    pub fn preconnection(&self, mut target: Target) -> Preconnection {
        let forwards = &self.shared.forwards;
        if !forwards.is_empty()
            && let Some(port) = forwards.get(&(target.host.clone(), target.port))
        {
            target.port = *port;
        }
        Preconnection::new(self.clone(), target)
    }

    /// The network as it is now.
    pub async fn network_view(&self) -> NetworkView {
        (*self.shared.network.view().await).clone()
    }

    pub(crate) fn network(&self) -> &Network {
        &self.shared.network
    }

    pub(crate) fn limit(&self) -> &AttemptLimit {
        &self.shared.limit
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.shared.connector
    }

    /// Connects to exactly this candidate, without a race, without memory. The certificate must
    /// be good for `host`. Dropping the future closes the attempt.
    ///
    /// # Errors
    /// Says how far the attempt came and what ended it. There is no deadline here but the
    /// transport's own.
    pub async fn attempt(
        &self,
        host: &Host,
        candidate: Candidate,
        initial_rtt: Option<Duration>,
    ) -> Result<Connection, Failure> {
        let attempt = Attempt {
            candidate,
            server_name: server_name(host),
            initial_rtt,
            origin: Instant::now(),
            alone: true,
            until_first_byte: false,
            opening: None,
            #[cfg(feature = "sctp")]
            go_on: None,
            #[cfg(feature = "sctp")]
            encapsulation_port: None,
            #[cfg(feature = "quic")]
            quic_config: None,
        };
        let established = attempt.run(&self.shared.connector, &Reporter::none()).await?;
        Ok(Connection::new(
            established.transport,
            established.info,
            Feedback::none(),
            established.said,
        ))
    }
}
