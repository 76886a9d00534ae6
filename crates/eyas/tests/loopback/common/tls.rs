//! A server over TLS and QUIC with a TLS configuration chosen by the test.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eyas::SecurityParameters;
use eyas::sockets::{self, StreamProtocol, WantedSockets};
use quinn::crypto::rustls::QuicServerConfig;
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions, WebPkiClientVerifier};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The maximum number of handshakes whose outcome has not been read yet.
const MAX_HANDSHAKES: usize = 16;

/// A self-signed certificate and its key.
pub(crate) struct Credentials {
    pub(crate) certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Credentials {
    pub(crate) fn of(name: &str) -> Self {
        Self::of_names(&[name])
    }

    pub(crate) fn of_names(names: &[&str]) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let params = rcgen::CertificateParams::new(names).unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { certificate, key: key.serialize_der() }
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone()).into()
    }

    /// The parameters of a client that trusts it.
    pub(crate) fn trusted(&self) -> SecurityParameters {
        SecurityParameters::platform().with_roots([self.certificate.clone()])
    }

    /// TLS 1.3 without client certificates, or with this one required.
    pub(crate) fn config(&self, client: Option<&Self>) -> rustls::ServerConfig {
        self.config_with(eyas::crypto_provider(), client)
    }

    /// TLS 1.3 with these groups for the key exchange.
    pub(crate) fn config_with_groups(
        &self,
        kx_groups: Vec<&'static dyn SupportedKxGroup>,
    ) -> rustls::ServerConfig {
        self.config_with(CryptoProvider { kx_groups, ..default_provider() }, None)
    }

    fn config_with(&self, provider: CryptoProvider, client: Option<&Self>) -> rustls::ServerConfig {
        let provider = Arc::new(provider);
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap();
        let builder = match client {
            None => builder.with_no_client_auth(),
            Some(client) => {
                let mut roots = RootCertStore::empty();
                roots.add(client.certificate.clone()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        builder.with_single_cert(vec![self.certificate.clone()], self.key()).unwrap()
    }
}

/// The sessions of a server, counting those that are resumed.
#[derive(Debug)]
pub(crate) struct Sessions {
    kept: Arc<ServerSessionMemoryCache>,
    pub(crate) resumed: AtomicUsize,
}

impl Sessions {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { kept: ServerSessionMemoryCache::new(16), resumed: AtomicUsize::new(0) })
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.kept.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.kept.get(key)
    }

    // TLS 1.3 uses a session only once (RFC 8446 appendix C.4).
    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let found = self.kept.take(key);
        self.resumed.fetch_add(usize::from(found.is_some()), Ordering::SeqCst);
        found
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// The peer's certificates, or the error of the handshake.
pub(crate) type Handshake = Result<Vec<CertificateDer<'static>>, String>;

/// A server that answers `ping` with `pong`, to one client at a time.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) handshakes: mpsc::Receiver<Handshake>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) fn start(mut config: rustls::ServerConfig) -> Self {
        let both = WantedSockets { stream: Some(StreamProtocol::Tcp), udp: true };
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let bound = sockets::bind(&[any], both).unwrap().pop().unwrap();
        let (sender, handshakes) = mpsc::channel(MAX_HANDSHAKES);
        let mut tasks = JoinSet::new();
        config.alpn_protocols = vec![b"h3".to_vec()];
        let quic = quinn::Endpoint::new(
            quinn::EndpointConfig::default(),
            Some(quinn::ServerConfig::with_crypto(Arc::new(
                QuicServerConfig::try_from(config.clone()).unwrap(),
            ))),
            bound.udp.unwrap(),
            Arc::new(quinn::TokioRuntime),
        );
        tasks.spawn(serve_quic(quic.unwrap(), sender.clone()));
        config.alpn_protocols = vec![b"h2".to_vec()];
        tasks.spawn(serve_tls(bound.tcp.unwrap(), TlsAcceptor::from(Arc::new(config)), sender));
        Self { address: bound.address, handshakes, _tasks: tasks }
    }
}

async fn serve_tls(listener: TcpListener, acceptor: TlsAcceptor, sender: mpsc::Sender<Handshake>) {
    while let Ok((stream, _)) = listener.accept().await {
        match acceptor.accept(stream).await {
            Err(error) => sender.send(Err(error.to_string())).await.unwrap(),
            Ok(mut stream) => {
                let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
                sender.send(Ok(certificates.to_vec())).await.unwrap();
                let (mut reading, mut writing) = tokio::io::split(&mut stream);
                answer(&mut reading, &mut writing).await;
            }
        }
    }
}

async fn serve_quic(endpoint: quinn::Endpoint, sender: mpsc::Sender<Handshake>) {
    while let Some(incoming) = endpoint.accept().await {
        match incoming.await {
            Err(error) => sender.send(Err(error.to_string())).await.unwrap(),
            Ok(connection) => {
                let identity = connection.peer_identity();
                let certificates = identity.map(|identity| *identity.downcast().unwrap());
                sender.send(Ok(certificates.unwrap_or_default())).await.unwrap();
                if let Ok((mut sending, mut receiving)) = connection.accept_bi().await {
                    answer(&mut receiving, &mut sending).await;
                }
            }
        }
    }
}

/// Answers until the client is gone; failures are reported on the side of the client.
async fn answer(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) {
    let mut received = [0; 4];
    while from.read_exact(&mut received).await.is_ok() {
        assert_eq!(&received, b"ping");
        if to.write_all(b"pong").await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
}
