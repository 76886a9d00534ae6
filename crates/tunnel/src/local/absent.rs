//! Windows, where no socket is listened at that has a path.

use std::convert::Infallible;
use std::io;

use eyas::host::unix_socket::UnixListener;

use crate::frame::UnixPath;

/// The file of a socket: there is none.
#[derive(Debug)]
pub(crate) struct SocketFile(Infallible);

pub(super) fn listen(path: &UnixPath) -> io::Result<(UnixListener, SocketFile)> {
    let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
    UnixListener::bind(path.as_str()).and_then(|_| Err(unsupported()))
}
