//! Servers, relays and helpers for the tests over real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::target::{Target, TargetHost};
use eyas::{
    Connection, Endpoint, EndpointBuilder, ListenParameters, Listener, MemoryStore, Resolver,
    SecurityParameters, ServerIdentity,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::ports::own_port;

pub(crate) mod dns;
pub(crate) mod tls;

/// Far longer than anything on loopback takes, so that a hang becomes a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The name of every server here, which every resolver here resolves to 127.0.0.1.
pub(crate) const NAME: &str = "eyas.test";

/// Waits for a future, at most [`PATIENCE`].
pub(crate) async fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("timed out")
}

pub(crate) fn https(port: u16) -> Target {
    Target::https(TargetHost::Name(NAME.into()), port)
}

pub(crate) fn identity() -> ServerIdentity {
    ServerIdentity::self_signed([NAME]).unwrap()
}

/// A certificate for the name that has expired.
pub(crate) fn expired_identity() -> ServerIdentity {
    identity_valid(2001, 2002)
}

/// A certificate for the name that is valid from the start of one year to that of another.
pub(crate) fn identity_valid(from: i32, until: i32) -> ServerIdentity {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let certificate = params.self_signed(&key).unwrap();
    ServerIdentity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
}

/// A server over these transports for `h3` and `h2`.
pub(crate) async fn listen(
    identity: &ServerIdentity,
    transports: impl IntoIterator<Item = Transport>,
) -> Listener {
    let parameters = ListenParameters::new(own_address())
        .transports(transports)
        .security(identity.clone())
        .with_alpn(["h3", "h2"]);
    Listener::bind(parameters).await.unwrap()
}

/// An endpoint that trusts these servers and resolves `NAME`, at this port.
pub(crate) fn builder_for(trusted: &[ServerIdentity], port: u16) -> EndpointBuilder {
    let roots = trusted.iter().map(|identity| identity.certificate().clone());
    let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into());
    Endpoint::builder()
        .security(SecurityParameters::platform().with_roots(roots))
        .resolver(resolver.overriding(NAME, port, vec![Ipv4Addr::LOCALHOST.into()]))
        .memory(MemoryStore::default())
}

/// A server, and an endpoint that reaches and trusts it.
pub(crate) struct Scene {
    pub(crate) listener: Listener,
    pub(crate) endpoint: Endpoint,
}

impl Scene {
    pub(crate) async fn new(transports: impl IntoIterator<Item = Transport>) -> Self {
        Self::with(transports, |builder| builder).await
    }

    pub(crate) async fn with(
        transports: impl IntoIterator<Item = Transport>,
        change: impl FnOnce(EndpointBuilder) -> EndpointBuilder,
    ) -> Self {
        let identity = identity();
        let listener = listen(&identity, transports).await;
        let port = listener.local_addr().port();
        let endpoint = change(builder_for(std::slice::from_ref(&identity), port)).build().unwrap();
        Self { listener, endpoint }
    }

    pub(crate) fn target(&self) -> Target {
        https(self.listener.local_addr().port())
    }
}

/// A TCP server for `h2`, and a UDP socket with the same port number.
pub(crate) async fn listen_beside_udp(
    identity: &ServerIdentity,
) -> (Listener, std::net::UdpSocket) {
    let listener = listen(identity, [Transport::Tcp]).await;
    let udp = std::net::UdpSocket::bind(listener.local_addr()).unwrap();
    (listener, udp)
}

/// Accepts on TCP and receives on UDP, but never answers.
pub(crate) fn silent_peer() -> (std::net::TcpListener, std::net::UdpSocket) {
    let address = own_address();
    let tcp = std::net::TcpListener::bind(address).unwrap();
    (tcp, std::net::UdpSocket::bind(address).unwrap())
}

/// An address where nothing listens unless the test does.
pub(crate) fn own_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, own_port()).into()
}

/// The client sends `ping`, the server answers `pong`.
pub(crate) async fn ping_pong(listener: &Listener, client: Connection) {
    ping_pong_with(listener.accept(), client).await;
}

pub(crate) async fn ping_pong_with(
    server: impl Future<Output = Connection>,
    mut client: Connection,
) {
    let serve = async {
        let mut server = server.await;
        let mut received = [0; 4];
        server.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"ping");
        server.write_all(b"pong").await.unwrap();
        server.flush().await.unwrap();
        server
    };
    let ask = async {
        client.write_all(b"ping").await.unwrap();
        client.flush().await.unwrap();
        let mut received = [0; 4];
        client.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"pong");
    };
    wait(async { tokio::join!(serve, ask) }).await;
}

/// Relays UDP and delays every packet by the same time: a path that is far longer than that of TCP.
pub(crate) struct SlowUdp {
    tasks: Vec<JoinHandle<()>>,
}

impl SlowUdp {
    /// Serves one client at this socket.
    pub(crate) async fn to(
        server: SocketAddr,
        outside: std::net::UdpSocket,
        delay: Duration,
    ) -> Self {
        outside.set_nonblocking(true).unwrap();
        let outside = Arc::new(UdpSocket::from_std(outside).unwrap());
        let inside = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        inside.connect(server).await.unwrap();
        let client = Arc::new(std::sync::OnceLock::new());
        let there = {
            let (outside, inside, client) = (outside.clone(), inside.clone(), client.clone());
            tokio::spawn(async move {
                let mut buffer = vec![0; 2048];
                while let Ok((len, from)) = outside.recv_from(&mut buffer).await {
                    client.get_or_init(|| from);
                    let (inside, packet) = (inside.clone(), buffer[..len].to_vec());
                    tokio::spawn(async move {
                        tokio::time::sleep(delay).await;
                        let _ = inside.send(&packet).await;
                    });
                }
            })
        };
        let back = tokio::spawn(async move {
            let mut buffer = vec![0; 2048];
            while let Ok(len) = inside.recv(&mut buffer).await {
                if let Some(client) = client.get() {
                    let _ = outside.send_to(&buffer[..len], *client).await;
                }
            }
        });
        Self { tasks: vec![there, back] }
    }
}

impl Drop for SlowUdp {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
