//! The local addresses that may be announced to an endpoint's peers, and their changes.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::carrier::Wire;
use crate::network::{Watcher, own_addresses};

/// Changes come in bursts (link, then addresses, then routes): the look is taken when they pause.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// Where the sockets of an endpoint are bound.
#[derive(Clone, Debug)]
pub(super) struct Bound(Vec<IpAddr>);

impl Bound {
    pub(super) fn of(wires: &[Wire]) -> Self {
        let mut bound = Vec::new();
        for wire in wires {
            let ip = wire.local().ip();
            if !bound.contains(&ip) {
                bound.push(ip);
            }
        }
        Self(bound)
    }

    /// Returns the addresses of this host that the sockets serve, most preferred first.
    pub(super) fn now(&self) -> Vec<IpAddr> {
        self.among(&own_addresses())
    }

    /// Returns the served addresses among these. A socket bound to an address serves that one,
    /// including on loopback, where a host has more addresses than it lists. One bound to all
    /// addresses serves those that lead to other hosts.
    fn among(&self, present: &[IpAddr]) -> Vec<IpAddr> {
        let serves_all = |family: IpAddr| {
            self.0.iter().any(|one| one.is_unspecified() && one.is_ipv4() == family.is_ipv4())
        };
        let loopback = self.0.iter().filter(|one| one.is_loopback());
        let bound = self.0.iter().filter(|one| !one.is_loopback() && present.contains(one));
        let others = present
            .iter()
            .filter(|one| !one.is_loopback() && !self.0.contains(one) && serves_all(**one));
        loopback.chain(bound).chain(others).copied().collect()
    }
}

/// Hears of changes and looks.
#[derive(Debug)]
pub(super) struct Watch {
    bound: Bound,
    /// Without it changes go unnoticed; the kernel refuses it in some sandboxes.
    watcher: Option<Watcher>,
    look_at: Option<Instant>,
    known: Vec<IpAddr>,
}

impl Watch {
    /// Creates the addresses. Must be called inside a tokio runtime.
    pub(super) fn new(bound: Bound, known: Vec<IpAddr>) -> Self {
        let watcher = Watcher::new();
        if let Err(error) = &watcher {
            tracing::debug!(%error, "no notice of changed addresses");
        }
        // Something may have changed before the subscription.
        Self { bound, watcher: watcher.ok(), look_at: Some(Instant::now()), known }
    }

    /// Waits until the kernel gives notice of a change; from then on there is a time to look.
    pub(super) async fn noticed(&self) {
        match &self.watcher {
            Some(watcher) if watcher.changed().await.is_ok() => {}
            _ => std::future::pending().await,
        }
    }

    /// Schedules a check after a change.
    pub(super) fn settle(&mut self) {
        self.look_at.get_or_insert_with(|| Instant::now() + SETTLE_TIME);
    }

    /// Returns when to call `due_addresses` at the latest.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.look_at
    }

    /// Returns the addresses if a check is due. Routes may have changed even if the addresses have
    /// not.
    pub(super) fn due_addresses(&mut self, now: Instant) -> Option<Vec<IpAddr>> {
        if self.look_at.is_none_or(|time| time > now) {
            return None;
        }
        self.look_at = None;
        if let Some(watcher) = &self.watcher {
            watcher.drain();
        }
        let present = self.bound.now();
        let is_changed = present != self.known;
        self.known.clone_from(&present);
        is_changed.then_some(present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(bound: &[&str], present: &[&str]) -> Vec<String> {
        let parse = |list: &[&str]| -> Vec<IpAddr> {
            list.iter().map(|text| text.parse().unwrap()).collect()
        };
        let among = Bound(parse(bound)).among(&parse(present));
        among.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn wildcard_sockets_use_non_loopback_addresses() {
        let present = ["127.0.0.1", "::1", "10.0.0.1", "10.0.1.1", "2001:db8::1"];
        assert_eq!(among(&["0.0.0.0"], &present), ["10.0.0.1", "10.0.1.1"]);
        assert_eq!(among(&["0.0.0.0", "::"], &present), ["10.0.0.1", "10.0.1.1", "2001:db8::1"]);
    }

    #[test]
    fn sockets_at_single_addresses_serve_them_while_they_exist() {
        let bound = ["10.0.1.1", "10.0.0.1", "10.0.2.1"];
        assert_eq!(among(&bound, &["10.0.0.1", "10.0.1.1", "10.0.9.1"]), ["10.0.1.1", "10.0.0.1"]);
        assert_eq!(among(&["127.0.0.1", "127.0.0.2"], &["127.0.0.1"]), ["127.0.0.1", "127.0.0.2"]);
        assert_eq!(among(&["10.0.1.1", "0.0.0.0"], &["10.0.1.1"]), ["10.0.1.1"]);
    }
}
