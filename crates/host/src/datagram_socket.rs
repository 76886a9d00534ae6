//! A datagram socket that also reports ICMP errors ([`icmp`]), for the runtime.
//!
//! If an error is reported together with writability, tokio considers the write half closed,
//! permanently: a task that waits for writability would be woken every time and spin. So
//! writability is awaited on a separate registration, created anew each time.

use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, Socket};
use tokio::io::{Interest, Ready};
use tokio::net::UdpSocket;

use crate::icmp::{self, IcmpReport};

/// How often a send is tried, because the call may return an earlier packet's error.
const MAX_SENDS: usize = 4;
/// The pause before a full socket is tried again if its readiness cannot be watched.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// A non-blocking socket; see the [module](self).
#[derive(Debug)]
pub struct DatagramSocket {
    /// The runtime treats raw sockets like UDP sockets: they are readable, writable, or have
    /// errors.
    socket: UdpSocket,
}

impl DatagramSocket {
    /// Enables reports, where the platform has any ([`icmp::ABSENT`]). Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// If the socket is not one of IPv4 or IPv6, or the runtime does not accept it.
    pub fn new(socket: Socket) -> io::Result<Self> {
        icmp::enable_existing_reports(&socket)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket: UdpSocket::from_std(socket.into())? })
    }

    /// Returns the socket.
    pub fn get(&self) -> SockRef<'_> {
        SockRef::from(&self.socket)
    }

    /// Waits until there is something to read or to report. Cancel-safe.
    ///
    /// # Errors
    /// If the runtime is being shut down.
    pub async fn readable(&self) -> io::Result<Ready> {
        self.socket.ready(Interest::READABLE | Interest::ERROR).await
    }

    /// Reads, with a function that returns [`io::ErrorKind::WouldBlock`] if nothing is left.
    ///
    /// # Errors
    /// Those of the function.
    pub fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.socket.try_io(Interest::READABLE, read)
    }

    /// Waits until there is something to read, and reads it; reports are skipped.
    ///
    /// # Errors
    /// Those of the function, except for [`io::ErrorKind::WouldBlock`].
    pub fn poll_read<R>(
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
    ///
    /// # Errors
    /// If the error queue cannot be read.
    pub fn take_reports(&self, limit: usize, mut take: impl FnMut(IcmpReport)) -> io::Result<()> {
        let read = || -> io::Result<()> {
            for _ in 0..limit {
                if let Some(report) = icmp::read(&self.get())? {
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

    /// Waits until something is reported, and takes the reports, up to a limit.
    ///
    /// # Errors
    /// If the error queue cannot be read, or the runtime is being shut down.
    pub async fn reports(&self, limit: usize, take: impl FnMut(IcmpReport)) -> io::Result<()> {
        self.socket.ready(Interest::ERROR).await?;
        self.take_reports(limit, take)
    }

    /// Sends with this call, and repeats it if it returned an earlier packet's error.
    ///
    /// # Errors
    /// Those of the call.
    pub fn send(&self, mut send: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        for _ in 1..MAX_SENDS {
            match send() {
                Err(error) if icmp::is_icmp_report(&error) => {}
                sent => return sent,
            }
        }
        send()
    }

    /// Waits until a full socket may accept packets again. Cancel-safe.
    ///
    /// # Errors
    /// If the runtime is being shut down.
    pub async fn writable(&self) -> io::Result<()> {
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

#[cfg(all(test, target_os = "linux"))]
mod tests;
