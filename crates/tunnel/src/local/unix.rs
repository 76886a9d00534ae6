//! The file of a Unix socket.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net as std_unix;
use std::path::PathBuf;

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::UnixListener;

use crate::frame::UnixPath;

/// The backlog of a Unix socket; the kernel lowers it to its own limit.
const BACKLOG: i32 = 4096;

pub(super) fn listen(path: &UnixPath) -> io::Result<(UnixListener, SocketFile)> {
    let listener = match bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(path) => {
            fs::remove_file(path.as_str())?;
            bind(path)
        }
        bound => bound,
    }?;
    let file = SocketFile::from_path(path)?;
    Ok((UnixListener::from_std(listener)?, file))
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
