//! One socket of the kernel's SCTP.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::AssociationConfig;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use socket2::{Domain, MsgHdr, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::control::{self, ReceiveInfo};
use super::options;
use crate::carrier::IPPROTO_SCTP;

/// The maximum number of bytes read at a time.
pub(super) const READ_SIZE: usize = 64 * 1024;

/// The result of a read.
#[derive(Debug)]
pub(super) enum Received {
    /// A message or the next part of one, and whether this is its end.
    Data(ReceiveInfo, Bytes, bool),
    /// A notification.
    Notification(Bytes),
    /// The peer sends no more.
    End,
}

/// A non-blocking socket. The runtime treats it like a UDP socket, which is readable or writable.
#[derive(Debug)]
pub(super) struct KernelSocket(UdpSocket);

impl KernelSocket {
    /// Opens a socket that is not bound yet.
    pub(super) fn open(address: SocketAddr, config: &AssociationConfig) -> io::Result<Socket> {
        let protocol = Some(Protocol::from(IPPROTO_SCTP));
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, protocol)?;
        socket.set_nonblocking(true)?;
        options::prepare(&socket, config)?;
        Ok(socket)
    }

    /// Creates a socket. Must be called inside a tokio runtime.
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        Ok(Self(UdpSocket::from_std(socket.into())?))
    }

    /// Opens an association and waits until it is established. Dropping the future aborts it.
    pub(super) async fn connect(
        address: SocketAddr,
        config: &AssociationConfig,
    ) -> io::Result<Self> {
        let socket = Self::open(address, config)?;
        // Until it is established, closing the socket sends an ABORT and leaves no state at the
        // peer.
        socket.set_linger(Some(Duration::ZERO))?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            result => result?,
        }
        let connecting = Self::new(socket)?;
        // A refusal also makes the socket readable, because it is reported by a notification.
        let any = [Interest::READABLE, Interest::WRITABLE, Interest::ERROR];
        loop {
            connecting.0.ready(any[0] | any[1] | any[2]).await?;
            if let Some(error) = connecting.socket().take_error()? {
                return Err(as_refusal(error));
            }
            // The socket has a peer address once the association is established.
            let is_established = || match connecting.socket().peer_addr() {
                Ok(_) => Ok(()),
                Err(_) => Err(io::ErrorKind::WouldBlock.into()),
            };
            // `try_io` clears readiness that turns out to be wrong.
            if any.into_iter().any(|interest| connecting.0.try_io(interest, is_established).is_ok())
            {
                break;
            }
        }
        connecting.socket().set_linger(None)?;
        Ok(connecting)
    }

    pub(super) fn socket(&self) -> SockRef<'_> {
        SockRef::from(&self.0)
    }

    /// Waits until there may be something to read.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// Waits until there may be space to send.
    pub(super) async fn writable(&self) -> io::Result<()> {
        self.0.writable().await
    }

    /// Returns the next association of a listening socket.
    pub(super) fn try_accept(&self) -> io::Result<(Socket, SocketAddr)> {
        let (socket, address) = self.0.try_io(Interest::READABLE, || self.socket().accept())?;
        socket.set_nonblocking(true)?;
        let address = address.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        Ok((socket, address))
    }

    /// Sends a message whole.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no space, or another error if it can never be
    /// sent.
    pub(super) fn try_send(&self, control: &[u8], data: &[u8]) -> io::Result<()> {
        let buffers = [IoSlice::new(data)];
        let message = MsgHdr::new().with_buffers(&buffers).with_control(control);
        let send = || self.socket().sendmsg(&message, libc::MSG_NOSIGNAL);
        self.0.try_io(Interest::WRITABLE, send).map(drop)
    }

    /// Reads the next message or notification.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing, or the error that ended the association.
    pub(super) fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        self.0.try_io(Interest::READABLE, || receive(&self.0, buffer))
    }

    /// Stops sending, and ends the association once all data has arrived.
    pub(super) fn shutdown(&self) {
        // Refused only if it has ended already.
        let _ = self.socket().shutdown(Shutdown::Write);
    }

    /// Aborts the association at once.
    pub(super) fn abort(&self, reason: &[u8]) {
        if self.try_send(&control::for_abort(), reason).is_err() {
            // Closing the socket then sends an ABORT without a reason.
            let _ = self.socket().set_linger(Some(Duration::ZERO));
        }
    }
}

/// Converts an error: a host without SCTP reports this by ICMP, which the kernel represents as an
/// error of this host.
fn as_refusal(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::ENOPROTOOPT) {
        return error;
    }
    let what = "the host reports that it does not support SCTP";
    io::Error::new(io::ErrorKind::ConnectionRefused, what)
}

fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Received> {
    let mut control = [0; control::RECEIVED];
    let mut buffers = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_DONTWAIT;
    let read = recvmsg::<()>(socket.as_raw_fd(), &mut buffers, Some(&mut control), flags)?;
    let (length, flags) = (read.bytes, read.flags);
    let info = read.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::Unknown(unknown)
            if unknown.cmsg_header.cmsg_level == IPPROTO_SCTP
                && unknown.cmsg_header.cmsg_type == control::SCTP_RCVINFO =>
        {
            ReceiveInfo::parse(&unknown.data_bytes)
        }
        _ => None,
    });
    let data = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
    if flags.contains(MsgFlags::MSG_NOTIFICATION) {
        return Ok(Received::Notification(data));
    }
    match info {
        Some(info) => Ok(Received::Data(info, data, flags.contains(MsgFlags::MSG_EOR))),
        None if length == 0 => Ok(Received::End),
        None => {
            Err(io::Error::other("the kernel did not report which stream a message arrived on"))
        }
    }
}
