//! The proxy: its sockets, the accepting of clients, and its shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::sockets::{self, BindError, BoundAddress, ReportThrottle, StreamProtocol, WantedSockets};
use eyas::{Endpoint, ServerIdentity};
use eyas_http::metrics;
use eyas_http::serve::{
    AltSvcPolicy, ClientCertificates, SctpService, ServeError, Server, StreamServer,
};
use eyas_relay::accept::accept_next;
use eyas_relay::device::DeviceHandle;
use eyas_relay::handshake::MAX_HEAD;
use eyas_relay::rules::DestinationRules;
use eyas_relay::via::UpstreamProxy;
use eyas_relay::via::lanes::ProxyLanes;
use eyas_sctp_tokio::SctpListener;
use socket2::SockRef;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::ClientAdmission;
use crate::shared::{ProxyObservers, SharedProxy};
use crate::stats::{ProxyCounters, ProxyStats};
use crate::streams::StreamService;
use crate::users::ProxyUsers;
use crate::{ProxyClientReport, ProxyLimits, connection};

/// A proxy; see [`Proxy::builder`].
#[derive(Debug)]
pub struct Proxy;

impl Proxy {
    /// Returns a builder of a proxy that connects with this endpoint and its memory.
    pub fn builder(endpoint: Endpoint) -> ProxyBuilder {
        ProxyBuilder {
            endpoint,
            addresses: Vec::new(),
            policy: Policy { transports: vec![Transport::Tcp], ..Policy::default() },
            rules: DestinationRules::default(),
            users: None,
            via: None,
            security: None,
            client_certificates: None,
            sctp: None,
            limits: ProxyLimits::default(),
            metrics: None,
            observers: ProxyObservers::default(),
            runtimes: Vec::new(),
        }
    }
}

/// Builds a [`Proxy`].
#[derive(Debug)]
#[must_use]
pub struct ProxyBuilder {
    endpoint: Endpoint,
    addresses: Vec<SocketAddr>,
    policy: Policy,
    rules: DestinationRules,
    users: Option<Arc<ProxyUsers>>,
    via: Option<UpstreamProxy>,
    security: Option<ServerIdentity>,
    client_certificates: Option<ClientCertificates>,
    sctp: Option<SctpService>,
    limits: ProxyLimits,
    metrics: Option<SocketAddr>,
    observers: ProxyObservers,
    runtimes: Vec<Handle>,
}

/// Why a proxy could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// Anyone could use it.
    #[error(
        "{0} can be reached from other machines, and without users anyone could use the proxy: list users, require certificates, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// The certificate, or those of clients' issuers, cannot be used, or it cannot serve HTTP/3 or SCTP.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl ProxyBuilder {
    /// Adds an address to listen on. The default is 127.0.0.1 with a free port.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// Sets the policy of races. Only the transports that carry plain byte streams are used: TCP
    /// (the default) and MPTCP.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the rules for destinations.
    pub fn rules(mut self, rules: DestinationRules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the users. Without users, and without certificates of clients, it listens only on loopback.
    pub fn users(mut self, users: ProxyUsers) -> Self {
        self.users = Some(Arc::new(users));
        self
    }

    /// Reaches destinations through another proxy, to which it races instead, and which resolves their
    /// names. Datagrams go through it by CONNECT-UDP (RFC 9298).
    pub fn via(mut self, via: UpstreamProxy) -> Self {
        self.via = Some(via);
        self
    }

    /// Uses TLS with clients, with this identity; unencrypted clients are not accepted. Clients may
    /// then also use CONNECT and CONNECT-UDP over HTTP/2 and, on the same UDP port, HTTP/3. UDP ASSOCIATE
    /// is not available.
    pub fn security(mut self, identity: ServerIdentity) -> Self {
        self.security = Some(identity);
        self
    }

    /// With [`security`](Self::security): asks clients for certificates, over every transport. If they
    /// are required, the proxy may listen elsewhere than on loopback without users, too.
    pub fn client_certificates(mut self, certificates: ClientCertificates) -> Self {
        self.client_certificates = Some(certificates);
        self
    }

    /// With [`security`](Self::security): also accepts CONNECT and CONNECT-UDP over HTTP/1.1 on SCTP.
    pub fn sctp(mut self, service: SctpService) -> Self {
        self.sctp = Some(service);
        self
    }

    /// Sets the limits on clients.
    pub fn limits(mut self, limits: ProxyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves metrics in the text format of Prometheus at `http://ADDRESS/metrics`, for anyone who
    /// can reach the address.
    pub fn metrics(mut self, address: SocketAddr) -> Self {
        self.metrics = Some(address);
        self
    }

    /// Sets a function that is called with the outcome of each client. It is called by the serving
    /// tasks, so it must not block.
    pub fn reports(mut self, observer: impl Fn(ProxyClientReport) + Send + Sync + 'static) -> Self {
        self.observers.reports = Some(Arc::new(observer));
        self
    }

    /// Sets a function that is called with problems of the proxy itself, such as running out of
    /// descriptors, at most every ten seconds.
    pub fn notices(mut self, observer: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.observers.notices = Some(Arc::new(observer));
        self
    }

    /// Also accepts TCP clients on these runtimes: whichever has nothing to do serves the next client to its end. With
    /// runtimes of one thread, no step of a client has to wake another thread. They have to run for as long as the
    /// endpoint is in use, which may keep sockets of its own there.
    pub fn also_on(mut self, runtimes: impl IntoIterator<Item = Handle>) -> Self {
        self.runtimes.extend(runtimes);
        self
    }

    /// Binds the sockets and starts serving. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If it would be open to everyone, cannot listen, or cannot use its certificate.
    pub fn start(mut self) -> Result<RunningProxy, ProxyError> {
        if self.addresses.is_empty() {
            self = self.listen((std::net::Ipv4Addr::LOCALHOST, 0).into());
        }
        self.check_is_closed(self.addresses.iter().copied())?;
        let wanted =
            WantedSockets { stream: Some(StreamProtocol::Tcp), udp: self.security.is_some() };
        let bound = sockets::bind(&self.addresses, wanted)?;
        self.start_on(bound)
    }

    /// Returns an error if anyone could use it.
    fn check_is_closed(
        &self,
        mut addresses: impl Iterator<Item = SocketAddr>,
    ) -> Result<(), ProxyError> {
        let is_open = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
        let clients = self.client_certificates.as_ref().filter(|_| self.security.is_some());
        let knows_clients =
            self.users.is_some() || clients.is_some_and(ClientCertificates::are_required);
        match addresses.find(is_open).filter(|_| !knows_clients) {
            Some(address) => Err(ProxyError::Open(address)),
            None => Ok(()),
        }
    }

    /// Starts serving on sockets that are already bound, such as those of a service manager;
    /// [`listen`](Self::listen) has no effect. Sockets for datagrams are used with
    /// [`security`](Self::security).
    ///
    /// # Errors
    /// Those of [`start`](Self::start) except those of binding, and [`ServeError::NoSocket`] if there is no socket.
    pub fn start_on(self, mut bound: Vec<BoundAddress>) -> Result<RunningProxy, ProxyError> {
        if bound.is_empty() {
            return Err(ServeError::NoSocket.into());
        }
        self.check_is_closed(bound.iter().map(|one| one.address))?;
        let addresses: Vec<SocketAddr> = bound.iter().map(|one| one.address).collect();
        let listeners = take_listeners(&mut bound, &self.runtimes)?;
        let mut policy = self.policy;
        policy.deadline = self.limits.connect_time;
        let lanes = |via| ProxyLanes::new(via, self.endpoint.clone(), policy.clone());
        let via = self.via.map(lanes);
        let shared = Arc::new(SharedProxy {
            endpoint: self.endpoint,
            policy,
            rules: Arc::new(DestinationRules { resolved_elsewhere: via.is_some(), ..self.rules }),
            users: RwLock::new(self.users),
            guesses: std::sync::Mutex::default(),
            via,
            admission: ClientAdmission::new(&self.limits),
            associations: Semaphore::new(self.limits.associations.min(Semaphore::MAX_PERMITS)),
            limits: self.limits,
            unanswered: std::sync::Mutex::default(),
            epoch: tokio::time::Instant::now(),
            counters: ProxyCounters::default(),
            observers: self.observers,
            throttle: ReportThrottle::default(),
            drain: CancellationToken::new(),
            abort: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let metrics = match self.metrics {
            Some(address) => {
                let source = Arc::clone(&shared);
                let page = move || crate::metrics::render(&source.stats());
                Some(metrics::start(address, page, &shared.tasks, &shared.drain)?)
            }
            None => None,
        };
        let http = match self.security {
            Some(identity) => {
                let tls = (identity, self.client_certificates);
                Some(serve_http(&shared, tls, self.sctp, bound)?)
            }
            None => None,
        };
        for (runtime, listener) in listeners {
            let streams = http.as_ref().map(eyas_http::serve::Running::streams);
            shared.tasks.spawn_on(accept(Arc::clone(&shared), listener, streams), &runtime);
        }
        Ok(RunningProxy { shared, addresses, metrics, http })
    }
}

/// Takes the listeners for TCP, and returns them for this runtime and once more for each of those.
fn take_listeners(
    bound: &mut [BoundAddress],
    runtimes: &[Handle],
) -> Result<Vec<(Handle, TcpListener)>, BindError> {
    let mut listeners = Vec::new();
    for one in bound {
        let Some(listener) = one.tcp.take() else { continue };
        let copy = |runtime: &Handle| {
            let _inside = runtime.enter();
            let socket = SockRef::from(&listener).try_clone()?;
            Ok((runtime.clone(), TcpListener::from_std(socket.into())?))
        };
        let copies = runtimes.iter().map(copy).collect::<io::Result<Vec<_>>>();
        listeners.extend(copies.map_err(|source| BindError { address: one.address, source })?);
        listeners.push((Handle::current(), listener));
    }
    Ok(listeners)
}

/// Serves HTTP/3 on these sockets, SCTP if requested, and HTTP/2 on the connections passed to it.
fn serve_http(
    shared: &Arc<SharedProxy>,
    (identity, clients): (ServerIdentity, Option<ClientCertificates>),
    sctp: Option<SctpService>,
    bound: Vec<BoundAddress>,
) -> Result<eyas_http::serve::Running, ServeError> {
    let limits = eyas_http::serve::Limits {
        connections: shared.limits.connections,
        connections_per_peer: shared.limits.connections_per_client,
        header_bytes: MAX_HEAD,
        handshake_time: shared.limits.handshake_time,
        header_read_time: shared.limits.handshake_time,
        ..eyas_http::serve::Limits::default()
    };
    let mut server = Server::builder().tls(identity).alt_svc(AltSvcPolicy::Off).limits(limits);
    if let Some(clients) = clients {
        server = server.client_certificates(clients);
    }
    let server =
        server.tunnels(true).extended_connect(["*"]).service(StreamService(Arc::clone(shared)));
    match sctp {
        Some(sctp) => server.sctp(sctp).start_on(bound),
        None => server.start_on(bound),
    }
}

/// Accepts clients until the proxy stops.
async fn accept(shared: Arc<SharedProxy>, listener: TcpListener, streams: Option<StreamServer>) {
    loop {
        let exhausted = |error: &io::Error| {
            if shared.throttle.permits() {
                shared.notify(sockets::exhausted(error));
            }
        };
        let (tcp, client) = tokio::select! {
            () = shared.drain.cancelled() => return,
            accepted = accept_next(|| listener.accept(), exhausted) => accepted,
        };
        shared.counters.accepted();
        match shared.admission.admit_in_turn(client.ip()).await {
            Ok(permit) => {
                let with = (permit, streams.clone());
                let serving = connection::serve(Arc::clone(&shared), tcp, client, with);
                shared.tasks.spawn(serving);
            }
            Err(denial) => {
                shared.counters.over_limit();
                if shared.throttle.permits() {
                    shared.notify(format!("{client} was turned away: {denial}"));
                }
            }
        }
    }
}

/// A running proxy. Dropping it stops it at once.
#[derive(Debug)]
pub struct RunningProxy {
    shared: Arc<SharedProxy>,
    addresses: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
    /// The server for HTTP/2, HTTP/3 and SCTP.
    http: Option<eyas_http::serve::Running>,
}

impl RunningProxy {
    /// Returns the first address that it listens on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Returns all addresses that it listens on.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the SCTP listener, if SCTP was requested and is possible.
    pub fn sctp(&self) -> Option<&SctpListener> {
        self.http.as_ref()?.sctp()
    }

    /// Returns the address of its metrics, if they are served.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> ProxyStats {
        self.shared.stats()
    }

    /// Admits these users from the next client on; those that are connected go on. It has no effect
    /// on a proxy that was started without users, which is only for this machine.
    pub fn replace_users(&self, users: ProxyUsers) {
        let mut current = self.shared.users.write().unwrap_or_else(PoisonError::into_inner);
        if current.is_some() {
            *current = Some(Arc::new(users));
        }
    }

    /// Uses another certificate and key from the next handshake on, over every transport; clients
    /// that are connected go on.
    ///
    /// # Errors
    /// If it cannot be used, or the proxy was started without; the old one then stays.
    pub fn replace_identity(&self, identity: &ServerIdentity) -> Result<(), ProxyError> {
        let http = self.http.as_ref().ok_or(ServeError::NoOwnIdentity)?;
        Ok(http.replace_identity(identity)?)
    }

    /// Verifies the certificates of clients in this way from the next handshake on, over every
    /// transport; clients that are connected go on.
    ///
    /// # Errors
    /// If the roots cannot be used, or the proxy did not ask for certificates when it started; the
    /// old roots then stay.
    pub fn replace_client_certificates(
        &self,
        certificates: &ClientCertificates,
    ) -> Result<(), ProxyError> {
        let http = self.http.as_ref().ok_or(ServeError::NoOwnIdentity)?;
        Ok(http.replace_client_certificates(certificates)?)
    }

    /// Also serves intercepted programs: their packets arrive on `device`, a non-blocking TUN
    /// device without packet headers, in a namespace whose addresses are
    /// [`interception::HOST`](crate::interception::HOST) and whose routes lead to it; the
    /// `listeners`, one for each family, are bound to those addresses there. Must be called within
    /// a tokio runtime.
    ///
    /// # Errors
    /// If they cannot be registered with the runtime.
    pub fn intercept(
        &self,
        device: DeviceHandle,
        listeners: Vec<std::net::TcpListener>,
    ) -> io::Result<()> {
        crate::interception::start(Arc::clone(&self.shared), device, listeners)
    }

    /// Lets intercepted programs reach services of this host: what connects to one of these listeners,
    /// which are bound to loopback addresses of the namespace, is forwarded to the same port on
    /// loopback here, whatever the rules say and without another proxy. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// If they cannot be registered with the runtime.
    pub fn open_host_ports(&self, listeners: Vec<std::net::TcpListener>) -> io::Result<()> {
        crate::interception::host_ports::start(&self.shared, listeners)
    }

    /// Stops accepting clients, lets those that are connected finish within the limits, and then
    /// closes the rest. Returns how many were cut off.
    pub async fn shutdown(mut self) -> usize {
        self.shared.drain.cancel();
        self.shared.tasks.close();
        let (grace, http) = (self.shared.limits.grace, self.http.take());
        let streams = async {
            if let Some(http) = http {
                // Its tunnels are clients of this proxy, and are counted below.
                http.shutdown(grace).await;
            }
        };
        let ending = async {
            let ended = timeout(grace, self.shared.tasks.wait()).await;
            let cut = if ended.is_ok() { 0 } else { self.shared.admission.open() };
            self.shared.abort.cancel();
            cut
        };
        let (cut, ()) = tokio::join!(ending, streams);
        self.shared.tasks.wait().await;
        cut
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        self.shared.drain.cancel();
        self.shared.abort.cancel();
        self.shared.tasks.close();
    }
}
