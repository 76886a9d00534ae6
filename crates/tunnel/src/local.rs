//! Sockets of this host at the ends of channels: TCP's, and Unix sockets with a path.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use eyas::host::unix_socket::{UnixListener, UnixStream};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::either::Either;

use crate::frame::UnixPath;

#[cfg(windows)]
#[path = "local/absent.rs"]
mod socket_file;
#[cfg(unix)]
#[path = "local/unix.rs"]
mod socket_file;

use socket_file::SocketFile;

/// A connection with a program or a service.
pub(crate) type LocalStream = Either<TcpStream, UnixStream>;

/// Has a connection reset when it is dropped. A Unix socket has no reset: its other end sees the end.
pub(crate) fn reset_when_dropped(stream: &LocalStream) {
    if let LocalStream::Left(tcp) = stream {
        let _ = SockRef::from(tcp).set_linger(Some(Duration::ZERO));
    }
}

/// Has it end in order when it is dropped.
pub(crate) fn end_when_dropped(stream: &LocalStream) {
    if let LocalStream::Left(tcp) = stream {
        let _ = SockRef::from(tcp).set_linger(None);
    }
}

/// A listener for programs.
#[derive(Debug)]
pub(crate) enum LocalListener {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// Dropped after the socket.
        _file: SocketFile,
    },
}

impl LocalListener {
    /// Accepts a connection, with its address, which is unspecified at a Unix socket.
    pub(crate) async fn accept(&self) -> io::Result<(LocalStream, SocketAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (tcp, peer) = listener.accept().await?;
                // Keystrokes must not wait for one another's acknowledgement.
                let _ = tcp.set_nodelay(true);
                Ok((LocalStream::Left(tcp), peer))
            }
            Self::Unix { listener, .. } => {
                let (unix, _) = listener.accept().await?;
                Ok((LocalStream::Right(unix), (Ipv4Addr::UNSPECIFIED, 0).into()))
            }
        }
    }

    /// Listens at a Unix socket that only this user can use. The file of one at which nobody listens any more is
    /// replaced.
    pub(crate) fn unix(path: &UnixPath) -> io::Result<Self> {
        let (listener, _file) = socket_file::listen(path)?;
        Ok(Self::Unix { listener, _file })
    }
}
