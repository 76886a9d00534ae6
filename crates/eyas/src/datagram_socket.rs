//! A datagram socket that also reports ICMP errors (`icmp`), for the runtime.
//!
//! If an error is reported together with writability, tokio considers the write half closed,
//! permanently: a task that waits for writability would be woken every time and spin. So
//! writability is awaited on a separate registration, created anew each time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(feature = "quic")]
use std::task::{Context, Poll, ready};
use std::time::Duration;

use eyas_race::candidate::AddressFamily;
use socket2::{SockRef, Socket};
use tokio::io::Interest;
#[cfg(feature = "sctp")]
use tokio::io::Ready;
use tokio::net::UdpSocket;

use crate::icmp::{self, IcmpReport};

/// How often a send is tried, because the call may return an earlier packet's error.
const MAX_SENDS: usize = 4;
/// The pause before a full socket is tried again if its readiness cannot be watched.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// A non-blocking socket; see the [module](self).
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    /// The runtime treats raw sockets like UDP sockets: they are readable, writable, or have
    /// errors.
    socket: UdpSocket,
}

impl DatagramSocket {
    /// Enables reports. Must be called inside a tokio runtime.
    pub(crate) fn new(socket: Socket) -> io::Result<Self> {
        let family =
            if socket.local_addr()?.is_ipv4() { AddressFamily::V4 } else { AddressFamily::V6 };
        icmp::enable_reports(&socket, family)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket: UdpSocket::from_std(socket.into())? })
    }

    /// Returns the socket.
    pub(crate) fn get(&self) -> SockRef<'_> {
        SockRef::from(&self.socket)
    }

    /// Waits until there is something to read or to report.
    #[cfg(feature = "sctp")]
    pub(crate) async fn readable(&self) -> io::Result<Ready> {
        self.socket.ready(Interest::READABLE | Interest::ERROR).await
    }

    /// Reads, with a function that returns [`io::ErrorKind::WouldBlock`] if nothing is left.
    pub(crate) fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.socket.try_io(Interest::READABLE, read)
    }

    /// Waits until there is something to read, and reads it; reports are skipped.
    #[cfg(feature = "quic")]
    pub(crate) fn poll_read<R>(
        &self,
        cx: &mut Context<'_>,
        mut read: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            ready!(self.socket.poll_recv_ready(cx))?;
            match self.try_read(&mut read) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock
                        || icmp::is_icmp_report(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Takes pending error reports, up to a limit.
    pub(crate) fn take_reports(
        &self,
        limit: usize,
        mut take: impl FnMut(IcmpReport),
    ) -> io::Result<()> {
        let read = || -> io::Result<()> {
            for _ in 0..limit {
                if let Some(report) = icmp::read(self)? {
                    take(report);
                }
            }
            Ok(())
        };
        match self.socket.try_io(Interest::ERROR, read) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            read => read,
        }
    }

    /// Waits until something is reported, and takes the reports.
    #[cfg(feature = "quic")]
    pub(crate) async fn reports(
        &self,
        limit: usize,
        take: impl FnMut(IcmpReport),
    ) -> io::Result<()> {
        self.socket.ready(Interest::ERROR).await?;
        self.take_reports(limit, take)
    }

    /// Sends with this call, and repeats it if it returned an earlier packet's error.
    pub(crate) fn send(&self, mut send: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        for _ in 1..MAX_SENDS {
            match send() {
                Err(error) if icmp::is_icmp_report(&error) => {}
                sent => return sent,
            }
        }
        send()
    }

    /// Waits until a full socket may accept packets again.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        let registered =
            self.get().try_clone().and_then(|socket| UdpSocket::from_std(socket.into()));
        match registered {
            Ok(socket) => socket.writable().await,
            Err(_) => {
                tokio::time::sleep(FULL_PAUSE).await;
                Ok(())
            }
        }
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(all(test, feature = "quic"))]
mod tests;
