//! Requests to a supervisor from processes other than its programs.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use crate::local::{ENVIRONMENT, Op, RESPONSE, Request, Response, key_of};
use crate::place::NAME;

/// How long a supervisor may take to answer before it is considered stuck or stopped.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The kernel's list of the local sockets of this network namespace.
const SOCKET_TABLE: &str = "/proc/thread-self/net/unix";
/// The flags of listening sockets in that list.
const LISTENING_FLAGS: &str = "00010000";

/// The address of a supervisor, and the key that authorises requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorAddress {
    location: Location,
    key: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Location {
    Path(PathBuf),
    Name(Vec<u8>),
}

/// Why a supervisor did not answer.
#[derive(Debug)]
pub enum AskError {
    /// There is no supervisor, or this user may not connect to it.
    Unreached(io::Error),
    /// The request was accepted but not answered, or not in time.
    Silent(io::Error),
    /// It is another version of eyas with an incompatible protocol.
    OtherVersion,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreached(error) => write!(f, "cannot reach a supervisor there: {error}"),
            Self::Silent(error) => write!(f, "no answer: {error}"),
            Self::OtherVersion => f.write_str("another version of eyas is running there"),
        }
    }
}

impl std::error::Error for AskError {}

impl SupervisorAddress {
    /// Returns the supervisor at this path.
    pub fn from_path(path: &Path) -> Self {
        Self { location: Location::Path(path.to_owned()), key: 0 }
    }

    /// Returns the supervisor of a program with this value in its environment.
    pub fn parse(value: &OsStr) -> Option<Self> {
        let value = value.as_bytes();
        let (address, key) = match value.iter().rposition(|byte| *byte == b' ') {
            Some(separator) => (&value[..separator], key_of(&value[separator + 1..])?),
            None => (value, 0),
        };
        let location = match address.strip_prefix(b"@") {
            Some(name) => Location::Name(name.to_vec()),
            None => Location::Path(OsString::from_vec(address.to_vec()).into()),
        };
        Some(Self { location, key })
    }

    /// Returns the supervisor of this process, if it was started under one.
    pub fn from_this_process() -> Option<Self> {
        Self::parse(&std::env::var_os(ENVIRONMENT)?)
    }

    /// Returns the supervisors of this network namespace, of all users.
    ///
    /// # Errors
    /// If the kernel does not list its sockets.
    pub fn all() -> io::Result<Vec<Self>> {
        let table = std::fs::read_to_string(SOCKET_TABLE)?;
        Ok(table.lines().filter_map(listed).collect())
    }

    /// Returns the value for the environment of programs.
    pub fn value(&self) -> OsString {
        let mut value = match &self.location {
            Location::Path(path) => path.clone().into_os_string(),
            Location::Name(name) => OsString::from_vec([b"@", &name[..]].concat()),
        };
        value.push(format!(" {:x}", self.key));
        value
    }

    /// Returns the key that a request contains.
    pub(crate) const fn key(&self) -> u64 {
        self.key
    }

    /// Returns the path: an abstract name starts with a zero byte.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.location {
            Location::Path(path) => path.clone(),
            Location::Name(name) => OsString::from_vec([b"\0", &name[..]].concat()).into(),
        }
    }

    /// Returns the state of the supervisor, as JSON. Programs that may use its sockets, root, and
    /// the user who runs it may request it.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn status(&self) -> Result<Vec<u8>, AskError> {
        let mut stream = self.connect().map_err(AskError::Unreached)?;
        let request = Request { key: self.key, ..Request::new(Op::Status) };
        let mut head = [0; RESPONSE];
        let mut exchange = || -> io::Result<()> {
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
            stream.write_all(&request.encode())?;
            stream.read_exact(&mut head)
        };
        exchange().map_err(AskError::Silent)?;
        let response = Response::parse(&head).ok_or(AskError::OtherVersion)?;
        if response.result < 0 {
            return Err(AskError::Silent(io::Error::from_raw_os_error(-response.result)));
        }
        let mut status = vec![0; response.data as usize];
        stream.read_exact(&mut status).map_err(AskError::Silent)?;
        Ok(status)
    }

    /// Returns the user who serves there.
    ///
    /// # Errors
    /// If there is no supervisor, or this user may not connect to it.
    pub fn server_user(&self) -> Result<u32, AskError> {
        let stream = self.connect().map_err(AskError::Unreached)?;
        let peer = getsockopt(&stream, PeerCredentials);
        peer.map(|peer| peer.uid()).map_err(|error| AskError::Unreached(error.into()))
    }

    fn connect(&self) -> io::Result<UnixStream> {
        match &self.location {
            Location::Path(path) => UnixStream::connect(path),
            Location::Name(name) => {
                UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)
            }
        }
    }
}

/// Parses a line of the kernel's list, if it is that of a listening supervisor.
fn listed(line: &str) -> Option<SupervisorAddress> {
    let mut fields = line.split_whitespace();
    let flags = fields.nth(3)?;
    let name = fields.nth(3)?.strip_prefix('@')?;
    let is_supervisor = flags == LISTENING_FLAGS && name.starts_with(NAME);
    is_supervisor.then(|| SupervisorAddress { location: Location::Name(name.into()), key: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_programs_is_read_back() {
        for value in ["@eyas-sctp/00ff 1f", "/run/a b/sctp 0"] {
            let address = SupervisorAddress::parse(OsStr::new(value)).unwrap();
            assert_eq!(address.value(), value);
        }
        assert_eq!(
            SupervisorAddress::parse(OsStr::new("/run/sctp")).unwrap().value(),
            "/run/sctp 0"
        );
        assert_eq!(SupervisorAddress::parse(OsStr::new("/run/sctp key")), None);
    }

    #[test]
    fn only_listening_supervisors_are_listed() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 4711 @eyas-sctp/00ff";
        let address = listed(line).unwrap();
        assert_eq!(address.value(), "@eyas-sctp/00ff 0");
        let accepted = line.replace("00010000", "00000000");
        assert_eq!(listed(&accepted), None);
        assert_eq!(listed(&line.replace("eyas-sctp/", "eyas-sctp-socket/")), None);
        assert_eq!(listed("0: 00000002 00000000 00010000 0001 01 4711 /run/sctp"), None);
        assert_eq!(listed("0: 00000002 00000000 00010000 0001 01 4711"), None);
    }
}
