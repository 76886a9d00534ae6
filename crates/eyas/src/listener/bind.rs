//! The sockets of a listener, on one port number.

use std::io;
use std::net::SocketAddr;

use eyas_race::candidate::{Security, Transport};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use super::ListenParameters;
use crate::Error;

/// Connections that the kernel completes before they are accepted.
const KERNEL_BACKLOG: i32 = 1024;
/// How often another free port is tried when the one that TCP got is taken on UDP.
const PORT_TRIES: usize = 16;

pub(super) struct Sockets {
    pub(super) address: SocketAddr,
    pub(super) tcp: Option<TcpListener>,
    #[cfg(feature = "quic")]
    pub(super) udp: Option<std::net::UdpSocket>,
}

/// What the parameters ask for, after they were found to make sense.
struct Wanted {
    tcp: bool,
    mptcp: bool,
    udp: bool,
}

pub(super) fn bind(parameters: &ListenParameters) -> Result<Sockets, Error> {
    let wanted = wanted(parameters)?;
    let address = parameters.address;
    let mut tries = PORT_TRIES;
    loop {
        tries -= 1;
        match bind_once(address, &wanted) {
            Ok(sockets) => return Ok(sockets),
            Err(error)
                if address.port() == 0 && error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {
            }
            Err(source) => return Err(Error::Listen { address, source }),
        }
    }
}

fn wanted(parameters: &ListenParameters) -> Result<Wanted, Error> {
    let mut wanted = Wanted { tcp: false, mptcp: false, udp: false };
    for transport in &parameters.transports {
        match transport {
            Transport::Tcp => wanted.tcp = true,
            Transport::Mptcp => wanted.mptcp = true,
            Transport::Quic if !cfg!(feature = "quic") => {
                return Err(Error::Parameters("this build is without QUIC".into()));
            }
            Transport::Quic if parameters.security.is_none() => {
                let none = Security::None;
                return Err(Error::Parameters(format!("QUIC cannot do with security {none}")));
            }
            Transport::Quic => wanted.udp = true,
            other => return Err(Error::Parameters(format!("cannot listen for {other} yet"))),
        }
    }
    if !(wanted.tcp || wanted.mptcp || wanted.udp) {
        return Err(Error::Parameters("no transport is asked for".into()));
    }
    Ok(wanted)
}

fn bind_once(mut address: SocketAddr, wanted: &Wanted) -> io::Result<Sockets> {
    let mut tcp = None;
    if wanted.tcp || wanted.mptcp {
        let listener = listen_tcp(address, wanted.mptcp)?;
        address = listener.local_addr()?;
        tcp = Some(listener);
    }
    #[cfg(feature = "quic")]
    let udp = if wanted.udp {
        let socket = new_socket(address, Type::DGRAM, Protocol::UDP)?;
        socket.bind(&address.into())?;
        let socket = std::net::UdpSocket::from(socket);
        address = socket.local_addr()?;
        Some(socket)
    } else {
        None
    };
    Ok(Sockets {
        address,
        tcp,
        #[cfg(feature = "quic")]
        udp,
    })
}

fn listen_tcp(address: SocketAddr, mptcp: bool) -> io::Result<TcpListener> {
    let protocol = if mptcp { Protocol::MPTCP } else { Protocol::TCP };
    let socket = new_socket(address, Type::STREAM, protocol)?;
    if address.port() != 0 {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(KERNEL_BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn new_socket(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        // The system's default differs from machine to machine; `[::]` means both families.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    Ok(socket)
}
