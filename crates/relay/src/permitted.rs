//! A race that goes only where the rules let its client go.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use eyas::race::candidate::Security;
use eyas::race::policy::Policy;
use eyas::race::target::Target;
use eyas::{Endpoint, Preconnection};

use crate::handshake::Destination;
use crate::rules::{Rules, Verdict, Why};

/// A race to a destination, in the clear as far as it is ours.
pub(crate) struct PermittedRace {
    pub(crate) preconnection: Preconnection,
    sifted: Arc<AtomicBool>,
}

impl PermittedRace {
    /// A race by this policy, if this client may go there; only to the addresses that it may go to.
    pub(crate) fn new(
        endpoint: &Endpoint,
        policy: Policy,
        rules: &Arc<Rules>,
        to: &Destination,
        client: IpAddr,
    ) -> Result<Self, Why> {
        let Destination { host, port } = to.clone();
        let target = Target::plain(host, port, policy.transports.clone(), Security::None);
        let mut preconnection = endpoint.preconnection(target).policy(policy);
        let sifted = Arc::<AtomicBool>::default();
        match rules.of_destination(to, client) {
            Verdict::Denied(why) => return Err(why),
            Verdict::Allowed => {}
            Verdict::ByAddress => {
                let (rules, sifted) = (Arc::clone(rules), Arc::clone(&sifted));
                preconnection = preconnection.allowing(move |ip| {
                    let may = rules.of_address(ip, port, client).is_ok();
                    sifted.fetch_or(!may, Relaxed);
                    may
                });
            }
        }
        Ok(Self { preconnection, sifted })
    }

    /// Whether the rules took an address away.
    pub(crate) fn is_sifted(&self) -> bool {
        self.sifted.load(Relaxed)
    }
}
