//! Several associations at once, whose networks may share bottlenecks.

use std::time::Duration;

use eyas_netem::link::LinkConfig;
use eyas_sctp::config::AssociationConfig;

use crate::network::{B, Network};
use crate::saturated::{Arrivals, Traffic, World};

/// The bytes of a message: they fill a packet.
const MESSAGE: usize = 1400;

impl World {
    /// Each association has its configuration and the bottlenecks of its networks. The reverse
    /// direction has no queueing delay.
    pub(crate) fn shared(
        bottlenecks: &[LinkConfig],
        flows: &[(AssociationConfig, Vec<usize>)],
    ) -> Self {
        let (mut wires, mut routes, mut hosts) = (bottlenecks.to_vec(), Vec::new(), Vec::new());
        for (seed, (config, networks)) in (0..).step_by(2).zip(flows) {
            routes.push(networks.clone());
            routes.push((0..networks.len()).map(|back| wires.len() + back).collect());
            wires.extend(networks.iter().map(|at| {
                let LinkConfig { delay, jitter, .. } = bottlenecks[*at];
                LinkConfig { delay, jitter, ..LinkConfig::default() }
            }));
            let traffic = Traffic { message: MESSAGE, ..Traffic::new(config, networks.len()) };
            hosts.extend(traffic.hosts(seed));
        }
        let networks = flows.iter().map(|flow| flow.1.len()).max().unwrap_or_default();
        Self::between(hosts, Network::new(wires, routes, 1), Arrivals::on(networks))
    }

    /// The rate of user data of each association during the next `seconds`, in bit/s.
    pub(crate) fn rates(&mut self, seconds: u64) -> Vec<u64> {
        let start = self.now;
        self.run_for(Duration::from_secs(seconds));
        let receivers = self.hosts.iter().skip(B).step_by(2);
        let delivered = receivers.map(|host| host.delivered(start, self.now) as u64);
        delivered.map(|bytes| bytes * 8 / seconds).collect()
    }
}
