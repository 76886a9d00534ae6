//! Sockets that the service manager has bound (sd_listen_fds(3)): a server without privileges gets a privileged port,
//! and one that is restarted refuses no connection in the meantime.

use std::env;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{FromRawFd as _, OwnedFd};

use eyas::sockets::BoundAddress;
use rustix::io::{FdFlags, fcntl_setfd};
use socket2::{Socket, Type};

use crate::failure::{Failure, FailureKind};

/// The number of the first descriptor that is passed.
const FIRST: i32 = 3;
/// The maximum number of sockets. More would be a mistake.
const MAX_SOCKETS: i32 = 64;

/// The sockets of a server: streams serve TCP, and datagrams QUIC.
pub(in crate::command) struct PassedSockets(pub(in crate::command) Vec<BoundAddress>);

impl PassedSockets {
    /// Returns whether there is a socket for streams.
    pub(in crate::command) fn have_streams(&self) -> bool {
        self.0.iter().any(|bound| bound.tcp.is_some())
    }

    /// Returns whether there is a socket for datagrams.
    pub(in crate::command) fn have_datagrams(&self) -> bool {
        self.0.iter().any(|bound| bound.udp.is_some())
    }
}

/// Returns the sockets that were passed to this process, if any. Must be called once, within a tokio runtime.
pub(in crate::command) fn sockets() -> Result<Option<PassedSockets>, Failure> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<i32>().ok());
    let is_for_us = number("LISTEN_PID") == i32::try_from(std::process::id()).ok();
    let Some(count) = number("LISTEN_FDS").filter(|count| is_for_us && *count > 0) else {
        return Ok(None);
    };
    if count > MAX_SOCKETS {
        return Err(unusable("LISTEN_FDS", &format!("{count} sockets are too many")));
    }
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut passed = PassedSockets(Vec::new());
    for descriptor in FIRST..FIRST + count {
        let name = names.next().filter(|name| !name.is_empty()).unwrap_or("unnamed");
        let socket = adopt(descriptor);
        add(&mut passed.0, socket).map_err(|cause| {
            unusable(&format!("the socket {name} (descriptor {descriptor})"), &cause)
        })?;
    }
    Ok(Some(passed))
}

/// Returns the failure of a server that got sockets and is to listen by itself, too.
pub(in crate::command) fn listens_twice() -> Failure {
    let text = "the service manager has passed sockets, so there is nothing to listen on";
    Failure::new(FailureKind::Usage, text).hint("omit --listen")
}

fn unusable(what: &str, cause: &str) -> Failure {
    let text = format!("cannot use {what} of the service manager: {cause}");
    Failure::new(FailureKind::Listen, text)
        .hint("ListenStream= of a socket unit serves TCP, ListenDatagram= QUIC")
}

#[expect(unsafe_code, reason = "the service manager passes descriptors as numbers")]
fn adopt(descriptor: i32) -> Socket {
    // SAFETY: The variables say that it is open and meant for this process, and nothing else has
    // taken it: this is called once.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    Socket::from(descriptor)
}

/// Adds a socket to the others of its address.
fn add(all: &mut Vec<BoundAddress>, socket: Socket) -> Result<(), String> {
    let text = |cause: std::io::Error| cause.to_string();
    // No child needs it.
    fcntl_setfd(&socket, FdFlags::CLOEXEC).map_err(|cause| cause.to_string())?;
    socket.set_nonblocking(true).map_err(text)?;
    let address = socket.local_addr().map_err(text)?.as_socket();
    let address: SocketAddr = address.ok_or("it is not of the Internet")?;
    let kind = socket.r#type().map_err(text)?;
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
            if !socket.is_listener().map_err(text)? {
                return Err("it is a connection: the unit needs Accept=no".to_owned());
            }
            let listener = tokio::net::TcpListener::from_std(TcpListener::from(socket));
            bound.tcp = Some(listener.map_err(text)?);
        }
        Type::DGRAM if bound.udp.is_none() => bound.udp = Some(UdpSocket::from(socket)),
        Type::STREAM | Type::DGRAM => return Err(format!("{address} is passed twice")),
        _ => return Err("it is neither for streams nor for datagrams".to_owned()),
    }
    Ok(())
}
