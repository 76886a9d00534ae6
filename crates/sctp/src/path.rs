//! One path of an association: one transport address of the peer (RFC 9260 §1.3), and everything
//! known about it.
//!
//! | module | purpose | source |
//! | --- | --- | --- |
//! | `rto` | the retransmission timeout | RFC 9260 §6.3.1 |
//! | `allowance` | what may be sent now: window, Max.Burst, pacing | RFC 9260 §6.1 |
//! | `flight_cap` | the cap on data in flight | |
//! | `flight` | data in flight, and the effects of acknowledgements and losses | RFC 9260 §7.2 |
//! | `return_wait` | how long acknowledgements wait behind data of the peer | |
//! | `doubt` | whether the minimum round-trip time is still valid | draft-ietf-ccwg-bbr §5.3.4 |
//! | `estimates` | minimum round-trip time, delivery rate | draft-ietf-ccwg-bbr §4.1 |
//! | `one_way` | differences between the forward delays of paths | |
//! | `state` | reachability: error counts | RFC 9260 §8.2, RFC 7829 |
//! | `heartbeat` | idle and failed paths, verification of addresses | RFC 9260 §8.3, §5.4 |
//! | `failed` | more probes of failed paths than errors are counted for | |
//! | `verification` | how often addresses listed by the peer are probed | RFC 9260 §5.4 |
//! | `mtu` | packet sizes | RFC 8899 |
//! | `ecn` | congestion marks | RFC 9260 appendix A |
//! | `source` | the address to send from | RFC 9260 §6.4 |
//! | `nonces` | unpredictable numbers | |
//! | `peer` | the peer as its paths show it | RFC 9260 §5.4, §8.4 |
//! | `paths` | all paths of an association, the primary one, path selection | RFC 9260 §6.4 |

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
mod ecn;
mod estimates;
mod failed;
mod flight;
mod flight_cap;
mod heartbeat;
mod mtu;
mod nonces;
mod one_way;
mod paths;
mod peer;
mod return_wait;
mod rto;
mod source;
mod state;
mod verification;

use allowance::PathPacer;
pub use allowance::SendAllowance;
use doubt::DoubtTimer;
use ecn::PathEcn;
use estimates::PathEstimates;
use failed::AdditionalHeartbeats;
pub use flight::PathProgress;
use flight_cap::RatePlateau;
use heartbeat::HeartbeatTimer;
pub use heartbeat::{HEARTBEAT_CHUNK, HeartbeatToSend};
pub use mtu::MtuState;
use mtu::PathMtu;
pub use paths::AssociationPaths;
pub(crate) use paths::MAX_PATHS;
use return_wait::ReturnWait;
pub use rto::RetransmissionTimeout;
pub use state::PathState;

/// Bytes of a UDP header, for paths with encapsulation (RFC 6951).
const UDP_HEADER: usize = 8;

/// A path.
#[derive(Debug)]
pub struct Path {
    /// The identifier.
    pub id: PathId,
    /// The peer's address. The port is that of the UDP encapsulation, 0 without.
    pub remote: SocketAddr,
    /// The local address to send from; if `None`, it is left to the routing table.
    pub local: Option<IpAddr>,
    /// The retransmission timeout.
    pub rto: RetransmissionTimeout,
    /// When T3-rtx expires, if it is running (RFC 9260 §6.3.2). Maintained by the sender.
    pub t3: Option<Duration>,
    /// The congestion control.
    pub congestion: Box<dyn CongestionControl>,
    state: PathState,
    errors: u32,
    mtu: PathMtu,
    /// Bytes that the layers below add to each packet.
    overhead: usize,
    heartbeats: HeartbeatTimer,
    /// Only set while the path has failed.
    additional: Option<Box<AdditionalHeartbeats>>,
    ecn: PathEcn,
    /// Whether `local` was learnt from routing, and is not the user's choice.
    is_local_learnt: bool,
    outstanding: usize,
    rates: DeliveryRateEstimator,
    estimates: PathEstimates,
    pacer: PathPacer,
    cap: Option<FlightCap>,
    plateau: RatePlateau,
    doubt: DoubtTimer,
    /// Only set once the peer has sent data, too, and only with a cap.
    return_wait: Option<Box<ReturnWait>>,
    /// Whether buffers are short, so that the cap has no slack.
    cap_without_slack: bool,
    /// Packets that may be sent regardless of the window.
    granted: u8,
    /// Whether the window was full at some time since the last SACK.
    window_was_full: bool,
    /// Whether data has been acknowledged since the last [`Path::on_sack`].
    acknowledged: bool,
    last_sent: Option<Duration>,
    /// Whether retransmissions are pending on the path.
    retransmits: bool,
    /// Whether T3 expired and nothing has been acknowledged since: then one packet is sent at a
    /// time.
    probing: bool,
    /// When the window was last reduced because nothing was sent, in nanoseconds.
    decayed: u64,
}

impl Path {
    /// Creates a path to `remote` without measurements.
    #[must_use]
    pub fn new(
        id: PathId,
        remote: SocketAddr,
        local: Option<IpAddr>,
        config: &AssociationConfig,
    ) -> Self {
        let mtu = PathMtu::new(
            config.mtu,
            config.largest_mtu,
            remote.is_ipv4(),
            config.path_mtu_discovery,
        );
        let limit = config.multipath.as_ref().map_or_else(BurstLimit::default, |cmt| cmt.burst);
        // An address has to be verified before it can be used.
        let mut heartbeats = HeartbeatTimer::default();
        heartbeats.send_soon();
        Self {
            id,
            remote,
            local,
            rto: RetransmissionTimeout::new(config),
            t3: None,
            congestion: config.congestion_control.factory().build(config, mtu.current()),
            state: PathState::Unconfirmed,
            errors: 0,
            heartbeats,
            additional: None,
            ecn: PathEcn::default(),
            is_local_learnt: false,
            outstanding: 0,
            rates: DeliveryRateEstimator::default(),
            estimates: PathEstimates::default(),
            pacer: PathPacer::new(config.max_burst, limit, mtu.current()),
            cap: config.multipath.as_ref().and_then(|cmt| cmt.flight_cap),
            plateau: RatePlateau::default(),
            doubt: DoubtTimer::default(),
            return_wait: None,
            cap_without_slack: false,
            mtu,
            overhead: overhead(remote, config),
            granted: 0,
            window_was_full: false,
            acknowledged: false,
            last_sent: None,
            retransmits: false,
            probing: false,
            decayed: 0,
        }
    }

    /// Returns the maximum size of an SCTP packet in bytes, including the common header: the MTU
    /// minus the lower headers. A multiple of 4.
    #[must_use]
    pub fn mtu(&self) -> usize {
        (self.mtu.current() - self.overhead()) & !3
    }

    /// Returns the state of path MTU discovery.
    #[cfg(any(test, feature = "internals"))]
    #[must_use]
    pub fn mtu_state(&self) -> MtuState {
        self.mtu.state()
    }

    /// Returns the size in bytes of the IP header, of the UDP encapsulation if used, and of a layer
    /// between these and SCTP.
    #[must_use]
    pub fn overhead(&self) -> usize {
        self.overhead
    }

    /// Returns whether packets are encapsulated in UDP (RFC 6951).
    #[must_use]
    pub fn is_encapsulated(&self) -> bool {
        self.remote.port() != 0
    }

    /// Returns when the last packet with user data was sent.
    #[must_use]
    pub fn last_sent(&self) -> Option<Duration> {
        self.last_sent
    }
}

/// Returns the bytes of all headers below SCTP on the way to `remote`. A NAT may change its port,
/// but not whether there is one.
fn overhead(remote: SocketAddr, config: &AssociationConfig) -> usize {
    let ip = if remote.is_ipv4() { 20 } else { 40 };
    let udp = if remote.port() == 0 { 0 } else { UDP_HEADER };
    ip + udp + usize::from(config.packet_overhead)
}

#[cfg(test)]
mod tests;
