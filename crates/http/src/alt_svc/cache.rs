//! Alternatives per origin, with their expiry (RFC 7838 §2.2).

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{AltSvc, BrokenAlternatives, Service, parse};

/// The maximum number of origins remembered; the least recently learnt one is evicted first.
pub const MAX_ORIGINS: usize = 1024;

/// An `https` origin: host (as an A-label or a literal) and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The host, lower case.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The lowest port that any user of a host may bind; those below are reserved for privileged
/// services.
const FIRST_USER_PORT: u16 = 1024;

/// Returns whether an origin at one port may name an alternative at another. Ports below 1024
/// belong to services other than HTTP, which may act on bytes that a handshake happens to contain:
/// only 80 and 443 are allowed, unless the origin's own port is below 1024 too (RFC 7838 §9.1;
/// browsers refuse them as well).
pub const fn is_port_allowed(origin: u16, alternative: u16) -> bool {
    !is_of_another_service(alternative) || is_of_another_service(origin)
}

const fn is_of_another_service(port: u16) -> bool {
    port < FIRST_USER_PORT && !matches!(port, 80 | 443)
}

#[derive(Clone, Debug)]
struct Kept {
    service: Service,
    expires: Duration,
    persist: bool,
}

/// The alternatives that origins have announced. `now` may come from any monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    origins: BTreeMap<Origin, Vec<Kept>>,
    /// Origins in the order in which they were learnt, oldest first.
    order: VecDeque<Origin>,
    broken: BrokenAlternatives,
    malformed: u64,
}

impl Cache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a field value from a response of `origin` that is `age` old (its `Age` field).
    ///
    /// A malformed value is counted and otherwise ignored. Alternatives at a port that [is not
    /// allowed](is_port_allowed) are skipped.
    pub fn learn(&mut self, origin: &Origin, field: &[u8], age: Duration, now: Duration) {
        let alternatives = match parse(field) {
            Err(_) => {
                self.malformed = self.malformed.saturating_add(1);
                return;
            }
            Ok(AltSvc::Clear) => Vec::new(),
            Ok(AltSvc::Alternatives(alternatives)) => alternatives,
        };
        let kept: Vec<Kept> = alternatives
            .iter()
            .filter(|alternative| is_port_allowed(origin.port, alternative.port))
            .filter_map(|alternative| {
                let fresh_for = alternative.max_age.checked_sub(age).filter(|left| !left.is_zero());
                Some(Kept {
                    service: alternative.service(),
                    expires: now.saturating_add(fresh_for?),
                    persist: alternative.persist,
                })
            })
            .collect();
        self.drop_origin(origin);
        if kept.is_empty() {
            return;
        }
        if self.origins.len() >= MAX_ORIGINS
            && let Some(oldest) = self.order.pop_front()
        {
            self.origins.remove(&oldest);
        }
        self.origins.insert(origin.clone(), kept);
        self.order.push_back(origin.clone());
    }

    /// Returns the most preferred alternative of `origin` that is fresh, not broken, and accepted
    /// by `wanted`.
    pub fn best(
        &mut self,
        origin: &Origin,
        now: Duration,
        wanted: impl Fn(&Service) -> bool,
    ) -> Option<Service> {
        let kept = self.origins.get_mut(origin)?;
        kept.retain(|kept| kept.expires > now);
        if kept.is_empty() {
            self.drop_origin(origin);
            return None;
        }
        kept.iter()
            .map(|kept| &kept.service)
            .find(|service| wanted(service) && !self.broken.is_broken(origin, service, now))
            .cloned()
    }

    /// Records that the alternative failed before it returned a response: it is avoided for a time
    /// that doubles with each failure.
    pub fn failed(&mut self, origin: &Origin, service: &Service, now: Duration) {
        self.broken.failed(origin, service, now);
    }

    /// Records that the alternative returned a response: its earlier failures are forgotten.
    pub fn worked(&mut self, origin: &Origin, service: &Service) {
        self.broken.worked(origin, service);
    }

    /// Records that the alternative answered 421 (Misdirected Request): it is not authoritative for
    /// this origin (§6).
    pub fn misdirected(&mut self, origin: &Origin, service: &Service) {
        if let Some(kept) = self.origins.get_mut(origin) {
            kept.retain(|kept| kept.service != *service);
            if kept.is_empty() {
                self.drop_origin(origin);
            }
        }
    }

    /// Records that the host moved to another network: only alternatives with `persist` are kept
    /// (§2.2), and those that were broken on the old network may work on the new one.
    pub fn network_changed(&mut self) {
        for kept in self.origins.values_mut() {
            kept.retain(|kept| kept.persist);
        }
        self.origins.retain(|_, kept| !kept.is_empty());
        self.order.retain(|origin| self.origins.contains_key(origin));
        self.broken.clear();
    }

    /// Returns the number of malformed field values.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Returns the number of origins with alternatives, fresh or not.
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    fn drop_origin(&mut self, origin: &Origin) {
        if self.origins.remove(origin).is_some() {
            self.order.retain(|known| known != origin);
        }
    }
}
