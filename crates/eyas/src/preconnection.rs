//! Describes a connection before it is established (RFC 9622 §6).

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use eyas_race::candidate::Security;
use eyas_race::dns::{DnsAnswer, DnsRecords};
use eyas_race::evidence::TrustContext;
use eyas_race::io::NetworkView;
use eyas_race::plan::{Plan, PlanRequest, plan};
use eyas_race::policy::Policy;
use eyas_race::race::RaceSetup;
use eyas_race::resolve::RaceResolution;
use eyas_race::target::{Target, TargetHost, TargetService};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::clock::RaceClock;
use crate::{ConnectError, Connection, Endpoint, Initiation, Resolver};

/// How long a dry run waits for DNS.
const PLAN_TIMEOUT: Duration = Duration::from_secs(10);

/// Appended to the name of the trust in the memory if QUIC uses the caller's configuration.
#[cfg(feature = "quic")]
const CUSTOM_QUIC: &str = "+quic";

/// Describes a connection before it is established: the target and how to reach it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Preconnection {
    endpoint: Endpoint,
    target: Target,
    policy: Policy,
    seed: Option<u64>,
    peer: PeerParameters,
    until_spoken: bool,
    has_task: bool,
    allowed: Option<AllowedAddresses>,
}

/// What is known about the peer beyond the target.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerParameters {
    /// The host that its certificate must be valid for, if that is not the target's.
    pub(crate) certificate_host: Option<TargetHost>,
    /// Whether its name may be in the clear, whatever the endpoint's ECH policy.
    pub(crate) without_ech: bool,
    /// The UDP port at which it expects SCTP, if that is not the one of the endpoint.
    #[cfg(feature = "sctp")]
    pub(crate) encapsulation_port: Option<u16>,
    /// The configuration of QUIC attempts, if it replaces the endpoint's.
    #[cfg(feature = "quic")]
    pub(crate) quic_config: Option<quinn::ClientConfig>,
    /// Whether the caller keeps QUIC connections alive.
    #[cfg(feature = "quic")]
    pub(crate) without_keep_alive: bool,
}

impl Preconnection {
    pub(crate) fn new(endpoint: Endpoint, target: Target) -> Self {
        let mut policy = Policy::default();
        if let TargetService::Plain { transports, .. } = &target.service
            && !transports.is_empty()
        {
            policy.transports.clone_from(transports);
        }
        Self {
            endpoint,
            target,
            policy,
            seed: None,
            peer: PeerParameters::default(),
            until_spoken: false,
            has_task: true,
            allowed: None,
        }
    }

    /// Sets the policy. The default is [`Policy::default`], with the transports of the target if it
    /// names them ([`Target::plain`]). Policies from user input should be
    /// checked with [`Policy::validated`] first.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the seed of all random decisions, which makes a race reproducible. The default is a
    /// random seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the host for which the peer's certificate must be valid, and which is sent to the peer
    /// as server name, if it differs from the target's: an alternative service must present a
    /// certificate for its origin (RFC 7838 §2.1). The memory is still keyed by the target.
    pub fn certificate_for(mut self, host: TargetHost) -> Self {
        self.peer.certificate_host = Some(host);
        self
    }

    /// Sends the name of the peer in the clear, whatever the endpoint's [ECH
    /// parameters](crate::SecurityParameters::with_ech), which are about the destination: for a proxy on the way there.
    pub fn without_ech(mut self) -> Self {
        self.peer.without_ech = true;
        self
    }

    /// Sets the peer's UDP port for SCTP over UDP (RFC 6951). The default is that of the endpoint.
    /// The memory does not distinguish between ports.
    #[cfg(feature = "sctp")]
    pub fn sctp_encapsulation_port(mut self, port: u16) -> Self {
        self.peer.encapsulation_port = Some(port);
        self
    }

    /// Sets the configuration of QUIC attempts, with its TLS, ALPN and transport parameters, in
    /// place of one created by the endpoint, for WebTransport, MoQ and other protocols that bring
    /// their own. [`Connection::quic`](crate::Connection::quic) then returns the connection.
    ///
    /// - Set the same ALPN on the target ([`Target::with_alpn`]), because it is part of the
    ///   memory's key.
    /// - Trust is decided by this configuration's TLS. The other transports use the endpoint's
    ///   trust, so configure the same trust for both, or race QUIC only.
    /// - The memory keeps outcomes of the security layer separate from those under the endpoint's
    ///   own trust, but does not distinguish between two such configurations.
    /// - The round-trip time known to the memory is not used as the initial estimate.
    #[cfg(feature = "quic")]
    pub fn quic_config(mut self, config: quinn::ClientConfig) -> Self {
        self.peer.quic_config = Some(config);
        self
    }

    /// Leaves it to the caller to keep a QUIC connection alive while something needs it, by
    /// [`probe_quic`](crate::probe_quic) or traffic of its own. Otherwise a packet is sent after 10 s
    /// of silence, for as long as the connection is open. Without either it ends after 30 s.
    #[cfg(feature = "quic")]
    pub fn without_quic_keep_alive(mut self) -> Self {
        self.peer.without_keep_alive = true;
        self
    }

    /// An attempt wins only when its peer's application sends its first byte, rather than when its
    /// transport and security are established: a peer that accepts connections and then stays
    /// silent does not win. If the client speaks first, pass what every attempt is to send, which
    /// must be safe to send to several peers, to [`Initiation::open_with`]; if there is no such
    /// thing, call [`Initiation::open_without`], and the race is decided like any other. One of
    /// them must be called unless the peer speaks first. This is for targets without security,
    /// whose callers bring their own in the bytes that they send. For a target with security this
    /// has no effect; use [`Policy::win_at`] instead.
    pub fn until_spoken(mut self) -> Self {
        self.until_spoken = true;
        self
    }

    /// Runs the race without a task of its own, for callers who connect often: it proceeds only while a method of its
    /// [`Initiation`] is awaited, and in the background once it is [detached](Initiation::detach), which then must
    /// happen within a tokio runtime.
    pub fn without_task(mut self) -> Self {
        self.has_task = false;
        self
    }

    /// Ignores the addresses returned by DNS for which `allowed` returns `false`. A target that is
    /// an address itself is not checked.
    pub fn allowing(mut self, allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        self.allowed = Some(AllowedAddresses(Arc::new(allowed)));
        self
    }

    /// Races to the target and returns the first working connection. The rest of the race only
    /// feeds the memory; use [`initiate`](Self::initiate) to get the better connection too.
    ///
    /// # Errors
    /// Lists every candidate with its cause of failure. Dropping the future closes everything.
    pub async fn connect(self) -> Result<Connection, ConnectError> {
        let mut initiation = self.without_task().initiate();
        let connection = initiation.usable().await?;
        initiation.detach();
        Ok(connection)
    }

    /// Starts the race. Must be called within a tokio runtime.
    pub fn initiate(self) -> Initiation {
        let seed = self.seed_or_random();
        let trust = self.trust();
        let network = self.endpoint.network().view_without_waiting();
        let until_spoken = self.until_spoken && self.target.security == Security::None;
        let setup = setup(&self.endpoint, self.target, &trust, self.policy, seed, &network);
        let Self { endpoint, peer, allowed, has_task, .. } = self;
        let parameters = RaceParameters { setup, peer, until_spoken, has_task, allowed };
        Initiation::start(endpoint, parameters)
    }

    /// Returns what would be tried, in which order and why. This queries DNS but connects to
    /// nothing.
    pub async fn plan(&self) -> Plan {
        let clock = RaceClock::start();
        let network = self.endpoint.network().view().await;
        let seed = self.seed_or_random();
        let trust = self.trust();
        let (target, policy) = (self.target.clone(), self.policy.clone());
        let setup = setup(&self.endpoint, target, &trust, policy, seed, &network);
        let mut resolution = RaceResolution::new(
            &setup.target,
            &setup.network,
            &setup.policy,
            setup.seed,
            clock.now(),
        );
        let resolver = self.endpoint.resolver();
        let resolve = async {
            let mut queries = FuturesUnordered::new();
            loop {
                while let Some(query) = resolution.poll_query() {
                    let is_absolute = Resolver::is_absolute(&self.target, &query);
                    queries.push(async move {
                        resolver.query_as(&query, self.target.port, is_absolute).await
                    });
                }
                let Some(answer) = queries.next().await else { break };
                resolution.handle_answer(clock.now(), answer);
            }
        };
        // Plan without the answers that have not arrived by then.
        let _ = tokio::time::timeout(PLAN_TIMEOUT, resolve).await;
        plan(&PlanRequest {
            target: &setup.target,
            policy: &setup.policy,
            services: &resolution.services(),
            notes: &resolution.notes(),
            view: &setup.view,
            network: &setup.network,
            seed: setup.seed,
            now: clock.now(),
        })
    }

    /// Returns whom the attempts trust, for the memory.
    fn trust(&self) -> TrustContext {
        let trust = self.endpoint.trust(&self.target.host, self.peer.certificate_host.as_ref());
        #[cfg(feature = "quic")]
        if self.peer.quic_config.is_some() {
            let parameters = format!("{}{CUSTOM_QUIC}", trust.parameters);
            return TrustContext { parameters, ..trust };
        }
        trust
    }

    fn seed_or_random(&self) -> u64 {
        self.seed.unwrap_or_else(random_seed)
    }
}

/// The parameters of a race.
pub(crate) struct RaceParameters {
    pub(crate) setup: RaceSetup,
    pub(crate) peer: PeerParameters,
    pub(crate) until_spoken: bool,
    pub(crate) has_task: bool,
    pub(crate) allowed: Option<AllowedAddresses>,
}

/// Which addresses may be connected to.
#[derive(Clone)]
pub(crate) struct AllowedAddresses(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl AllowedAddresses {
    /// Removes addresses that are not allowed.
    pub(crate) fn filter(&self, answer: &mut DnsAnswer) {
        let keep = |ip: IpAddr| (self.0)(ip);
        match &mut answer.records {
            Ok(DnsRecords::A(addresses)) => addresses.retain(|ip| keep((*ip).into())),
            Ok(DnsRecords::Aaaa(addresses)) => addresses.retain(|ip| keep((*ip).into())),
            Ok(DnsRecords::Https(records)) => {
                for record in records {
                    record.ipv4_hint.retain(|ip| keep((*ip).into()));
                    record.ipv6_hint.retain(|ip| keep((*ip).into()));
                }
            }
            Err(_) => {}
        }
    }
}

impl fmt::Debug for AllowedAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AllowedAddresses")
    }
}

/// Returns an unpredictable seed, from the keys that the standard library generates for its maps.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0_u8)
}

/// Returns what a race needs to know at its start.
pub(crate) fn setup(
    endpoint: &Endpoint,
    target: Target,
    trust: &TrustContext,
    mut policy: Policy,
    seed: u64,
    network: &NetworkView,
) -> RaceSetup {
    if policy.address_table.is_none() {
        policy.address_table = endpoint.resolver().address_table();
    }
    let ech = endpoint.connector().ech();
    // With configurations of its own, it does not need those of records.
    policy.rely_on_ech |= target.security != Security::None && ech.wants_records();
    RaceSetup {
        view: endpoint.memory_view(&network.id, &target.host, trust),
        target,
        policy,
        network: network.clone(),
        seed,
    }
}
