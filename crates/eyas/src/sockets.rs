//! Sockets that listen: TCP and UDP on one port number, on every address of a server.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use nix::libc;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::attempt::mptcp;

/// Connections that the kernel completes before they are accepted.
const KERNEL_BACKLOG: i32 = 1024;
/// How often another free port is tried when the one that one socket got is taken for another.
pub(crate) const PORT_TRIES: usize = 32;
/// The kernel's buffer for datagrams, each way, in bytes; the kernel may give less.
const UDP_BUFFER: usize = 2 * 1024 * 1024;

/// Which sockets an address gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The listener for streams of bytes.
    pub stream: Option<StreamProtocol>,
    /// Whether there is a UDP socket.
    pub udp: bool,
}

/// What a listener for streams of bytes speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamProtocol {
    /// TCP (RFC 9293).
    Tcp,
    /// Multipath TCP (RFC 8684), which serves TCP peers as well. A kernel without it is an error.
    Mptcp,
    /// Multipath TCP where the kernel can, and otherwise TCP.
    MptcpIfPossible,
}

/// Whether this connection speaks Multipath TCP (RFC 8684): false for plain TCP, and for what fell
/// back to it. Linux can tell since 5.16, other kernels cannot.
pub fn speaks_mptcp(stream: &TcpStream) -> bool {
    mptcp::is_in_use(stream)
}

/// The address that counts as one peer where places are shared out: a subscriber of IPv6 has a /64 at
/// least, and an IPv4 address that is written as IPv6 is that IPv4 address. Loopback stays as it is.
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        other => other,
    }
}

/// Why a server accepts nobody at the moment, and what to do about it, for whoever runs it.
pub fn exhausted(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => format!(
            "no descriptors are left ({error}): new clients wait until others have gone; raise the \
             limit (ulimit -n), or lower that on connections"
        ),
        _ => format!("cannot accept clients: {error}; it is tried again"),
    }
}

/// The sockets of one address.
#[derive(Debug)]
pub struct Bound {
    /// The address, with the port number that its sockets share.
    pub address: SocketAddr,
    /// The listener, if one was wanted.
    pub tcp: Option<TcpListener>,
    /// The UDP socket, if one was wanted. It does not block.
    pub udp: Option<UdpSocket>,
}

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// As it was asked for.
    pub address: SocketAddr,
    /// What the operating system said.
    pub source: io::Error,
}

/// Binds the wanted sockets at every address; those with port 0 share one free port. `[::]` takes
/// IPv4 as well, unless there is an IPv4 address among them. Must be called inside a tokio
/// runtime.
///
/// # Errors
/// Names the address that could not be bound; then none is.
pub fn bind(addresses: &[SocketAddr], wanted: Wanted) -> Result<Vec<Bound>, BindError> {
    let is_free_port_wanted = addresses.iter().any(|address| address.port() == 0);
    let mut tries = if is_free_port_wanted { PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_once(addresses, wanted) {
            Err(error) if error.source.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
            outcome => return outcome,
        }
    }
}

fn bind_once(addresses: &[SocketAddr], wanted: Wanted) -> Result<Vec<Bound>, BindError> {
    let mut port = 0;
    let mut all = Vec::with_capacity(addresses.len());
    for asked in addresses {
        let mut address = *asked;
        if address.port() == 0 {
            address.set_port(port);
        }
        let v6_only = !serves_ipv4_too(address, addresses);
        let bound = bind_one(address, wanted, v6_only)
            .map_err(|source| BindError { address: *asked, source })?;
        if asked.port() == 0 {
            port = bound.address.port();
        }
        all.push(bound);
    }
    Ok(all)
}

fn serves_ipv4_too(address: SocketAddr, all: &[SocketAddr]) -> bool {
    address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !all.iter().any(SocketAddr::is_ipv4)
}

fn bind_one(address: SocketAddr, wanted: Wanted, v6_only: bool) -> io::Result<Bound> {
    let mut bound = Bound { address, tcp: None, udp: None };
    if let Some(protocol) = wanted.stream {
        let listener = listen(bound.address, protocol, v6_only)?;
        bound.address = listener.local_addr()?;
        bound.tcp = Some(listener);
    }
    if wanted.udp {
        let socket = udp(bound.address, v6_only)?;
        bound.address = socket.local_addr()?;
        bound.udp = Some(socket);
    }
    Ok(bound)
}

fn listen(address: SocketAddr, protocol: StreamProtocol, v6_only: bool) -> io::Result<TcpListener> {
    let socket = |protocol| socket(address, Type::STREAM, protocol, v6_only);
    let socket = match protocol {
        StreamProtocol::Tcp => socket(Protocol::TCP),
        StreamProtocol::Mptcp => socket(Protocol::MPTCP),
        StreamProtocol::MptcpIfPossible => {
            socket(Protocol::MPTCP).or_else(|_| socket(Protocol::TCP))
        }
    }?;
    if address.port() != 0 {
        // A server that starts again must not wait for the connections of its predecessor.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(KERNEL_BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn udp(address: SocketAddr, v6_only: bool) -> io::Result<UdpSocket> {
    let socket = socket(address, Type::DGRAM, Protocol::UDP, v6_only)?;
    // As much as the kernel gives: with less, throughput suffers and nothing else.
    let _ = socket.set_recv_buffer_size(UDP_BUFFER);
    let _ = socket.set_send_buffer_size(UDP_BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// `v6_only` counts for IPv6 alone, and is always said: the system's default differs from machine
/// to machine.
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
