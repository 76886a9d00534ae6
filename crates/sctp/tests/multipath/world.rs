//! Several paths whose packets go directly over IP.

use std::time::Duration;

use eyas_netem::link::LinkConfig;
use eyas_sctp::config::AssociationConfig;

use crate::network::{B, ms};
use crate::saturated::{Tally, Traffic};

pub(crate) use crate::saturated::{User, World};

/// The bytes of a message: they fill a packet of 1,500 bytes.
const MESSAGE: usize = 1452;

/// A path with this rate in Mbit/s and this one-way delay in milliseconds, with PPP framing.
pub(crate) fn link(rate: u64, delay: u64) -> LinkConfig {
    LinkConfig { framing: 7, ..LinkConfig::new(rate * 1_000_000, ms(delay)) }
}

impl World {
    /// Connects over the first path, with all paths configured.
    pub(crate) fn multipath(
        config: &AssociationConfig,
        links: &[LinkConfig],
        streams: usize,
        seed: u8,
        user: User,
    ) -> Self {
        let traffic = Traffic::new(config, links.len());
        let traffic = Traffic { user, streams, message: MESSAGE, udp: 0, ..traffic };
        Self::with(traffic, links, seed)
    }

    /// Clears the data that has arrived so far.
    pub(crate) fn start_measuring(&mut self) {
        self.hosts[B].tallies.fill(Tally::default());
    }

    /// The rate of user data in Mbit/s since [`Self::start_measuring`], `time` ago.
    pub(crate) fn throughput(&self, time: Duration) -> f64 {
        let messages: u64 = self.hosts[B].tallies.iter().map(|tally| tally.messages).sum();
        messages as f64 * MESSAGE as f64 * 8.0 / time.as_secs_f64() / 1e6
    }
}
