//! The listeners at the addresses, and the name server.

use std::io;
use std::net::{IpAddr, SocketAddr};

use eyas_http::Versions;
use eyas_http::serve::{Running, ServeError, Server, ServerIdentity};
use eyas_testserver::TestAuthority;
use eyas_testserver::site::Site;
use tokio::net::{TcpListener, UdpSocket};

use super::zone::{self, ZoneConfig};
use crate::live::server_thread::ServerThread;
use crate::live::{LiveError, LiveTestbed};
use crate::situation::live::{HostBehaviour, UdpBehavior};

/// The ports of HTTP, without and with TLS.
const PORTS: [u16; 2] = [80, 443];
const SECURE: u16 = 443;
/// The port of name servers.
const DNS: u16 = 53;
/// The number of connections that a silent socket keeps.
const MAX_SILENT: usize = 64;

/// What is served at which addresses, and the DNS records about them.
pub(super) struct ServerSetup {
    pub(super) name_server: IpAddr,
    pub(super) zone: ZoneConfig,
    pub(super) all: Vec<(IpAddr, HostBehaviour)>,
    pub(super) udp: UdpBehavior,
}

/// Running servers. Dropping this ends them.
pub(super) struct TrialServers {
    /// The servers run as long as this exists.
    _thread: ServerThread,
}

impl TrialServers {
    /// Starts all servers, and returns the certificate that clients must trust as well, in PEM.
    pub(super) fn start(
        testbed: &LiveTestbed,
        setup: ServerSetup,
    ) -> Result<(Self, String), LiveError> {
        let inside = |cause: &dyn std::fmt::Display| LiveError::Inside(cause.to_string());
        let authority =
            TestAuthority::new([format!("*.{}", zone::DOMAIN)]).map_err(|cause| inside(&cause))?;
        let identity = authority.identity(Default::default()).map_err(|cause| inside(&cause))?;
        let root = pem(authority.root());
        let (thread, ()) = ServerThread::start(testbed, move || async move {
            let bound = BoundSockets::all(&setup, &identity).await;
            let bound = bound.map_err(|cause| LiveError::Inside(cause.to_string()))?;
            Ok(((), bound.serve(setup.zone)))
        })?;
        Ok((Self { _thread: thread }, root))
    }
}

/// Why not all sockets can be bound.
#[derive(Debug, thiserror::Error)]
enum BindError {
    #[error("the name server: {0}")]
    NameServer(io::Error),
    #[error("a server: {0}")]
    Web(ServeError),
    #[error("a silent server: {0}")]
    Silent(io::Error),
    #[error("a socket that swallows: {0}")]
    Swallowing(io::Error),
}

/// All bound sockets.
struct BoundSockets {
    names: UdpSocket,
    /// The servers run as long as these exist.
    _web: Vec<Running>,
    silent: Vec<TcpListener>,
    /// They are bound but never read.
    _swallow: Vec<UdpSocket>,
}

impl BoundSockets {
    async fn all(setup: &ServerSetup, identity: &ServerIdentity) -> Result<Self, BindError> {
        let addresses = |wanted| {
            let matching = setup.all.iter().filter(move |(_, behind)| *behind == wanted);
            matching.map(|(ip, _)| *ip)
        };
        let names =
            UdpSocket::bind((setup.name_server, DNS)).await.map_err(BindError::NameServer)?;
        let serving: Vec<IpAddr> = addresses(HostBehaviour::Serves).collect();
        let web = web(&serving, setup.udp, identity).await.map_err(BindError::Web)?;
        let mut silent = Vec::new();
        for ip in addresses(HostBehaviour::Silent) {
            for port in PORTS {
                let listener = TcpListener::bind((ip, port)).await;
                silent.push(listener.map_err(BindError::Silent)?);
            }
        }
        let mut swallow = Vec::new();
        if setup.udp == UdpBehavior::Swallows {
            for ip in serving {
                let socket = UdpSocket::bind((ip, SECURE)).await;
                swallow.push(socket.map_err(BindError::Swallowing)?);
            }
        }
        Ok(Self { names, _web: web, silent, _swallow: swallow })
    }

    async fn serve(self, zone: ZoneConfig) {
        for listener in self.silent {
            tokio::spawn(accept_silently(listener));
        }
        zone::serve(self.names, zone).await;
    }
}

async fn web(
    addresses: &[IpAddr],
    udp: UdpBehavior,
    identity: &ServerIdentity,
) -> Result<Vec<Running>, ServeError> {
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let [plain, secure] = PORTS.map(|port| {
        let addresses = addresses.iter().map(move |ip| SocketAddr::new(*ip, port));
        addresses
            .fold(Server::builder().service(Site::new()), |server, address| server.listen(address))
    });
    let versions = Versions { http3: udp == UdpBehavior::Serves, ..Versions::ALL };
    Ok(vec![
        plain.plain().start().await?,
        secure.tls(identity.clone()).versions(versions).start().await?,
    ])
}

/// Accepts connections and sends nothing. New connections replace the oldest ones.
async fn accept_silently(listener: TcpListener) {
    let mut connections = std::collections::VecDeque::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            connections.push_back(stream);
        }
        if connections.len() > MAX_SILENT {
            connections.pop_front();
        }
    }
}

/// Encodes a certificate in the format that most programs read (RFC 7468).
fn pem(certificate: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let lines: String = text
        .as_bytes()
        .chunks(64)
        .map(|line| format!("{}\n", String::from_utf8_lossy(line)))
        .collect();
    format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n")
}
