//! The servers that a client meets: HTTP servers, each on its own port.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use eyas::SecurityParameters;
use eyas_http::Versions;
use eyas_http::serve::{AltSvcPolicy, Limits, Running, ServeError, Server, ServerIdentity};
use eyas_testserver::site::Site;
use http::HeaderValue;
use http::header::InvalidHeaderValue;

use super::server_kind::ServerKind;
use super::server_thread::ServerThread;
use super::{LiveError, LiveTestbed, dns};

/// The name of all servers.
pub(super) const NAME: &str = "server.test";

/// The maximum number of connections from one client host to a server.
const CONNECTIONS: usize = 100_000;

/// Running servers, on a thread in the server's host. Dropping this ends them.
pub(super) struct RunningServers {
    addresses: Vec<SocketAddr>,
    identity: ServerIdentity,
    /// The servers run as long as this exists.
    _thread: ServerThread,
}

impl RunningServers {
    /// Starts one server of each of these kinds.
    pub(super) fn start(testbed: &LiveTestbed, kinds: &[ServerKind]) -> Result<Self, LiveError> {
        let ip = testbed.server_address()?;
        let inside = |cause: &dyn std::fmt::Display| LiveError::Inside(cause.to_string());
        let identity = ServerIdentity::self_signed([
            ip.to_string(),
            NAME.to_owned(),
            format!("{}.{NAME}", dns::WITH_RECORDS),
        ])
        .map_err(|cause| inside(&cause))?;
        let (presented, kinds) = (identity.clone(), kinds.to_vec());
        let (thread, addresses) = ServerThread::start(testbed, move || async move {
            let running = start(ip, &presented, &kinds).await;
            let running = running.map_err(|cause| LiveError::Inside(cause.to_string()))?;
            let addresses = running.iter().map(HttpServer::address).collect();
            Ok((addresses, async move {
                let _running = running;
                dns::serve(ip).await;
            }))
        })?;
        Ok(Self { addresses, identity, _thread: thread })
    }

    /// Returns their addresses, in the order of the requested kinds.
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the security parameters with which a client trusts them; sessions are not resumed.
    pub(super) fn trusted(&self) -> SecurityParameters {
        SecurityParameters::platform()
            .with_roots([self.identity.certificate().clone()])
            .without_resumption()
    }
}

/// A server, and the socket that swallows UDP at its port.
struct HttpServer {
    running: Running,
    /// It is bound but never read.
    _swallows: Option<UdpSocket>,
}

impl HttpServer {
    fn address(&self) -> SocketAddr {
        self.running.local_addr()
    }
}

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
enum HttpServerError {
    #[error(transparent)]
    AltSvc(#[from] InvalidHeaderValue),
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The socket that swallows UDP cannot be bound.
    #[error(transparent)]
    Swallow(#[from] io::Error),
}

async fn start(
    ip: IpAddr,
    identity: &ServerIdentity,
    kinds: &[ServerKind],
) -> Result<Vec<HttpServer>, HttpServerError> {
    let mut servers = Vec::new();
    for kind in kinds {
        let address = SocketAddr::new(ip, kind.port());
        let limits = Limits {
            connections: CONNECTIONS,
            connections_per_peer: CONNECTIONS,
            idle_time: Duration::from_secs(60),
            ..Limits::default()
        };
        let announces = format!("h3=\":{}\"; ma=86400", kind.port());
        let alt_svc = match kind {
            ServerKind::Http3Swallowed => AltSvcPolicy::Field(HeaderValue::try_from(announces)?),
            _ => AltSvcPolicy::default(),
        };
        let versions = Versions { http3: *kind == ServerKind::Http3, ..Versions::ALL };
        let running = Server::builder()
            .service(Site::new())
            .listen(address)
            .tls(identity.clone())
            .versions(versions)
            .alt_svc(alt_svc)
            .limits(limits)
            .start()
            .await?;
        let _swallows = kind.swallows_udp().then(|| UdpSocket::bind(address)).transpose()?;
        servers.push(HttpServer { running, _swallows });
    }
    Ok(servers)
}
