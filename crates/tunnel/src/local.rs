//! Sockets of this host at the ends of channels: TCP's, and Unix sockets with a path.

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net as std_unix;
use std::path::PathBuf;
use std::time::Duration;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::either::Either;

use crate::frame::UnixPath;

/// The backlog of a Unix socket; the kernel lowers it to its own limit.
const BACKLOG: i32 = 4096;

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
        let listener = match bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(path) => {
                fs::remove_file(path.as_str())?;
                bind(path)
            }
            bound => bound,
        }?;
        let _file = SocketFile::from_path(path)?;
        Ok(Self::Unix { listener: UnixListener::from_std(listener)?, _file })
    }
}

fn bind(path: &UnixPath) -> io::Result<std_unix::UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path.as_str())?)?;
    // Before anybody can connect.
    fs::set_permissions(path.as_str(), Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Returns whether a path is a socket at which nobody listens.
fn is_abandoned(path: &UnixPath) -> bool {
    let is_socket = fs::symlink_metadata(path.as_str()).is_ok_and(|it| it.file_type().is_socket());
    let refused = std_unix::UnixStream::connect(path.as_str())
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    is_socket && refused
}

/// The file of a socket, which is removed when this is dropped, unless it was replaced.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn from_path(path: &UnixPath) -> io::Result<Self> {
        let path = PathBuf::from(path.as_str());
        let found = fs::symlink_metadata(&path)?;
        Ok(Self { path, identity: (found.dev(), found.ino()) })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
