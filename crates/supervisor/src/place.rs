//! The addresses at which programs find a supervisor.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener};
use std::path::PathBuf;

use tokio::net::UnixListener;

use crate::random::number;
use crate::socket_file::SocketFile;

/// The prefix of the abstract names of supervisors; a random number follows.
pub(crate) const NAME: &str = "eyas-sctp/";

/// Where a supervisor listens for programs.
#[derive(Clone, Debug)]
pub enum SupervisorPlace {
    /// An abstract name in this network namespace, which programs receive in their environment.
    Private,
    /// A path, for all users whose access the file's mode permits.
    Path {
        /// The absolute path, because programs have their own working directories.
        path: PathBuf,
        /// The file mode, as for `chmod`.
        mode: u32,
    },
}

/// A listening socket of a supervisor.
pub(crate) struct ListeningSocket {
    pub(crate) listener: UnixListener,
    /// The key that requests must contain; for a socket file its mode is sufficient.
    pub(crate) key: u64,
}

/// The listening sockets of a supervisor.
pub(crate) struct BoundPlace {
    pub(crate) listening_sockets: Vec<ListeningSocket>,
    /// The value for the environment of programs.
    pub(crate) address: OsString,
    pub(crate) file: Option<SocketFile>,
}

/// Opens a place. There is always an abstract name too, by which the user who started the
/// supervisor finds it (`/proc/net/unix`).
pub(crate) fn open(place: &SupervisorPlace) -> io::Result<BoundPlace> {
    let (name, key) = (format!("{NAME}{:016x}", number()?), number()?);
    let abstract_listener = StdListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    let mut listening_sockets = vec![listening_socket(abstract_listener, key)?];
    let (address, file) = match place {
        SupervisorPlace::Private => (format!("@{name} {key:016x}").into(), None),
        SupervisorPlace::Path { path, mode } => {
            let (listener, file) = SocketFile::listen(path, *mode)?;
            listening_sockets.push(listening_socket(listener, 0)?);
            // The library parses the address up to a space.
            let mut address = path.clone().into_os_string();
            address.push(" 0");
            (address, Some(file))
        }
    };
    Ok(BoundPlace { listening_sockets, address, file })
}

fn listening_socket(listener: StdListener, key: u64) -> io::Result<ListeningSocket> {
    listener.set_nonblocking(true)?;
    Ok(ListeningSocket { listener: UnixListener::from_std(listener)?, key })
}
