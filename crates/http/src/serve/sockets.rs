//! The sockets of a server: TCP and UDP on one port number, on every address.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use super::ServeError;

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// How often another free port is tried when the one found for one socket is taken for another.
const PORT_TRIES: usize = 32;

/// The kernel's buffer for datagrams, each way, in bytes; the kernel may give less.
const UDP_BUFFER: usize = 2 * 1024 * 1024;

/// The sockets of one address.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) address: SocketAddr,
    pub(super) tcp: Option<TcpListener>,
    pub(super) udp: Option<UdpSocket>,
}

/// Which sockets an address gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) tcp: bool,
    /// TCP that takes Multipath TCP as well, where the kernel can.
    pub(super) mptcp: bool,
    pub(super) udp: bool,
}

/// Binds all addresses; those with port 0 share one free port.
pub(super) fn bind(addresses: &[SocketAddr], wanted: Wanted) -> Result<Vec<Bound>, ServeError> {
    let free = addresses.iter().any(|address| address.port() == 0);
    let tries = if free { PORT_TRIES } else { 1 };
    let mut last = None;
    for _ in 0..tries {
        match bind_once(addresses, wanted) {
            Ok(bound) => return Ok(bound),
            Err((address, cause)) => {
                let taken = cause.kind() == io::ErrorKind::AddrInUse;
                last = Some(ServeError::Bind { address, cause });
                if !taken {
                    break;
                }
            }
        }
    }
    Err(last.unwrap_or(ServeError::NoVersion))
}

fn bind_once(
    addresses: &[SocketAddr],
    wanted: Wanted,
) -> Result<Vec<Bound>, (SocketAddr, io::Error)> {
    let mut port = 0;
    let mut bound = Vec::with_capacity(addresses.len());
    for asked in addresses {
        let mut address = *asked;
        if address.port() == 0 {
            address.set_port(port);
        }
        let v6_only = !serves_ipv4_too(address, addresses);
        let mut one = Bound { address, tcp: None, udp: None };
        if wanted.tcp {
            let listener =
                listener(one.address, v6_only, wanted.mptcp).map_err(|e| (address, e))?;
            one.address = listener.local_addr().map_err(|e| (address, e))?;
            one.tcp = Some(listener);
        }
        if wanted.udp {
            let socket = udp_socket(one.address, v6_only).map_err(|e| (address, e))?;
            one.address = socket.local_addr().map_err(|e| (address, e))?;
            one.udp = Some(socket);
        }
        if asked.port() == 0 {
            port = one.address.port();
        }
        bound.push(one);
    }
    Ok(bound)
}

/// Whether a socket of this address takes IPv4 as well: an unspecified IPv6 address does, unless
/// the server listens on IPv4 by itself.
fn serves_ipv4_too(address: SocketAddr, all: &[SocketAddr]) -> bool {
    address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !all.iter().any(SocketAddr::is_ipv4)
}

fn socket(
    address: SocketAddr,
    kind: Type,
    protocol: Protocol,
    v6_only: bool,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(v6_only)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A listener, of Multipath TCP if that is wanted and the kernel can.
fn listener(address: SocketAddr, v6_only: bool, mptcp: bool) -> io::Result<TcpListener> {
    #[cfg(target_os = "linux")]
    if mptcp && let Ok(socket) = socket(address, Type::STREAM, Protocol::MPTCP, v6_only) {
        return listening(socket, address);
    }
    let _ = mptcp;
    tcp_listener(address, v6_only)
}

/// A listener; `v6_only` counts for IPv6 alone.
pub(super) fn tcp_listener(address: SocketAddr, v6_only: bool) -> io::Result<TcpListener> {
    listening(socket(address, Type::STREAM, Protocol::TCP, v6_only)?, address)
}

fn listening(socket: Socket, address: SocketAddr) -> io::Result<TcpListener> {
    // A server that starts again must not wait for the connections of its predecessor.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// A socket for QUIC; `v6_only` counts for IPv6 alone.
pub(super) fn udp_socket(address: SocketAddr, v6_only: bool) -> io::Result<UdpSocket> {
    let socket = socket(address, Type::DGRAM, Protocol::UDP, v6_only)?;
    // As much as the kernel gives: with less, throughput suffers and nothing else.
    let _ = socket.set_recv_buffer_size(UDP_BUFFER);
    let _ = socket.set_send_buffer_size(UDP_BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A QUIC endpoint that serves on this socket.
pub(super) fn endpoint(
    socket: UdpSocket,
    config: quinn::ServerConfig,
) -> Result<quinn::Endpoint, ServeError> {
    let address = socket.local_addr().map_err(ServeError::Endpoint)?;
    tracing::debug!(%address, "QUIC endpoint");
    let runtime = Arc::new(quinn::TokioRuntime);
    quinn::Endpoint::new(quinn::EndpointConfig::default(), Some(config), socket, runtime)
        .map_err(ServeError::Endpoint)
}
