//! Starts a test server from its faces.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    time::Duration,
};

use eyas::sockets::{self, BoundAddress, StreamProtocol, WantedSockets};
use eyas_http::{
    Versions,
    serve::{AltSvcPolicy, Running, SctpService, ServeError, Server, ServerBuilder, Stats},
};
use http::HeaderValue;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    SctpFace, ServerFaces, TestAuthority, TransportFace, TransportReach, silent, site::Site,
    tcp_shim, udp_shim,
};

/// The application protocol of a server that supports none of those that clients offer.
const UNSUPPORTED_ALPN: &[u8] = b"eyas-strange";

/// A running test server. Dropping it stops everything.
#[derive(Debug)]
pub struct TestServer {
    addresses: Vec<SocketAddr>,
    servers: Vec<Running>,
    /// Shims, and sockets that only occupy their ports.
    tasks: JoinSet<()>,
}

impl TestServer {
    /// Starts a server at each of these addresses, all with the same free port number, each with
    /// its own faces.
    pub async fn start(
        authority: &TestAuthority,
        stages: &[(IpAddr, ServerFaces)],
    ) -> Result<Self, ServeError> {
        let wanted: Vec<SocketAddr> = stages.iter().map(|(ip, _)| (*ip, 0).into()).collect();
        let both = WantedSockets { stream: Some(StreamProtocol::Tcp), udp: true };
        let bound = sockets::bind(&wanted, both)?;
        let addresses = bound.iter().map(|bound| bound.address).collect();
        let mut this = Self { addresses, servers: Vec::new(), tasks: JoinSet::new() };
        for (BoundAddress { address, tcp, udp }, (_, faces)) in bound.into_iter().zip(stages) {
            if let Some(tcp) = tcp {
                this.stage_tcp(authority, faces, address, tcp).await?;
            }
            if let Some(udp) = udp {
                this.stage_quic(authority, faces, address, udp)?;
            }
        }
        Ok(this)
    }

    /// Returns the first address, with the chosen port.
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Returns all addresses, in the requested order.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the UDP port for SCTP inside UDP, if it is served.
    pub fn sctp_udp_port(&self) -> Option<u16> {
        self.servers.iter().find_map(|server| server.sctp()?.encapsulation_port())
    }

    /// Returns the counters of all its servers together.
    pub fn stats(&self) -> Stats {
        self.servers.iter().map(Running::stats).fold(Stats::default(), |sum, one| sum + one)
    }

    /// Stops everything, gracefully if there is something to complete.
    pub async fn shutdown(mut self, grace: Duration) {
        for server in self.servers.drain(..) {
            server.shutdown(grace).await;
        }
        self.tasks.shutdown().await;
    }

    async fn stage_tcp(
        &mut self,
        authority: &TestAuthority,
        faces: &ServerFaces,
        address: SocketAddr,
        tcp: TcpListener,
    ) -> Result<(), ServeError> {
        let bind_error = |cause| ServeError::Bind { address, cause };
        match faces.tcp.reach {
            TransportReach::Open => self.serve_tcp(authority, faces, address, tcp),
            TransportReach::Slow(by) => {
                let listener =
                    TcpListener::bind(free_port_at(address)).await.map_err(bind_error)?;
                let inner = listener.local_addr().map_err(bind_error)?;
                self.serve_tcp(authority, faces, address, listener)?;
                self.tasks.spawn(tcp_shim::run(tcp, inner, by));
                Ok(())
            }
            TransportReach::Silent => {
                self.tasks.spawn(silent::accept(tcp));
                Ok(())
            }
            TransportReach::Swallowed => {
                let full = silent::fill(tcp).await.map_err(bind_error)?;
                self.tasks.spawn(silent::keep_alive(full));
                Ok(())
            }
            TransportReach::Refused => {
                drop(tcp);
                // Bound but not listening: connections are refused, and no other program gets the
                // port.
                let held = silent::hold(address).map_err(bind_error)?;
                self.tasks.spawn(silent::keep_alive(held));
                Ok(())
            }
        }
    }

    fn stage_quic(
        &mut self,
        authority: &TestAuthority,
        faces: &ServerFaces,
        address: SocketAddr,
        udp: UdpSocket,
    ) -> Result<(), ServeError> {
        let bind_error = |cause| ServeError::Bind { address, cause };
        match faces.quic.reach {
            TransportReach::Open => self.serve_quic(authority, faces, address, udp),
            TransportReach::Slow(by) => {
                let socket = UdpSocket::bind(free_port_at(address)).map_err(bind_error)?;
                socket.set_nonblocking(true).map_err(bind_error)?;
                let inner = socket.local_addr().map_err(bind_error)?;
                self.serve_quic(authority, faces, inner, socket)?;
                let outer = tokio::net::UdpSocket::from_std(udp).map_err(bind_error)?;
                self.tasks.spawn(udp_shim::run(outer, inner, by));
                Ok(())
            }
            TransportReach::Silent | TransportReach::Swallowed => {
                self.tasks.spawn(silent::keep_alive(udp));
                Ok(())
            }
            TransportReach::Refused => {
                self.tasks
                    .spawn(silent::keep_alive(silent::ignore_datagrams(udp).map_err(bind_error)?));
                Ok(())
            }
        }
    }

    /// Serves HTTP/1.1 and 2 on this listener, for clients that know the server as `public`.
    fn serve_tcp(
        &mut self,
        authority: &TestAuthority,
        faces: &ServerFaces,
        public: SocketAddr,
        tcp: TcpListener,
    ) -> Result<(), ServeError> {
        let versions = Versions { http3: false, ..Versions::ALL };
        let alt_svc = match faces.quic.reach {
            TransportReach::Refused => AltSvcPolicy::Off,
            _ => HeaderValue::try_from(format!("h3=\":{}\"; ma=86400", public.port()))
                .map_or(AltSvcPolicy::Off, AltSvcPolicy::Field),
        };
        let mut builder =
            builder(authority, &faces.tcp, faces)?.versions(versions).alt_svc(alt_svc);
        if faces.sctp == SctpFace::InsideUdp {
            builder = builder.sctp(SctpService::with_free_port());
        }
        let bound = BoundAddress { address: public, tcp: Some(tcp), udp: None };
        self.servers.push(builder.start_on(vec![bound])?);
        Ok(())
    }

    /// Serves HTTP/3 on this socket.
    fn serve_quic(
        &mut self,
        authority: &TestAuthority,
        faces: &ServerFaces,
        address: SocketAddr,
        udp: UdpSocket,
    ) -> Result<(), ServeError> {
        let versions = Versions { http1: false, http2: false, http3: true };
        let builder = builder(authority, &faces.quic, faces)?.versions(versions);
        let bound = BoundAddress { address, tcp: None, udp: Some(udp) };
        self.servers.push(builder.start_on(vec![bound])?);
        Ok(())
    }
}

/// Returns the same address with port 0, for a server behind a shim.
fn free_port_at(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), 0)
}

fn builder(
    authority: &TestAuthority,
    face: &TransportFace,
    faces: &ServerFaces,
) -> Result<ServerBuilder, ServeError> {
    let builder = Server::builder().service(Site::new());
    let mut builder = builder.tls(authority.identity(face.credentials)?);
    if face.no_common_alpn {
        builder = builder.alpn(vec![UNSUPPORTED_ALPN.to_vec()]);
    }
    if let Some(fault) = faces.fault {
        builder = builder.fault(fault);
    }
    Ok(builder)
}
