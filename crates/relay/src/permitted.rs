//! A race to the addresses that the rules allow its client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use eyas::race::candidate::Security;
use eyas::race::policy::Policy;
use eyas::race::target::Target;
use eyas::{Endpoint, Preconnection};

use crate::destination::Destination;
use crate::rules::{ClientRules, DenialReason, RuleVerdict};

/// A race to a destination, without security of its own.
pub struct PermittedRace {
    /// The race, which has not begun.
    pub preconnection: Preconnection,
    filtered: Arc<AtomicBool>,
}

impl PermittedRace {
    /// Creates a race to those addresses of a destination that this client may connect to.
    ///
    /// # Errors
    /// If the client may not connect to the destination at all.
    pub fn new(
        endpoint: &Endpoint,
        policy: Policy,
        rules: ClientRules,
        to: &Destination,
    ) -> Result<Self, DenialReason> {
        let Destination { host, absolute, port } = rules.to_resolve(to, endpoint.resolver());
        let target = Target::plain(host, port, policy.transports.clone(), Security::None);
        let target = Target { absolute, ..target };
        let mut preconnection = endpoint.preconnection(target).policy(policy);
        let filtered = Arc::<AtomicBool>::default();
        match rules.of_destination(to) {
            RuleVerdict::Denied(why) => return Err(why),
            RuleVerdict::Allowed => {}
            RuleVerdict::ByAddress => {
                let filtered = Arc::clone(&filtered);
                preconnection = preconnection.allowing(move |ip| {
                    let is_allowed = rules.of_address(ip, port).is_ok();
                    filtered.fetch_or(!is_allowed, Relaxed);
                    is_allowed
                });
            }
        }
        Ok(Self { preconnection, filtered })
    }

    /// Returns whether the rules excluded an address.
    pub fn is_filtered(&self) -> bool {
        self.filtered.load(Relaxed)
    }
}
