//! One path of an association: one transport address of the peer (RFC 9260 §1.3), with all that is
//! known of the way to it.
//!
//! | module | what | source |
//! | --- | --- | --- |
//! | `rto` | the retransmission timeout | RFC 9260 §6.3.1 |
//! | `allowance` | what may be sent now: window, Max.Burst, pacing | RFC 9260 §6.1 |
//! | `flight` | data under way, and what acknowledgements and losses of it mean | RFC 9260 §7.2 |
//! | `state` | reachable or not: error counts | RFC 9260 §8.2, RFC 7829 |
//! | `paths` | all paths of an association, the primary one, the choice of one | RFC 9260 §6.4 |

use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::config::AssociationConfig;
use crate::congestion::{Congestion, DeliveryRateEstimator};
use crate::identifier::PathId;

mod allowance;
mod draw;
mod flight;
mod paths;
mod rto;
mod state;

pub use allowance::Allowance;
use allowance::Pacer;
pub use flight::Progress;
pub use paths::Paths;
pub use rto::Rto;
pub use state::PathState;

/// Bytes of a UDP header, for paths with encapsulation (RFC 6951).
const UDP_HEADER: usize = 8;

/// The least MTU that is worked with, in bytes of IP packet: what every IPv4 link of use carries
/// (RFC 8899 §5.1.2, `MIN_PLPMTU`).
pub(crate) const MIN_MTU: usize = 576;

/// One path.
#[derive(Clone, Debug)]
pub struct Path {
    /// Which one.
    pub id: PathId,
    /// The address of the peer at its end. The port is that of the UDP encapsulation, 0 without.
    pub remote: SocketAddr,
    /// The address to send from; the routing's choice if none is given.
    pub local: Option<IpAddr>,
    /// How long to wait for answers.
    pub rto: Rto,
    /// When T3-rtx runs out, if it runs (RFC 9260 §6.3.2). Kept by the sender.
    pub t3: Option<Duration>,
    /// How much may be under way.
    pub congestion: Congestion,
    state: PathState,
    errors: u32,
    mtu: usize,
    outstanding: usize,
    rates: DeliveryRateEstimator,
    pacer: Pacer,
    /// Packets that may leave whatever the window says.
    granted: u8,
    /// Whether the window was in full use at some time since the last SACK.
    window_was_full: bool,
    /// Whether an acknowledgement came since the last [`Path::on_sack`].
    acknowledged: bool,
    last_sent: Option<Duration>,
    /// When the window was last cut because nothing was sent.
    decayed: Duration,
}

impl Path {
    /// A path to `remote` of which nothing is known.
    #[must_use]
    pub fn new(
        id: PathId,
        remote: SocketAddr,
        local: Option<IpAddr>,
        config: &AssociationConfig,
    ) -> Self {
        let mtu = usize::from(config.mtu).max(MIN_MTU);
        Self {
            id,
            remote,
            local,
            rto: Rto::new(config),
            t3: None,
            congestion: Congestion::new(config.congestion_control, mtu),
            state: PathState::Unconfirmed,
            errors: 0,
            mtu,
            outstanding: 0,
            rates: DeliveryRateEstimator::default(),
            pacer: Pacer::new(config.max_burst, mtu),
            granted: 0,
            window_was_full: false,
            acknowledged: false,
            last_sent: None,
            decayed: Duration::ZERO,
        }
    }

    /// Bytes of SCTP packet that fit, common header included: the MTU without the headers of IP
    /// and, if the path has it, of UDP encapsulation. A multiple of 4.
    #[must_use]
    pub fn mtu(&self) -> usize {
        (self.mtu - self.overhead()) & !3
    }

    /// Bytes of the headers of IP and of UDP encapsulation.
    #[must_use]
    pub fn overhead(&self) -> usize {
        let ip = if self.remote.is_ipv4() { 20 } else { 40 };
        if self.is_encapsulated() { ip + UDP_HEADER } else { ip }
    }

    /// Whether packets go inside UDP (RFC 6951).
    #[must_use]
    pub fn is_encapsulated(&self) -> bool {
        self.remote.port() != 0
    }

    /// When the last packet with user data was sent.
    #[must_use]
    pub fn last_sent(&self) -> Option<Duration> {
        self.last_sent
    }
}

#[cfg(test)]
mod tests;
