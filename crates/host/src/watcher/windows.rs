//! A comparison every few seconds. `NotifyIpInterfaceChange` would call a function on a thread of the system's, for a
//! gain of two seconds after a change: a race that begins in between fails over to another address as on any network
//! that has just gone.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::addresses::{OwnAddress, usable_addresses};
use crate::routes::{self, HostRoute};

/// How often the network is read.
const INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Notifications {
    known: Mutex<NetworkSnapshot>,
}

#[derive(Debug, PartialEq)]
struct NetworkSnapshot {
    routes: Vec<HostRoute>,
    addresses: Vec<OwnAddress>,
}

impl NetworkSnapshot {
    fn read() -> Self {
        let routes = routes::read();
        Self { addresses: usable_addresses(&routes), routes }
    }
}

impl Notifications {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { known: Mutex::new(NetworkSnapshot::read()) })
    }

    pub(super) async fn changed(&self) -> io::Result<()> {
        loop {
            tokio::time::sleep(INTERVAL).await;
            // It takes milliseconds, and more where the gateway has to be asked for its hardware address.
            let now = tokio::task::spawn_blocking(NetworkSnapshot::read).await?;
            if self.replace(now) {
                return Ok(());
            }
        }
    }

    pub(super) fn drain(&self) {
        self.replace(NetworkSnapshot::read());
    }

    /// Returns whether it is another one.
    fn replace(&self, now: NetworkSnapshot) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = *known != now;
        *known = now;
        is_other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_network_is_no_change() {
        let watcher = Notifications::new().unwrap();
        assert!(!watcher.replace(NetworkSnapshot::read()));
        let other = NetworkSnapshot { routes: Vec::new(), addresses: Vec::new() };
        assert!(watcher.replace(other), "this host has a loopback address");
    }
}
