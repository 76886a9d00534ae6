//! Alternatives per origin, with their expiry (RFC 7838 §2.2).

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{AltSvc, BrokenAlternatives, Service, parse};

/// Origins remembered; the one learnt longest ago goes first.
pub const MAX_ORIGINS: usize = 1024;

/// An `https` origin: host (as an A-label or a literal) and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The host, lower case.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The first port that any user of a host may listen at; those below are for its services.
const FIRST_USER_PORT: u16 = 1024;

/// Whether an origin at one port may lead to an alternative at another. Below 1024 live services
/// that are not HTTP, and that act on what a handshake happens to contain: 80 and 443 alone are led
/// to, unless the origin has such a port itself (RFC 7838 §9.1; browsers refuse them too).
pub const fn is_port_allowed(origin: u16, alternative: u16) -> bool {
    !is_of_other_services(alternative) || is_of_other_services(origin)
}

const fn is_of_other_services(port: u16) -> bool {
    port < FIRST_USER_PORT && !matches!(port, 80 | 443)
}

#[derive(Clone, Debug)]
struct Kept {
    service: Service,
    expires: Duration,
    persist: bool,
}

/// What origins have announced. `now` is any clock that does not go back.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    origins: BTreeMap<Origin, Vec<Kept>>,
    /// Origins in the order in which they were learnt, oldest first.
    order: VecDeque<Origin>,
    broken: BrokenAlternatives,
    malformed: u64,
}

impl Cache {
    /// Nothing learnt yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a field value from a response of `origin` that is `age` old (its `Age` field).
    ///
    /// A malformed value is counted and changes nothing. An alternative at a port where
    /// [other services live](is_port_allowed) is left out.
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

    /// The most wanted alternative of `origin` that is fresh, not broken, and accepted by `wanted`.
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

    /// The alternative failed before it gave a response: it is left alone for a time that doubles
    /// with each failure.
    pub fn failed(&mut self, origin: &Origin, service: &Service, now: Duration) {
        self.broken.failed(origin, service, now);
    }

    /// The alternative gave a response: what was held against it is forgotten.
    pub fn worked(&mut self, origin: &Origin, service: &Service) {
        self.broken.worked(origin, service);
    }

    /// The alternative said 421 (Misdirected Request): it does not speak for this origin (§6).
    pub fn misdirected(&mut self, origin: &Origin, service: &Service) {
        if let Some(kept) = self.origins.get_mut(origin) {
            kept.retain(|kept| kept.service != *service);
            if kept.is_empty() {
                self.drop_origin(origin);
            }
        }
    }

    /// The host moved to another network: only alternatives with `persist` stay (§2.2), and what
    /// was broken on the old network may work on the new one.
    pub fn network_changed(&mut self) {
        for kept in self.origins.values_mut() {
            kept.retain(|kept| kept.persist);
        }
        self.origins.retain(|_, kept| !kept.is_empty());
        self.order.retain(|origin| self.origins.contains_key(origin));
        self.broken.clear();
    }

    /// How many field values could not be read.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// How many origins have alternatives, fresh or not.
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    fn drop_origin(&mut self, origin: &Origin) {
        if self.origins.remove(origin).is_some() {
            self.order.retain(|known| known != origin);
        }
    }
}
