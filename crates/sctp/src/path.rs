//! One path of an association: one transport address of the peer (RFC 9260 §1.3), with all that is
//! known of the way to it.
//!
//! | module | what | source |
//! | --- | --- | --- |
//! | `rto` | the retransmission timeout | RFC 9260 §6.3.1 |
//! | `allowance` | what may be sent now: window, Max.Burst, pacing | RFC 9260 §6.1 |
//! | `flight_cap` | the cap on what is under way | |
//! | `flight` | data under way, and what acknowledgements and losses of it mean | RFC 9260 §7.2 |
//! | `doubt` | whether the least round trip still holds | draft-ietf-ccwg-bbr §5.3.4 |
//! | `estimates` | least round trip, delivery rate | draft-ietf-ccwg-bbr §4.1 |
//! | `one_way` | by how much later what is sent arrives than on another path | |
//! | `state` | reachable or not: error counts | RFC 9260 §8.2, RFC 7829 |
//! | `heartbeat` | idle and failed paths, verification of addresses | RFC 9260 §8.3, §5.4 |
//! | `verification` | how often addresses that the peer listed are asked | RFC 9260 §5.4 |
//! | `mtu` | how large packets may be | RFC 8899 |
//! | `ecn` | congestion marks | RFC 9260 appendix A |
//! | `source` | the address to send from | RFC 9260 §6.4 |
//! | `draw` | numbers that nobody can guess | |
//! | `paths` | all paths of an association, the primary one, the choice of one | RFC 9260 §6.4 |

use alloc::boxed::Box;
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::config::{AssociationConfig, BurstLimit, FlightCap};
use crate::congestion::{CongestionControl, DeliveryRateEstimator};
use crate::identifier::PathId;

mod allowance;
mod doubt;
mod draw;
mod ecn;
mod estimates;
mod flight;
mod flight_cap;
mod heartbeat;
mod mtu;
mod one_way;
mod paths;
mod rto;
mod source;
mod state;
mod verification;

pub use allowance::Allowance;
use allowance::Pacer;
use doubt::Doubt;
use ecn::PathEcn;
use estimates::Estimates;
pub use flight::Progress;
use flight_cap::Plateau;
use heartbeat::Beat;
pub use heartbeat::{HEARTBEAT_CHUNK, Heartbeat};
use mtu::Mtu;
pub use mtu::MtuState;
pub(crate) use paths::MAX_PATHS;
pub use paths::Paths;
pub use rto::Rto;
pub use state::PathState;

/// Bytes of a UDP header, for paths with encapsulation (RFC 6951).
const UDP_HEADER: usize = 8;

/// One path.
#[derive(Debug)]
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
    pub congestion: Box<dyn CongestionControl>,
    state: PathState,
    errors: u32,
    mtu: Mtu,
    /// Bytes that a layer below adds to each packet.
    packet_overhead: u8,
    beat: Beat,
    ecn: PathEcn,
    /// Whether `local` is what the routing was seen to choose, and not the user's choice.
    local_is_learnt: bool,
    outstanding: usize,
    rates: DeliveryRateEstimator,
    estimates: Estimates,
    pacer: Pacer,
    cap: Option<FlightCap>,
    plateau: Plateau,
    doubt: Doubt,
    /// Whether buffers are short, so that the cap has no slack.
    is_lean: bool,
    /// Packets that may leave whatever the window says.
    granted: u8,
    /// Whether the window was in full use at some time since the last SACK.
    window_was_full: bool,
    /// Whether an acknowledgement came since the last [`Path::on_sack`].
    acknowledged: bool,
    last_sent: Option<Duration>,
    /// Whether data waits to be sent again here at once.
    resends: bool,
    /// Whether T3 ran out and nothing was acknowledged since: one packet at a time, then.
    probing: bool,
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
        let mtu =
            Mtu::new(config.mtu, config.largest_mtu, remote.is_ipv4(), config.path_mtu_discovery);
        let limit = config.multipath.as_ref().map_or_else(BurstLimit::default, |cmt| cmt.burst);
        // An address has to be verified before it is of use.
        let mut beat = Beat::default();
        beat.hasten();
        Self {
            id,
            remote,
            local,
            rto: Rto::new(config),
            t3: None,
            congestion: config.congestion_control.factory().build(config, mtu.current()),
            state: PathState::Unconfirmed,
            errors: 0,
            beat,
            ecn: PathEcn::default(),
            local_is_learnt: false,
            outstanding: 0,
            rates: DeliveryRateEstimator::default(),
            estimates: Estimates::default(),
            pacer: Pacer::new(config.max_burst, limit, mtu.current()),
            cap: config.multipath.as_ref().and_then(|cmt| cmt.flight_cap),
            plateau: Plateau::default(),
            doubt: Doubt::default(),
            is_lean: false,
            mtu,
            packet_overhead: config.packet_overhead,
            granted: 0,
            window_was_full: false,
            acknowledged: false,
            last_sent: None,
            resends: false,
            probing: false,
            decayed: Duration::ZERO,
        }
    }

    /// Bytes of SCTP packet that fit, common header included: the MTU without what is below. A multiple
    /// of 4.
    #[must_use]
    pub fn mtu(&self) -> usize {
        (self.mtu.current() - self.overhead()) & !3
    }

    /// Where the search for the path's MTU stands.
    #[must_use]
    pub fn mtu_state(&self) -> MtuState {
        self.mtu.state()
    }

    /// Bytes of the headers of IP and, if the path has it, of UDP encapsulation, and of a layer between
    /// these and SCTP.
    #[must_use]
    pub fn overhead(&self) -> usize {
        let ip = if self.remote.is_ipv4() { 20 } else { 40 };
        let udp = if self.is_encapsulated() { UDP_HEADER } else { 0 };
        ip + udp + usize::from(self.packet_overhead)
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
