//! Messages to the service manager (sd_notify(3)): datagrams to a Unix socket that it names.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The timeout of a message. A manager that is slow gets it; one that reads nothing must not keep the server from
/// its signals.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The socket of the service manager.
pub(super) struct ServiceNotifier {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl ServiceNotifier {
    /// Returns the socket, if a service manager waits for messages.
    pub(super) fn from_env() -> Option<Self> {
        let address = address(&env::var_os("NOTIFY_SOCKET")?).ok()?;
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_write_timeout(Some(TIMEOUT)).ok()?;
        Some(Self { socket, address })
    }

    /// Sends assignments, one per line. A service manager that does not take them is no reason to
    /// stop serving.
    pub(super) fn send(&self, state: &str) {
        let _ = self.socket.send_to_addr(state.as_bytes(), &self.address);
    }

    /// Returns how often to send `WATCHDOG=1` (sd_watchdog_enabled(3)): twice as often as necessary.
    pub(super) fn watchdog_period(&self) -> Option<Duration> {
        let is_for_us = match env::var("WATCHDOG_PID") {
            Ok(pid) => pid.parse() == Ok(std::process::id()),
            Err(_) => true,
        };
        let micros = env::var("WATCHDOG_USEC").ok()?.parse().ok().filter(|micros| *micros > 1)?;
        is_for_us.then(|| Duration::from_micros(micros) / 2)
    }
}

/// Returns the message that files are being loaded again, with the time of the monotonic clock, by
/// which a service manager tells it from an earlier one.
pub(super) fn reloading() -> String {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
    format!("RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS=loading files again\n")
}

/// Parses the address of the socket: a path, or with an at sign an abstract name of Linux.
fn address(text: &OsStr) -> io::Result<SocketAddr> {
    match text.as_bytes().strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt as _;
            SocketAddr::from_abstract_name(name)
        }
        #[cfg(not(target_os = "linux"))]
        Some(_) => Err(io::ErrorKind::Unsupported.into()),
        None => SocketAddr::from_pathname(text),
    }
}
