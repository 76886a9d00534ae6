//! Descriptors that a process is started with.

use std::env;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd};

use eyas::sockets::BoundAddress;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use socket2::{Socket, Type};

use super::{PassedSockets, unusable};
use crate::failure::Failure;

/// The number of the first descriptor that is passed.
const FIRST: i32 = 3;
/// The maximum number of sockets. More would be a mistake.
const MAX_SOCKETS: i32 = 64;

/// Why a passed socket cannot be used.
#[derive(Debug, thiserror::Error)]
enum PassedSocketError {
    /// A call on it failed.
    #[error(transparent)]
    System(#[from] io::Error),
    #[error("it is not open: LISTEN_FDS is too large")]
    NotOpen,
    #[error("it was not passed: LISTEN_FDS is too large")]
    NotPassed,
    #[error("it is not an Internet socket")]
    NotInternet,
    #[error("it is a connection: the unit needs Accept=no")]
    Connection,
    #[error("{0} is passed twice")]
    Twice(SocketAddr),
    #[error("it is neither for streams nor for datagrams")]
    OtherType,
}

/// Returns the sockets that the service manager passes, if it passes any to this process.
pub(super) fn sockets() -> Result<Option<PassedSockets>, Failure> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<i32>().ok());
    let is_for_us = number("LISTEN_PID") == i32::try_from(std::process::id()).ok();
    let Some(count) = number("LISTEN_FDS").filter(|count| is_for_us && *count > 0) else {
        return Ok(None);
    };
    if count > MAX_SOCKETS {
        return Err(unusable("LISTEN_FDS", format!("{count} sockets are too many")));
    }
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut passed = PassedSockets(Vec::new());
    for descriptor in FIRST..FIRST + count {
        let name = names.next().filter(|name| !name.is_empty()).unwrap_or("unnamed");
        let added = adopt(descriptor).and_then(|socket| add(&mut passed.0, socket));
        added.map_err(|cause| {
            unusable(&format!("the socket {name} (descriptor {descriptor})"), cause)
        })?;
    }
    Ok(Some(passed))
}

/// Takes a passed descriptor over.
#[expect(unsafe_code, reason = "the service manager passes descriptors as numbers")]
fn adopt(descriptor: i32) -> Result<Socket, PassedSocketError> {
    // SAFETY: Nothing but F_GETFD happens to the number, which the kernel answers with EBADF if it is not open.
    let asked = unsafe { BorrowedFd::borrow_raw(descriptor) };
    match fcntl_getfd(asked) {
        Err(_) => return Err(PassedSocketError::NotOpen),
        // What has come through execve(2) does not have this flag; what this process has opened, such as the
        // descriptors of the runtime, does.
        Ok(flags) if flags.contains(FdFlags::CLOEXEC) => return Err(PassedSocketError::NotPassed),
        Ok(_) => {}
    }
    // SAFETY: It is open, this process has not opened it, and it is taken once: this sets the flag above.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    fcntl_setfd(&descriptor, FdFlags::CLOEXEC).map_err(io::Error::from)?;
    Ok(Socket::from(descriptor))
}

/// Adds a socket to the others of its address.
fn add(all: &mut Vec<BoundAddress>, socket: Socket) -> Result<(), PassedSocketError> {
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?.as_socket().ok_or(PassedSocketError::NotInternet)?;
    let kind = socket.r#type()?;
    let place = match all.iter().position(|bound| bound.address == address) {
        Some(place) => place,
        None => {
            all.push(BoundAddress { address, tcp: None, udp: None });
            all.len() - 1
        }
    };
    let bound = &mut all[place];
    match kind {
        Type::STREAM if bound.tcp.is_none() => {
            if !is_listener(&socket)? {
                return Err(PassedSocketError::Connection);
            }
            bound.tcp = Some(tokio::net::TcpListener::from_std(TcpListener::from(socket))?);
        }
        Type::DGRAM if bound.udp.is_none() => bound.udp = Some(UdpSocket::from(socket)),
        Type::STREAM | Type::DGRAM => return Err(PassedSocketError::Twice(address)),
        _ => return Err(PassedSocketError::OtherType),
    }
    Ok(())
}

#[cfg(not(target_vendor = "apple"))]
fn is_listener(socket: &Socket) -> io::Result<bool> {
    socket.is_listener()
}

/// Apple's systems do not tell (`SO_ACCEPTCONN`): accepting fails there.
#[cfg(target_vendor = "apple")]
fn is_listener(_: &Socket) -> io::Result<bool> {
    Ok(true)
}
