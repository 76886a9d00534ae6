//! Several paths whose packets go directly over IP.

use std::time::Duration;

use eyas_netem::link::LinkConfig;
use eyas_sctp::config::AssociationConfig;

use crate::network::{B, ms};
use crate::saturated::{Tally, Traffic};

pub(crate) use crate::saturated::{User, World};

/// Bytes of a message: they fill a packet of 1,500 bytes.
const MESSAGE: usize = 1452;

/// A path of so many Mbit/s and so many milliseconds one way, with the framing of PPP.
pub(crate) fn link(rate: u64, delay: u64) -> LinkConfig {
    LinkConfig { framing: 7, ..LinkConfig::new(rate * 1_000_000, ms(delay)) }
}

impl World {
    /// Connects over the first path, knowing of all.
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

    /// Forgets what arrived so far.
    pub(crate) fn start_measuring(&mut self) {
        self.hosts[B].tallies.fill(Tally::default());
    }

    /// Bits of user data a second in millions, since [`Self::start_measuring`], so long ago.
    pub(crate) fn throughput(&self, time: Duration) -> f64 {
        let messages: u64 = self.hosts[B].tallies.iter().map(|tally| tally.messages).sum();
        messages as f64 * MESSAGE as f64 * 8.0 / time.as_secs_f64() / 1e6
    }
}
