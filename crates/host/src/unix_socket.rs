//! Sockets of the file system (`AF_UNIX`), as tokio has them; where it has none, a connection fails and says so.

#[cfg(windows)]
mod absent;

#[cfg(windows)]
pub use absent::{UnixListener, UnixStream};
#[cfg(unix)]
pub use tokio::net::{UnixListener, UnixStream};
