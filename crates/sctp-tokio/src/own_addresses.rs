//! The local addresses that may be announced to an endpoint's peers, and their changes.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eyas_host::addresses::own_addresses;
use eyas_host::watcher::NetworkWatcher;

use super::carrier::Wire;

/// Changes come in bursts (link, then addresses, then routes); the addresses are read when they
/// pause.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// The addresses of all [`UnannouncedAddresses`].
static UNANNOUNCED: Mutex<Vec<IpAddr>> = Mutex::new(Vec::new());

/// Addresses of this host that no association of this process announces to its peer, until this is
/// dropped: those of an interface whose packets an association carries, which would otherwise get a
/// path through itself. An address that a socket is bound to is announced all the same.
#[derive(Debug)]
pub struct UnannouncedAddresses(Vec<IpAddr>);

impl UnannouncedAddresses {
    /// Stops announcing these addresses. Associations that have announced one keep it until the
    /// addresses of this host change.
    pub fn new(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let addresses: Vec<IpAddr> = addresses.into_iter().collect();
        unannounced().extend(&addresses);
        Self(addresses)
    }
}

impl Drop for UnannouncedAddresses {
    fn drop(&mut self) {
        let mut all = unannounced();
        for address in &self.0 {
            if let Some(index) = all.iter().position(|unannounced| unannounced == address) {
                all.swap_remove(index);
            }
        }
    }
}

fn unannounced() -> MutexGuard<'static, Vec<IpAddr>> {
    UNANNOUNCED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The addresses that the sockets of an endpoint are bound to.
#[derive(Clone, Debug)]
pub(super) struct BoundAddresses(Vec<IpAddr>);

impl BoundAddresses {
    pub(super) fn from_wires(wires: &[Wire]) -> Self {
        let mut bound = Vec::new();
        for wire in wires {
            let ip = wire.local().ip();
            if !bound.contains(&ip) {
                bound.push(ip);
            }
        }
        Self(bound)
    }

    /// Returns the addresses of this host that the sockets serve now, most preferred first.
    pub(super) fn current(&self) -> Vec<IpAddr> {
        self.served(&own_addresses())
    }

    /// Returns the served addresses among these. A socket bound to an address serves that one,
    /// including on loopback, where a host has more addresses than it lists. One bound to all
    /// addresses serves those that other hosts can reach.
    fn served(&self, present: &[IpAddr]) -> Vec<IpAddr> {
        let serves_all = |family: IpAddr| {
            self.0.iter().any(|bound| bound.is_unspecified() && bound.is_ipv4() == family.is_ipv4())
        };
        let loopback = self.0.iter().filter(|address| address.is_loopback());
        let bound =
            self.0.iter().filter(|address| !address.is_loopback() && present.contains(address));
        let hidden = unannounced();
        let others = present.iter().filter(|address| {
            !address.is_loopback()
                && !self.0.contains(address)
                && serves_all(**address)
                && !hidden.contains(address)
        });
        loopback.chain(bound).chain(others).copied().collect()
    }
}

/// Watches for changes of the local addresses.
#[derive(Debug)]
pub(super) struct Watch {
    bound: BoundAddresses,
    /// `None` if the kernel refuses it, as in some sandboxes; then changes go unnoticed.
    watcher: Option<NetworkWatcher>,
    check_at: Option<Instant>,
    known: Vec<IpAddr>,
}

impl Watch {
    /// Starts watching. Must be called inside a tokio runtime.
    pub(super) fn new(bound: BoundAddresses, known: Vec<IpAddr>) -> Self {
        let watcher = NetworkWatcher::new();
        if let Err(error) = &watcher {
            tracing::debug!(%error, "changes of addresses will go unnoticed");
        }
        // Something may have changed before the subscription.
        Self { bound, watcher: watcher.ok(), check_at: Some(Instant::now()), known }
    }

    /// Waits until the kernel reports a change. The caller then calls `schedule_check`.
    pub(super) async fn changed(&self) {
        match &self.watcher {
            Some(watcher) if watcher.changed().await.is_ok() => {}
            _ => std::future::pending().await,
        }
    }

    /// Returns the addresses as they were when they were last read.
    pub(super) fn known(&self) -> &[IpAddr] {
        &self.known
    }

    /// Schedules a check after a change.
    pub(super) fn schedule_check(&mut self) {
        self.check_at.get_or_insert_with(|| Instant::now() + SETTLE_TIME);
    }

    /// Returns when to call `due_addresses` at the latest.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.check_at
    }

    /// Returns the addresses if a check is due. Routes may have changed even if the addresses have
    /// not.
    pub(super) fn due_addresses(&mut self, now: Instant) -> Option<Vec<IpAddr>> {
        if self.check_at.is_none_or(|time| time > now) {
            return None;
        }
        self.check_at = None;
        if let Some(watcher) = &self.watcher {
            watcher.drain();
        }
        let present = self.bound.current();
        let is_changed = present != self.known;
        self.known.clone_from(&present);
        is_changed.then_some(present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(bound: &[&str], present: &[&str]) -> Vec<String> {
        let parse = |list: &[&str]| -> Vec<IpAddr> {
            list.iter().map(|text| text.parse().unwrap()).collect()
        };
        let served = BoundAddresses(parse(bound)).served(&parse(present));
        served.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn wildcard_sockets_use_non_loopback_addresses() {
        let present = ["127.0.0.1", "::1", "10.0.0.1", "10.0.1.1", "2001:db8::1"];
        assert_eq!(served(&["0.0.0.0"], &present), ["10.0.0.1", "10.0.1.1"]);
        assert_eq!(served(&["0.0.0.0", "::"], &present), ["10.0.0.1", "10.0.1.1", "2001:db8::1"]);
    }

    #[test]
    fn sockets_at_single_addresses_serve_them_while_they_exist() {
        let bound = ["10.0.1.1", "10.0.0.1", "10.0.2.1"];
        assert_eq!(served(&bound, &["10.0.0.1", "10.0.1.1", "10.0.9.1"]), ["10.0.1.1", "10.0.0.1"]);
        assert_eq!(served(&["127.0.0.1", "127.0.0.2"], &["127.0.0.1"]), ["127.0.0.1", "127.0.0.2"]);
        assert_eq!(served(&["10.0.1.1", "0.0.0.0"], &["10.0.1.1"]), ["10.0.1.1"]);
    }

    #[test]
    fn the_addresses_of_an_interface_that_is_carried_are_not_announced() {
        let present = ["10.0.0.1", "10.77.0.1"];
        let carried = UnannouncedAddresses::new([IpAddr::from([10, 77, 0, 1])]);
        assert_eq!(served(&["0.0.0.0"], &present), ["10.0.0.1"]);
        assert_eq!(served(&["10.77.0.1"], &present), ["10.77.0.1"]);
        drop(carried);
        assert_eq!(served(&["0.0.0.0"], &present), present);
    }
}
