//! Listening sockets: TCP and UDP on one port number, at every address of a server.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use eyas_host::errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::kernel_tcp;
use crate::tcp_status;

mod throttle;

pub use throttle::ReportThrottle;

/// The maximum number of connections that the kernel establishes before they are accepted: as many as the host allows
/// (`net.core.somaxconn`), to which listen(2) reduces it.
const KERNEL_BACKLOG: i32 = i32::MAX;
/// How often another free port is tried if the one chosen for one socket is taken for another.
pub(crate) const PORT_TRIES: usize = 32;
/// The size of the kernel's datagram buffers, in bytes; the kernel may grant less.
const UDP_BUFFER: usize = 2 * 1024 * 1024;

/// The kinds of socket to bind at each address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedSockets {
    /// The protocol of the stream listener.
    pub stream: Option<StreamProtocol>,
    /// Whether to bind a UDP socket.
    pub udp: bool,
}

/// The protocol of a stream listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamProtocol {
    /// TCP (RFC 9293).
    Tcp,
    /// Multipath TCP (RFC 8684), which serves TCP peers as well. It is an error if the kernel lacks
    /// it.
    Mptcp,
    /// Multipath TCP if the kernel supports it, and otherwise TCP.
    MptcpIfPossible,
}

/// Returns whether this connection uses Multipath TCP (RFC 8684): false for plain TCP and for
/// connections that fell back to it. Requires Linux 5.16 or later; false on other kernels.
pub fn speaks_mptcp(stream: &TcpStream) -> bool {
    kernel_tcp::is_mptcp(stream)
}

/// Returns approximately how many bytes that were written to this connection its peer has not
/// acknowledged; for MPTCP, those on its first path. `None` where the kernel does not say.
pub fn undelivered(stream: &TcpStream) -> Option<u64> {
    tcp_status::undelivered(stream)
}

/// Returns the address that counts as one peer for per-peer limits: the /64 prefix of an IPv6
/// address, since a subscriber has at least that, and the IPv4 address of an IPv4-mapped one.
/// Loopback addresses are returned unchanged.
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        other => other,
    }
}

/// Explains why a server cannot accept clients at the moment and what to do about it, for its
/// operator.
pub fn exhausted(error: &io::Error) -> String {
    if is_out_of_descriptors(error) {
        format!(
            "no descriptors are left ({error}): new clients wait until others have gone; raise the \
             limit (ulimit -n), or lower that on connections"
        )
    } else {
        format!("cannot accept clients: {error}; it is tried again")
    }
}

/// Returns whether an error means that this process, or the system, has no descriptors left.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(errno::EMFILE | errno::ENFILE))
}

/// The sockets bound at one address.
#[derive(Debug)]
pub struct BoundAddress {
    /// The address, with the port number shared by its sockets.
    pub address: SocketAddr,
    /// The stream listener, if one was requested.
    pub tcp: Option<TcpListener>,
    /// The UDP socket, if one was requested. It is non-blocking.
    pub udp: Option<UdpSocket>,
}

/// An address could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// The requested address.
    pub address: SocketAddr,
    /// The error from the operating system.
    pub source: io::Error,
}

/// Binds the requested sockets at every address; addresses with port 0 share one free port. `[::]`
/// serves IPv4 as well, unless there is an IPv4 address in the list. Must be called within a tokio
/// runtime.
///
/// # Errors
/// Names the address that could not be bound; no sockets are bound then.
pub fn bind(
    addresses: &[SocketAddr],
    wanted: WantedSockets,
) -> Result<Vec<BoundAddress>, BindError> {
    let needs_free_port = addresses.iter().any(|address| address.port() == 0);
    let mut tries = if needs_free_port { PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_once(addresses, wanted) {
            Err(error) if error.source.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
            outcome => return outcome,
        }
    }
}

fn bind_once(
    addresses: &[SocketAddr],
    wanted: WantedSockets,
) -> Result<Vec<BoundAddress>, BindError> {
    let mut port = 0;
    let mut all = Vec::with_capacity(addresses.len());
    for requested in addresses {
        let mut address = *requested;
        if address.port() == 0 {
            address.set_port(port);
        }
        let v6_only = !serves_ipv4_too(address, addresses);
        let bound = bind_one(address, wanted, v6_only)
            .map_err(|source| BindError { address: *requested, source })?;
        if requested.port() == 0 {
            port = bound.address.port();
        }
        all.push(bound);
    }
    Ok(all)
}

fn serves_ipv4_too(address: SocketAddr, all: &[SocketAddr]) -> bool {
    address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !all.iter().any(SocketAddr::is_ipv4)
}

fn bind_one(address: SocketAddr, wanted: WantedSockets, v6_only: bool) -> io::Result<BoundAddress> {
    let mut bound = BoundAddress { address, tcp: None, udp: None };
    if let Some(protocol) = wanted.stream {
        let listener = listen(bound.address, protocol, v6_only)?;
        // Only the port: an MPTCP socket does not report the interface of a link-local address.
        bound.address.set_port(listener.local_addr()?.port());
        bound.tcp = Some(listener);
    }
    if wanted.udp {
        let socket = udp(bound.address, v6_only)?;
        bound.address.set_port(socket.local_addr()?.port());
        bound.udp = Some(socket);
    }
    Ok(bound)
}

fn listen(address: SocketAddr, protocol: StreamProtocol, v6_only: bool) -> io::Result<TcpListener> {
    let socket = |protocol| socket(address, Type::STREAM, protocol, v6_only);
    let socket = match protocol {
        StreamProtocol::Tcp => socket(Protocol::TCP),
        StreamProtocol::Mptcp => kernel_tcp::mptcp().and_then(socket),
        StreamProtocol::MptcpIfPossible => {
            kernel_tcp::mptcp().and_then(socket).or_else(|_| socket(Protocol::TCP))
        }
    }?;
    // A restarted server must not wait for the connections of its previous process. Windows never has it wait, and
    // would let another program take the port over.
    if address.port() != 0 && !cfg!(windows) {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(KERNEL_BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn udp(address: SocketAddr, v6_only: bool) -> io::Result<UdpSocket> {
    let socket = socket(address, Type::DGRAM, Protocol::UDP, v6_only)?;
    // The kernel may grant less, which only reduces throughput.
    let _ = socket.set_recv_buffer_size(UDP_BUFFER);
    let _ = socket.set_send_buffer_size(UDP_BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Opens a socket. `v6_only` matters only for IPv6, and is always set, because the system's default
/// differs between machines.
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

#[cfg(test)]
mod tests;
