//! The passive side: TCP, MPTCP, SCTP, TLS over them, and QUIC on one port number.

#[cfg(feature = "sctp")]
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyas_race::candidate::{AlpnName, Transport};
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::SctpListener;
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::protocol::config::AssociationConfig;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::security::{ClientKeys, KeyExchangeGroups};
use crate::sockets::BoundAddress;
use crate::{Connection, Error, KeyFingerprint, ServerIdentity};

mod bind;
mod handshakes;
#[cfg(feature = "quic")]
mod quic;
#[cfg(feature = "sctp")]
mod sctp;
mod stream;

/// The maximum number of connections that are ready and not yet accepted by the caller; beyond it,
/// new peers wait in the kernel's queue.
const MAX_BACKLOG: usize = 64;
/// How long the handshake of a peer may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The addresses, transports and identity of a listener.
#[derive(Clone, Debug)]
pub struct ListenParameters {
    address: SocketAddr,
    transports: Vec<Transport>,
    security: Option<ServerIdentity>,
    /// The keys that clients may have; `None` requests no client certificates.
    client_keys: Option<ClientKeys>,
    groups: KeyExchangeGroups,
    alpn: Vec<AlpnName>,
    notices: ListenerNotices,
    /// quinn's defaults if `None`.
    #[cfg(feature = "quic")]
    quic_transport: Option<Arc<quinn::TransportConfig>>,
    #[cfg(feature = "sctp")]
    sctp_encapsulation_port: u16,
    #[cfg(feature = "sctp")]
    sctp_optional: bool,
    #[cfg(feature = "sctp")]
    sctp_addresses: Vec<IpAddr>,
    #[cfg(feature = "sctp")]
    sctp_association: AssociationConfig,
}

impl ListenParameters {
    /// Listens for TCP at this address, without security. Port 0 chooses a free port, the same for
    /// all transports; `[::]` serves IPv4 too.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            transports: vec![Transport::Tcp],
            security: None,
            client_keys: None,
            groups: KeyExchangeGroups::default(),
            alpn: Vec::new(),
            notices: ListenerNotices::default(),
            #[cfg(feature = "quic")]
            quic_transport: None,
            #[cfg(feature = "sctp")]
            sctp_encapsulation_port: eyas_sctp_tokio::ENCAPSULATION_PORT,
            #[cfg(feature = "sctp")]
            sctp_optional: false,
            #[cfg(feature = "sctp")]
            sctp_addresses: Vec::new(),
            #[cfg(feature = "sctp")]
            sctp_association: AssociationConfig::default(),
        }
    }

    /// Sets the transports. MPTCP serves TCP peers as well; it is an error if the kernel lacks
    /// MPTCP, unless TCP is listed too. QUIC requires [`security`](Self::security).
    #[must_use]
    pub fn transports(mut self, transports: impl IntoIterator<Item = Transport>) -> Self {
        self.transports = transports.into_iter().collect();
        self
    }

    /// Serves over TLS, with this identity.
    #[must_use]
    pub fn security(mut self, identity: ServerIdentity) -> Self {
        self.security = Some(identity);
        self
    }

    /// Accepts only clients that prove possession of a key for which `allowed` returns `true`.
    /// Clients must use TLS 1.3 with a certificate, of which only the key is checked. The function
    /// is called once per connection by the task that performs the handshake, so it must not block.
    /// SCTP inside UDP and DTLS then asks clients for their certificates, too, and has a DTLS session
    /// for each path.
    #[must_use]
    pub fn client_keys(
        mut self,
        allowed: impl Fn(&KeyFingerprint) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.client_keys = Some(ClientKeys(Arc::new(allowed)));
        self
    }

    /// Requires the key exchange X25519MLKEM768 (RFC 10024) of clients that use TLS or QUIC. DTLS,
    /// which has nothing of the kind, is not affected.
    #[must_use]
    pub fn require_post_quantum(mut self) -> Self {
        self.groups = KeyExchangeGroups::post_quantum();
        self
    }

    /// Sets the application protocols, most preferred first. Each is offered over the transports
    /// that [carry](Transport::carries) it.
    #[must_use]
    pub fn with_alpn<A: Into<AlpnName>>(mut self, alpn: impl IntoIterator<Item = A>) -> Self {
        self.alpn = alpn.into_iter().map(Into::into).collect();
        self
    }

    /// Calls `observer` with the reason while TCP and MPTCP peers cannot be accepted, for example
    /// because the process has run out of descriptors. It is called at most every ten seconds, by
    /// the task that accepts, so it must not block. Accepting resumes by itself.
    #[must_use]
    pub fn notices(mut self, observer: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.notices = ListenerNotices(Some(Arc::new(observer)));
        self
    }

    /// Sets the limits and timers of QUIC connections, in place of quinn's defaults.
    #[cfg(feature = "quic")]
    #[must_use]
    pub fn quic_transport(mut self, transport: quinn::TransportConfig) -> Self {
        self.quic_transport = Some(Arc::new(transport));
        self
    }

    /// Sets the UDP port for SCTP over UDP (RFC 6951), in place of 9899; 0 chooses a free port.
    #[cfg(feature = "sctp")]
    #[must_use]
    pub fn sctp_encapsulation_port(mut self, port: u16) -> Self {
        self.sctp_encapsulation_port = port;
        self
    }

    /// Listens without SCTP over UDP if its UDP port is taken and there are other transports;
    /// [`Listener::sctp_missing`] then returns why.
    #[cfg(feature = "sctp")]
    #[must_use]
    pub fn sctp_optional(mut self, optional: bool) -> Self {
        self.sctp_optional = optional;
        self
    }

    /// Adds local addresses for SCTP, which are also announced to its peers. If the listener's
    /// address is unspecified, SCTP is served at all local addresses unless some are given here.
    #[cfg(feature = "sctp")]
    #[must_use]
    pub fn sctp_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.sctp_addresses = addresses.into_iter().collect();
        self
    }

    /// Sets the configuration of SCTP associations.
    #[cfg(feature = "sctp")]
    #[must_use]
    pub fn sctp_association(mut self, association: AssociationConfig) -> Self {
        self.sctp_association = association;
        self
    }

    fn stream_alpn(&self) -> Vec<Vec<u8>> {
        self.alpn_over(Transport::Tcp)
    }

    fn tls(&self) -> Result<Option<tokio_rustls::TlsAcceptor>, Error> {
        let Some(identity) = &self.security else { return Ok(None) };
        let mut config = self.server_config(identity)?;
        config.alpn_protocols = self.stream_alpn();
        Ok(Some(tokio_rustls::TlsAcceptor::from(Arc::new(config))))
    }

    /// Returns the TLS configuration that all transports share.
    fn server_config(&self, identity: &ServerIdentity) -> Result<rustls::ServerConfig, Error> {
        match &self.client_keys {
            Some(clients) => identity.server_config_for(clients, &self.groups),
            None => identity.config_for_all(&self.groups),
        }
    }

    #[cfg(feature = "quic")]
    fn quic_alpn(&self) -> Vec<Vec<u8>> {
        self.alpn_over(Transport::Quic)
    }

    fn alpn_over(&self, transport: Transport) -> Vec<Vec<u8>> {
        let carried = self.alpn.iter().filter(|protocol| transport.carries(protocol));
        carried.map(|protocol| protocol.clone().into()).collect()
    }
}

/// Accepts connections over all its transports (RFC 9622 §7.2). Dropping it stops listening at
/// once; accepted connections stay open.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    ready: Mutex<mpsc::Receiver<Connection>>,
    _tasks: JoinSet<()>,
    #[cfg(feature = "quic")]
    quic: Option<quinn::Endpoint>,
    #[cfg(feature = "sctp")]
    sctp: Option<Arc<SctpListener>>,
    #[cfg(feature = "sctp")]
    sctp_missing: Option<String>,
}

/// What every accepting task needs.
#[derive(Clone)]
struct AcceptContext {
    ready: mpsc::Sender<Connection>,
    notices: ListenerNotices,
}

impl AcceptContext {
    /// Waits until the queue has space for another connection; returns false once the listener is
    /// dropped.
    async fn has_space(&self) -> bool {
        self.ready.reserve().await.is_ok()
    }

    /// Reports why no peer can be accepted at the moment.
    fn notify(&self, error: &std::io::Error) {
        tracing::warn!(%error, "cannot accept at the moment");
        if let Some(notices) = &self.notices.0 {
            notices(crate::sockets::exhausted(error));
        }
    }
}

/// The caller's observer of errors while accepting.
#[derive(Clone, Default)]
struct ListenerNotices(Option<Arc<dyn Fn(String) + Send + Sync>>);

impl std::fmt::Debug for ListenerNotices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ListenerNotices")
    }
}

impl Listener {
    /// Binds all transports to one port number. Must be called within a tokio runtime.
    pub async fn bind(parameters: ListenParameters) -> Result<Self, Error> {
        let sockets = bind::bind(&parameters)?;
        Self::start(&parameters, sockets)
    }

    /// Listens on sockets that are already bound to an address, such as those of a service manager.
    /// Of the transports, TCP, MPTCP and QUIC are served as far as there is a socket: what a stream
    /// listener accepts depends on the protocol that it was opened for. The sockets of SCTP are opened
    /// as by [`bind`](Self::bind), at the same address. The parameters' own address has no effect.
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the parameters are inconsistent, there is no socket, or SCTP cannot be served.
    pub fn from_bound(bound: BoundAddress, parameters: &ListenParameters) -> Result<Self, Error> {
        let sockets = bind::selected(bound, parameters)?;
        Self::start(parameters, sockets)
    }

    fn start(parameters: &ListenParameters, sockets: BoundAddress) -> Result<Self, Error> {
        let (sender, receiver) = mpsc::channel(MAX_BACKLOG);
        let context = AcceptContext { ready: sender, notices: parameters.notices.clone() };
        let mut tasks = JoinSet::new();
        let tls = parameters.tls()?;
        let address = sockets.address;
        if let Some(tcp) = sockets.tcp {
            tasks.spawn(stream::accept_all(tcp, tls.clone(), context.clone()));
        }
        #[cfg(feature = "sctp")]
        let (address, sctp, sctp_missing) = {
            let sctp::SctpSockets { address, listener, missing } =
                sctp::listen(parameters, address)?;
            let listener = listener.map(Arc::new);
            if let Some(listener) = &listener {
                let has_client_keys = parameters.client_keys.is_some();
                tasks.spawn(sctp::accept_all(
                    Arc::clone(listener),
                    tls,
                    has_client_keys,
                    context.clone(),
                ));
            }
            (address, listener, missing)
        };
        #[cfg(feature = "quic")]
        let quic = match sockets.udp {
            None => None,
            Some(udp) => {
                let endpoint = quic::endpoint(udp, parameters)?;
                tasks.spawn(quic::accept_all(endpoint.clone(), context));
                Some(endpoint)
            }
        };
        Ok(Self {
            address,
            ready: Mutex::new(receiver),
            _tasks: tasks,
            #[cfg(feature = "quic")]
            quic,
            #[cfg(feature = "sctp")]
            sctp,
            #[cfg(feature = "sctp")]
            sctp_missing,
        })
    }

    /// Returns the address it listens on, with the port number shared by all transports.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next connection whose handshake is complete. Failed handshakes are only logged
    /// (`tracing`, level debug). Cancel-safe.
    pub async fn accept(&self) -> Connection {
        match self.ready.lock().await.recv().await {
            Some(connection) => connection,
            // Only when the runtime is being shut down: nothing more can come.
            None => std::future::pending().await,
        }
    }

    /// Returns the SCTP listener, for its counters.
    #[cfg(feature = "sctp")]
    pub fn sctp(&self) -> Option<&SctpListener> {
        self.sctp.as_deref()
    }

    /// Returns why SCTP over UDP is not served, if it was requested as optional
    /// ([`ListenParameters::sctp_optional`]) and is missing.
    #[cfg(feature = "sctp")]
    pub fn sctp_missing(&self) -> Option<&str> {
        self.sctp_missing.as_deref()
    }

    /// Returns the QUIC endpoint, for a graceful shutdown: stop accepting, then wait until it is
    /// idle.
    #[cfg(feature = "quic")]
    pub fn quic(&self) -> Option<&quinn::Endpoint> {
        self.quic.as_ref()
    }
}

/// Returns the time since `start`.
fn since(start: Instant) -> Option<Duration> {
    Some(start.elapsed())
}
