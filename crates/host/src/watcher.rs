//! Changes of links, addresses and routes: notifications of the kernel on Unix, a comparison every few seconds on Windows.

use std::io;

use tokio::net::UdpSocket;

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod bsd;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(unix)]
mod messages;
#[cfg(windows)]
mod windows;

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
use bsd as platform;
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(unix)]
use messages::Notifications;
#[cfg(windows)]
use windows::Notifications;

/// Receives notifications of changes of links, addresses and routes.
#[derive(Debug)]
pub struct NetworkWatcher(Notifications);

/// Returns a netlink socket that receives the messages of these groups, a bit for each. The runtime
/// has no type for this family, but treats all datagram sockets alike. Must be called inside a tokio
/// runtime.
///
/// # Errors
/// If the kernel refuses it, as in some sandboxes, or is not Linux.
pub fn subscribed(groups: u32) -> io::Result<UdpSocket> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        platform::subscribed(groups)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = groups;
        Err(io::Error::new(io::ErrorKind::Unsupported, "netlink is a facility of Linux"))
    }
}

impl NetworkWatcher {
    /// Begins to watch. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the kernel refuses it, as in some sandboxes.
    pub fn new() -> io::Result<Self> {
        Notifications::new().map(Self)
    }

    /// Waits for a change. Changes come in bursts: link, then addresses, then routes. Cancel-safe.
    ///
    /// # Errors
    /// If the socket fails.
    pub async fn changed(&self) -> io::Result<()> {
        self.0.changed().await
    }

    /// Forgets the changes up to now.
    pub fn drain(&self) {
        self.0.drain();
    }
}
