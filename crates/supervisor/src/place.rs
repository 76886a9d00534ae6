//! Where programs find a supervisor.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener};
use std::path::PathBuf;

use tokio::net::UnixListener;

use crate::random::number;
use crate::socket_file::SocketFile;

/// What the abstract names of supervisors begin with; a random number follows.
pub(crate) const NAME: &str = "eyas-sctp/";

/// Where programs find a supervisor.
#[derive(Clone, Debug)]
pub enum Place {
    /// For those who are told of it by their environment, in this network namespace.
    Private,
    /// At a path, for all whom the file's mode lets write.
    Path {
        /// Where: absolute, for programs have folders of their own.
        path: PathBuf,
        /// Who may use it, as `chmod` has it.
        mode: u32,
    },
}

/// What a supervisor listens at.
pub(crate) struct Door {
    pub(crate) listener: UnixListener,
    /// What a request has to show; the mode of a file is enough for those who come by it.
    pub(crate) key: u64,
}

/// What a supervisor is reached by.
pub(crate) struct Opened {
    pub(crate) doors: Vec<Door>,
    /// For the environment of programs.
    pub(crate) address: OsString,
    pub(crate) file: Option<SocketFile>,
}

/// Opens a place. Whatever it is, there is an abstract name as well, by which the user who started it
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
            // A blank ends the address for the library.
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
