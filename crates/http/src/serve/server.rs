//! Builds and starts a server.

use std::{
    error::Error,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, atomic::AtomicUsize},
};

use eyas::sockets::{self, BoundAddress, StreamProtocol, WantedSockets};
use http::{Request, Response};
use rustls::server::ResolvesServerCert;
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_service::Service;

use super::{
    Access, AltSvcPolicy, ClientCertificates, Limits, RequestBody, ServeError, ServerIdentity,
    Versions,
    access::AccessLog,
    admission::Admission,
    balancers::Balancers,
    budget::Budget,
    fault::FaultConfig,
    metrics,
    notices::Notices,
    quic,
    running::Running,
    service::{AnyApplication, NotFound, Tower},
    shared::Shared,
    stream,
    stream_server::StreamServer,
    tls::Tls,
    workers::Workers,
};
#[cfg(feature = "sctp")]
use super::{SctpService, sctp};
use crate::metrics::Page;

/// Names that a generated certificate always contains.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// An HTTP server; see [`Server::builder`].
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Returns a builder with the defaults: a free port of the loopback addresses
    /// ([`ServerBuilder::listen_locally`]), all versions of HTTP, a generated certificate and no
    /// service.
    pub fn builder() -> ServerBuilder {
        ServerBuilder {
            addresses: Vec::new(),
            security: Security::SelfSigned(Vec::new()),
            client_certificates: None,
            versions: Versions::ALL,
            alt_svc: AltSvcPolicy::default(),
            application: AnyApplication::new(NotFound),
            limits: Limits::default(),
            early_data: false,
            extended_connect: Vec::new(),
            tunnels: false,
            keeps_field_case: false,
            mptcp: false,
            threads: 0,
            alpn: None,
            fault: None,
            #[cfg(feature = "sctp")]
            sctp: None,
            metrics: None,
            more_metrics: None,
            access_log: None,
            notices: None,
            balancers: None,
        }
    }
}

/// Returns whether connections from an address begin with the PROXY protocol.
struct Sources(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

/// Builds a [`Server`].
#[derive(Debug)]
pub struct ServerBuilder {
    addresses: Vec<SocketAddr>,
    security: Security,
    client_certificates: Option<ClientCertificates>,
    versions: Versions,
    alt_svc: AltSvcPolicy,
    application: AnyApplication,
    limits: Limits,
    early_data: bool,
    extended_connect: Vec<String>,
    tunnels: bool,
    keeps_field_case: bool,
    mptcp: bool,
    threads: usize,
    alpn: Option<Vec<Vec<u8>>>,
    fault: Option<FaultConfig>,
    #[cfg(feature = "sctp")]
    sctp: Option<SctpService>,
    metrics: Option<SocketAddr>,
    more_metrics: Option<metrics::ServiceMetrics>,
    access_log: Option<AccessLog>,
    notices: Option<Notices>,
    balancers: Option<Sources>,
}

#[derive(Debug)]
enum Security {
    Plain,
    SelfSigned(Vec<String>),
    Given(Vec<ServerIdentity>),
    Resolved(Arc<dyn ResolvesServerCert>),
}

impl ServerBuilder {
    /// Adds an address to listen on. With port 0, all addresses of the server share one free port.
    /// An unspecified IPv6 address serves IPv4 as well, unless an IPv4 address is given too.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// Listens on 127.0.0.1 and, if the machine has it, on ::1: `localhost` resolves to both, and
    /// browsers try ::1 first.
    pub fn listen_locally(self, port: u16) -> Self {
        let this = self.listen((Ipv4Addr::LOCALHOST, port).into());
        match std::net::UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) {
            Ok(_) => this.listen((Ipv6Addr::LOCALHOST, port).into()),
            Err(_) => this,
        }
    }

    /// Serves over TLS with this certificate and key.
    pub fn tls(mut self, identity: ServerIdentity) -> Self {
        self.security = Security::Given(vec![identity]);
        self
    }

    /// Serves over TLS with the first of these certificates that has the name for which the client
    /// asks (SNI, RFC 6066 §3), by itself or by a wildcard, and with the first of all if none has it.
    /// With several, SCTP is not served inside DTLS, whose library cannot choose, but with TLS on its
    /// stream. [`start`](Self::start) fails without any.
    pub fn identities(mut self, identities: impl IntoIterator<Item = ServerIdentity>) -> Self {
        self.security = Security::Given(identities.into_iter().collect());
        self
    }

    /// Serves over TLS with certificates that `resolver` chooses in each handshake, by the server
    /// name that the client asks for (SNI, RFC 6066 §3) or otherwise; rustls has
    /// [one by name](rustls::server::ResolvesServerCertUsingSni). SCTP is then not served inside
    /// DTLS, whose library cannot choose, but with TLS on its stream.
    pub fn certificates(mut self, resolver: Arc<dyn ResolvesServerCert>) -> Self {
        self.security = Security::Resolved(resolver);
        self
    }

    /// Asks clients for certificates, over every transport; the service finds them in
    /// [`PeerInfo`](super::PeerInfo::client_certificates). Without TLS this has no effect. SCTP is
    /// then not served inside DTLS, whose library cannot verify them, but with TLS on its stream.
    /// Sessions cannot be resumed, so that every handshake is verified against the roots of the
    /// moment ([`Running::replace_client_certificates`]).
    pub fn client_certificates(mut self, certificates: ClientCertificates) -> Self {
        self.client_certificates = Some(certificates);
        self
    }

    /// Generates a certificate for these names and addresses, in addition to `localhost`, 127.0.0.1
    /// and ::1.
    pub fn names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.security = Security::SelfSigned(names.into_iter().map(Into::into).collect());
        self
    }

    /// Serves without TLS: HTTP/1.0, HTTP/1.1 and HTTP/2 with prior knowledge, not HTTP/3.
    pub fn plain(mut self) -> Self {
        self.security = Security::Plain;
        self
    }

    /// Sets the versions of HTTP to serve. Without HTTP/3 nothing listens on UDP, and with HTTP/3
    /// only nothing on TCP.
    pub fn versions(mut self, versions: Versions) -> Self {
        self.versions = versions;
        self
    }

    /// Sets what responses over TCP announce about alternatives (RFC 7838).
    pub fn alt_svc(mut self, policy: AltSvcPolicy) -> Self {
        self.alt_svc = policy;
        self
    }

    /// Sets the service that answers all requests, over every version of HTTP and every transport:
    /// an `axum::Router`, a stack of tower layers, or any other [`tower_service`]. Without a
    /// service, requests are answered with 404.
    ///
    /// - Each request is answered by a clone of the service, once it is ready.
    /// - Each request has a [`PeerInfo`](super::PeerInfo) in its extensions.
    /// - The request's body is received as the service reads it, with trailers last; `100 Continue`
    ///   is sent when the service starts to read. The response's body is polled when the peer has
    ///   room for more, and may end with trailers; over HTTP/1.1 these are sent only to a client
    ///   that sent `TE: trailers`, and only those named in the response's `Trailer` field.
    /// - If the service fails or panics before it returns a response, the client gets a 500; if its
    ///   body does, the message is cut off (HTTP/1) or the stream is reset. Both are logged by
    ///   `tracing`.
    /// - `Date`, `Content-Length` if known, and `Alt-Svc` are added. `Transfer-Encoding` is
    ///   removed, and over HTTP/2 and HTTP/3 all other connection-specific fields.
    /// - A slow service blocks nothing and is not cut off. A peer that reads or sends less than
    ///   [`Limits::progress_bytes`] in [`Limits::idle_time`] is, with a 408 if there is no response
    ///   yet.
    /// - HTTP/1.1 upgrades (WebSocket, CONNECT) work through `hyper::upgrade::on`. An upgraded
    ///   connection counts until the service drops it, and [`Running::shutdown`] waits for it as
    ///   for a response, but cannot take it from the service. Over HTTP/2 and HTTP/3, WebSockets
    ///   need [`extended_connect`](Self::extended_connect): without it
    ///   `SETTINGS_ENABLE_CONNECT_PROTOCOL` (RFC 8441 §3) is not sent, and browsers then open them
    ///   on a connection over HTTP/1.1.
    pub fn service<S, B>(mut self, service: S) -> Self
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send,
        B: http_body::Body + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        self.application = AnyApplication::new(Tower(service));
        self
    }

    /// Keeps the case of field names over HTTP/1, for a service that passes on the extensions of
    /// messages to and from hyper: a gateway in front of something that minds the case.
    pub fn keep_field_case(mut self, keep: bool) -> Self {
        self.keeps_field_case = keep;
        self
    }

    /// Sets the limits on peers.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Accepts 0-RTT data over QUIC (RFC 9001 §4.6). Early data may be a replay: until the
    /// handshake is complete, requests with safe methods are served and others are answered with
    /// 425 (RFC 8470).
    pub fn early_data(mut self, early_data: bool) -> Self {
        self.early_data = early_data;
        self
    }

    /// Offers extended CONNECT over HTTP/2 (RFC 8441) and HTTP/3 (RFC 9220) for these protocols,
    /// such as `websocket`, or for all with `*`; others are answered with 501 (RFC 9220 §3). A request
    /// has its protocol in the extensions, as a [`hyper::ext::Protocol`]. The
    /// [`service`](Self::service) accepts it with a status of 200 to 299, and then has the stream in
    /// one of two ways:
    ///
    /// - through the bodies of the request and of its response ([`pipe`](crate::pipe) makes a body of
    ///   a stream), whose error resets the stream;
    /// - through `hyper::upgrade::on`, as over HTTP/1.1, if it has dropped the request's body and
    ///   responds without content. That is how `axum::extract::ws` works (its feature `http2`).
    ///
    /// Idle timeouts do not apply to a stream that was accepted, and over HTTP/3 its connection is
    /// kept alive. It counts as a request in flight until the service has dropped it.
    ///
    /// With [`tunnels`](Self::tunnels), a request over HTTP/3 also has
    /// [`StreamDatagrams`](crate::StreamDatagrams) in its extensions, for datagrams in addition to
    /// its stream (RFC 9297 §2.1).
    pub fn extended_connect<P: Into<String>>(
        mut self,
        protocols: impl IntoIterator<Item = P>,
    ) -> Self {
        self.extended_connect.extend(protocols.into_iter().map(Into::into));
        self
    }

    /// Passes CONNECT requests (RFC 9113 §8.5, RFC 9114 §4.4) over HTTP/2 and HTTP/3 to the
    /// [`service`](Self::service), which is then a proxy. It accepts a request with a status of 200
    /// to 299 and communicates through both bodies ([`pipe`](crate::pipe) makes a body of a
    /// stream); over HTTP/1 CONNECT is an upgrade. A tunnel that one end does not read blocks only
    /// itself, and how long it may be idle is up to the service.
    pub fn tunnels(mut self, tunnels: bool) -> Self {
        self.tunnels = tunnels;
        self
    }

    /// Accepts Multipath TCP (RFC 8684) if the kernel supports it; plain TCP works as before.
    pub fn mptcp(mut self, mptcp: bool) -> Self {
        self.mptcp = mptcp;
        self
    }

    /// Serves TCP connections, with everything that their requests cause the service to do, on this many threads
    /// of its own instead of the runtime that it is started in. Each connection stays on one of them, whose runtime
    /// serves it and the others there in turn: a service must not block it, as with any runtime. Requests
    /// that are answered by little work are answered with less, since no thread wakes another.
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count;
        self
    }

    /// Also serves HTTP/1 over SCTP, at the same port number (feature `sctp`).
    #[cfg(feature = "sctp")]
    pub fn sctp(mut self, service: SctpService) -> Self {
        self.sctp = Some(service);
        self
    }

    /// Serves metrics about the server's activity and the cost to its process, in the text format
    /// of Prometheus, at `http://ADDRESS/metrics`. The page is served without TLS to anyone who can
    /// reach the address, and never at the addresses of the service.
    pub fn metrics(mut self, address: SocketAddr) -> Self {
        self.metrics = Some(address);
        self
    }

    /// Adds the service's own metrics to the page of [`metrics`](Self::metrics).
    pub fn more_metrics(mut self, write: impl Fn(&mut Page) + Send + Sync + 'static) -> Self {
        self.more_metrics = Some(metrics::ServiceMetrics(Box::new(write)));
        self
    }

    /// Sets a function that is called for each request once its response has ended. It is called by
    /// the serving tasks, so it must not block.
    pub fn access_log(mut self, log: impl Fn(&Access) + Send + Sync + 'static) -> Self {
        self.access_log = Some(AccessLog(Arc::new(log)));
        self
    }

    /// Calls `observer` with the reason while TCP and MPTCP clients cannot be accepted, for example
    /// because the process has run out of descriptors, at most every ten seconds. It is called by
    /// the accepting tasks, so it must not block.
    pub fn notices(mut self, observer: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.notices = Some(Notices::new(observer));
        self
    }

    /// Expects the [PROXY protocol](crate::proxy_protocol), version 1 or 2, at the start of TCP and
    /// MPTCP connections from the addresses for which `includes` returns `true`, before any TLS: those
    /// of load balancers. Limits, the access log and [`PeerInfo`](super::PeerInfo) then have the client
    /// that it names. A connection from there that begins otherwise is closed; from elsewhere, the
    /// protocol is not understood, since anybody could claim any address. It does not concern QUIC
    /// and SCTP.
    pub fn proxy_protocol(
        mut self,
        includes: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.balancers = Some(Sources(Arc::new(includes)));
        self
    }

    /// Offers exactly these application protocols in TLS, whatever it speaks, for tests of clients that
    /// meet such a server.
    pub fn alpn(mut self, alpn: Vec<Vec<u8>>) -> Self {
        self.alpn = Some(alpn);
        self
    }

    /// Makes long responses fail on purpose, for tests of clients.
    pub fn fault(mut self, fault: FaultConfig) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Binds the sockets and starts serving.
    pub async fn start(mut self) -> Result<Running, ServeError> {
        self.disable_http3_without_tls();
        let with_tcp = self.versions.http1 || self.versions.http2;
        if !with_tcp && !self.versions.http3 {
            return Err(ServeError::NoVersion);
        }
        if self.addresses.is_empty() {
            self = self.listen_locally(0);
        }
        let protocol =
            if self.mptcp { StreamProtocol::MptcpIfPossible } else { StreamProtocol::Tcp };
        let wanted =
            WantedSockets { stream: with_tcp.then_some(protocol), udp: self.versions.http3 };
        let bound = sockets::bind(&self.addresses, wanted)?;
        self.start_on(bound)
    }

    fn disable_http3_without_tls(&mut self) {
        self.versions.http3 &= !matches!(self.security, Security::Plain);
    }

    /// Starts serving on sockets that are already bound, such as those of a parent process. The
    /// [versions](Self::versions) should match the sockets, because they are announced;
    /// [`listen`](Self::listen) and [`mptcp`](Self::mptcp) have no effect.
    ///
    /// # Errors
    /// [`ServeError::NoSocket`] if there is no socket, and the errors of [`start`](Self::start)
    /// except those of binding.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_on(mut self, bound: Vec<BoundAddress>) -> Result<Running, ServeError> {
        self.disable_http3_without_tls();
        let limits = self.limits.clone().usable();
        let tls = self.tls_of_connections()?;
        let addresses: Vec<SocketAddr> = bound.iter().map(|bound| bound.address).collect();
        let port = addresses.first().ok_or(ServeError::NoSocket)?.port();
        #[cfg(feature = "sctp")]
        let sctp = self.bind_sctp(&addresses, tls.as_ref(), &limits)?;
        #[cfg(feature = "sctp")]
        let sctp_udp = sctp.announced_port(tls.is_some());
        #[cfg(not(feature = "sctp"))]
        let sctp_udp = None;
        let alt_svc = self.alt_svc.field(self.versions.http3.then_some(port), sctp_udp);
        let balancers =
            self.balancers.take().map(|Sources(includes)| Balancers::new(includes, &limits));
        let shared = Arc::new(Shared {
            application: self.application.clone(),
            admission: Admission::new(&limits),
            budget: Budget::new(&limits),
            limits,
            counters: Arc::default(),
            handshakes: AtomicUsize::new(0),
            drain: CancellationToken::new(),
            abort: CancellationToken::new(),
            tasks: TaskTracker::new(),
            workers: Workers::start(self.threads).map_err(ServeError::Thread)?,
            alt_svc,
            early_data: self.early_data,
            tunnels: self.tunnels,
            extended_connect: self.extended_connect.clone(),
            fault: self.fault.take(),
            access_log: self.access_log.take(),
            notices: self.notices.take(),
            balancers,
        });
        #[cfg(feature = "sctp")]
        self.spawn_sctp(&shared, &sctp, tls.as_ref())?;
        let protocol = self.protocol(&shared.limits, self.acceptor(tls.as_ref())?);
        let endpoints = self.spawn(&shared, bound, tls.as_ref(), &protocol)?;
        let streams = StreamServer::new(&shared, protocol);
        let metrics = match self.metrics {
            Some(address) => {
                let more = self.more_metrics.take();
                #[cfg(feature = "sctp")]
                let associations = sctp.associations();
                #[cfg(not(feature = "sctp"))]
                let associations = None;
                Some(metrics::start(address, &shared, associations, more)?)
            }
            None => None,
        };
        Ok(Running {
            shared,
            addresses,
            versions: self.versions,
            tls,
            endpoints,
            #[cfg(feature = "sctp")]
            sctp,
            metrics,
            streams,
        })
    }

    /// Returns how connections are secured, if they are.
    fn tls_of_connections(&mut self) -> Result<Option<Tls>, ServeError> {
        let clients = self.client_certificates.as_ref();
        let identities = match std::mem::replace(&mut self.security, Security::Plain) {
            Security::Plain => return Ok(None),
            Security::Resolved(resolver) => {
                return Tls::with_resolver(resolver, clients).map(Some);
            }
            Security::Given(identities) => identities,
            Security::SelfSigned(names) => {
                let names = LOCAL_NAMES.map(str::to_owned).into_iter().chain(names);
                let identity = ServerIdentity::self_signed(names);
                vec![identity.map_err(|cause| ServeError::unusable_identity(&cause))?]
            }
        };
        Tls::with_identities(&identities, clients).map(Some)
    }

    /// Returns the protocol configuration for byte streams.
    fn protocol(&self, limits: &Limits, acceptor: Option<TlsAcceptor>) -> stream::Protocol {
        let connect_options = (!self.extended_connect.is_empty(), self.tunnels);
        stream::Protocol::new(
            limits,
            self.versions,
            acceptor,
            connect_options,
            self.keeps_field_case,
        )
    }

    /// Returns the configured ALPN names, or these if there are none.
    fn alpn_or(&self, names: Vec<String>) -> Vec<Vec<u8>> {
        let names = || names.into_iter().map(String::into_bytes).collect();
        self.alpn.clone().unwrap_or_else(names)
    }

    /// Listens for SCTP at the addresses that the other transports have.
    #[cfg(feature = "sctp")]
    fn bind_sctp(
        &self,
        addresses: &[SocketAddr],
        tls: Option<&Tls>,
        limits: &Limits,
    ) -> Result<sctp::Bound, ServeError> {
        let dtls = tls.and_then(Tls::dtls_identity);
        match self.sctp.filter(|_| self.versions.http1) {
            Some(service) => service.bind(addresses, dtls, limits),
            None => Ok(sctp::Bound::default()),
        }
    }

    #[cfg(feature = "sctp")]
    fn spawn_sctp(
        &self,
        shared: &Arc<Shared>,
        bound: &sctp::Bound,
        tls: Option<&Tls>,
    ) -> Result<(), ServeError> {
        let Some(listener) = &bound.listener else { return Ok(()) };
        let alpn = self.alpn_or(self.versions.sctp_alpn());
        let acceptor = match tls {
            Some(tls) => Some(stream::acceptor(tls, alpn)?),
            None => None,
        };
        let protocol = stream::Protocol::new(
            &shared.limits,
            Versions::HTTP_1,
            acceptor,
            (false, false),
            self.keeps_field_case,
        );
        let accepting = sctp::accept(Arc::clone(shared), protocol, Arc::clone(listener));
        shared.tasks.spawn(accepting);
        Ok(())
    }

    /// Returns how handshakes on byte streams are accepted.
    fn acceptor(&self, tls: Option<&Tls>) -> Result<Option<TlsAcceptor>, ServeError> {
        let alpn = self.alpn_or(self.versions.stream_alpn());
        tls.map(|tls| stream::acceptor(tls, alpn)).transpose()
    }

    fn spawn(
        &self,
        shared: &Arc<Shared>,
        bound: Vec<BoundAddress>,
        tls: Option<&Tls>,
        protocol: &stream::Protocol,
    ) -> Result<Vec<quinn::Endpoint>, ServeError> {
        let quic_alpn = self.alpn_or(self.versions.quic_alpn());
        let mut endpoints = Vec::new();
        for BoundAddress { tcp, udp, .. } in bound {
            if let Some(listener) = tcp {
                let accepting = stream::accept(Arc::clone(shared), protocol.clone(), listener);
                shared.tasks.spawn(accepting);
            }
            if let (Some(socket), Some(tls)) = (udp, tls) {
                let config = quic::server_config(tls, quic_alpn.clone(), shared)?;
                let endpoint = quic::endpoint(socket, tls, config)?;
                shared.tasks.spawn(quic::accept(Arc::clone(shared), endpoint.clone()));
                endpoints.push(endpoint);
            }
        }
        Ok(endpoints)
    }
}
