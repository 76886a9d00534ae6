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

/// Where programs find a supervisor.
#[derive(Clone, Debug)]
pub enum Place {
    /// An abstract name, for programs that are given it in their environment, in this network
    /// namespace.
    Private,
    /// A path, for all users whom the file's mode allows to write.
    Path {
        /// The absolute path, because programs have their own working directories.
        path: PathBuf,
        /// The file mode, as for `chmod`.
        mode: u32,
    },
}

/// What a supervisor listens on.
pub(crate) struct Door {
    pub(crate) listener: UnixListener,
    /// The key that requests must contain; for a socket file its mode is sufficient.
    pub(crate) key: u64,
}

/// The listening sockets of a supervisor.
pub(crate) struct Opened {
    pub(crate) doors: Vec<Door>,
    /// The value for the environment of programs.
    pub(crate) address: OsString,
    pub(crate) file: Option<SocketFile>,
}

/// Opens a place. In any case there is also an abstract name, by which the user who started it
/// finds it (`/proc/net/unix`).
pub(crate) fn open(place: &Place) -> io::Result<Opened> {
    let (name, key) = (format!("{NAME}{:016x}", number()?), number()?);
    let hidden = StdListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    let mut doors = vec![door(hidden, key)?];
    let (address, file) = match place {
        Place::Private => (format!("@{name} {key:016x}").into(), None),
        Place::Path { path, mode } => {
            let (listener, file) = SocketFile::listen(path, *mode)?;
            doors.push(door(listener, 0)?);
            // For the library, a space ends the address.
            let mut address = path.clone().into_os_string();
            address.push(" 0");
            (address, Some(file))
        }
    };
    Ok(Opened { doors, address, file })
}

fn door(listener: StdListener, key: u64) -> io::Result<Door> {
    listener.set_nonblocking(true)?;
    Ok(Door { listener: UnixListener::from_std(listener)?, key })
}
