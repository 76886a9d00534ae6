//! What can be asked of an association: `SCTP_STATUS` and `SCTP_GET_PEER_ADDR_INFO` of
//! RFC 6458 §8.2.

use alloc::vec::Vec;
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::identifier::PathId;
use crate::path::PathState;

/// Where an association stands (RFC 9260 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AssociationState {
    /// The INIT was sent.
    CookieWait,
    /// The peer answered, and this side waits for [`crate::endpoint::Endpoint::proceed`]; the peer
    /// holds nothing.
    Held,
    /// The COOKIE ECHO was sent.
    CookieEchoed,
    /// Up.
    Established,
    /// Ours is the wish to end; data is still on its way.
    ShutdownPending,
    /// The SHUTDOWN was sent.
    ShutdownSent,
    /// The peer wants to end; our data is still on its way.
    ShutdownReceived,
    /// The SHUTDOWN ACK was sent.
    ShutdownAckSent,
    /// Ended; kept until what came in has been received.
    Closed,
}

impl AssociationState {
    /// What JSON calls it: the states of RFC 9260 §4, of which [`Self::Held`] is none of its own.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CookieWait | Self::Held => "cookie-wait",
            Self::CookieEchoed => "cookie-echoed",
            Self::Established => "established",
            Self::ShutdownPending => "shutdown-pending",
            Self::ShutdownSent => "shutdown-sent",
            Self::ShutdownReceived => "shutdown-received",
            Self::ShutdownAckSent => "shutdown-ack-sent",
            Self::Closed => "closed",
        }
    }
}

/// An association at one moment (`SCTP_STATUS`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Where it stands.
    pub state: AssociationState,
    /// Our SCTP port.
    pub local_port: u16,
    /// The peer's SCTP port.
    pub remote_port: u16,
    /// Streams that this side may send on (`sstat_outstrms`).
    pub outbound_streams: u16,
    /// Streams that the peer may send on (`sstat_instrms`).
    pub inbound_streams: u16,
    /// The peer's window, in bytes of user data (`sstat_rwnd`).
    pub peer_window: u32,
    /// Our window, in bytes of user data.
    pub window: u32,
    /// Bytes of user data handed in and not yet acknowledged.
    pub queued: usize,
    /// What the peer agreed to.
    pub agreed: Agreed,
    /// The path that new data takes (`sstat_primary`).
    pub primary: PathId,
    /// All paths, in the order of their numbers.
    pub paths: Vec<PathStatus>,
}

impl Status {
    /// An association of which only its state and one path are known so far: for who asks somebody
    /// else's SCTP, as that of a kernel.
    #[must_use]
    pub fn new(state: AssociationState, path: PathStatus) -> Self {
        Self {
            state,
            local_port: 0,
            remote_port: 0,
            outbound_streams: 0,
            inbound_streams: 0,
            peer_window: 0,
            window: 0,
            queued: 0,
            agreed: Agreed::default(),
            primary: path.id,
            paths: alloc::vec![path],
        }
    }
}

/// What both sides can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreed {
    /// I-DATA and I-FORWARD-TSN (RFC 8260).
    pub interleaving: bool,
    /// FORWARD-TSN (RFC 3758).
    pub partial_reliability: bool,
    /// RE-CONFIG (RFC 6525).
    pub reconfiguration: bool,
    /// ASCONF (RFC 5061).
    pub dynamic_addresses: bool,
    /// AUTH (RFC 4895).
    pub authentication: bool,
    /// NR-SACK (draft-tuexen-tsvwg-sctp-multipath §3).
    pub nr_sack: bool,
    /// ECN (RFC 9260 appendix A).
    pub ecn: bool,
    /// The peer takes packets without a checksum (RFC 9653).
    pub zero_checksum: bool,
}

/// A path at one moment (`SCTP_GET_PEER_ADDR_INFO`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathStatus {
    /// Which one.
    pub id: PathId,
    /// The peer's address; the port is that of the UDP encapsulation, 0 without.
    pub remote: SocketAddr,
    /// Our address, if it is not left to the routing.
    pub local: Option<IpAddr>,
    /// Whether it is verified and works (`spinfo_state`).
    pub state: PathState,
    /// Congestion window, in bytes of user data (`spinfo_cwnd`).
    pub congestion_window: usize,
    /// Bytes of user data under way.
    pub outstanding: usize,
    /// Smoothed round-trip time, once measured (`spinfo_srtt`).
    pub smoothed_rtt: Option<Duration>,
    /// The least round-trip time, without queues as far as it was ever seen without.
    pub least_rtt: Option<Duration>,
    /// By how much later than on the quickest path what is sent arrives, queues left out.
    pub forward_lag: Option<Duration>,
    /// How fast it delivered at best of late, in bytes of user data a second.
    pub delivery_rate: Option<u64>,
    /// Bytes of user data that were acknowledged, each once.
    pub delivered: u64,
    /// Bytes of user data that were taken for lost, whether they were sent again here or elsewhere.
    pub lost: u64,
    /// Retransmission timeout (`spinfo_rto`).
    pub rto: Duration,
    /// Bytes of the largest SCTP packet that goes on it (`spinfo_mtu`).
    pub mtu: usize,
}

impl PathStatus {
    /// A path of which nothing was measured so far.
    #[must_use]
    pub fn new(id: PathId, remote: SocketAddr, state: PathState) -> Self {
        Self {
            id,
            remote,
            local: None,
            state,
            congestion_window: 0,
            outstanding: 0,
            smoothed_rtt: None,
            rto: Duration::ZERO,
            mtu: 0,
            delivery_rate: None,
            delivered: 0,
            lost: 0,
            least_rtt: None,
            forward_lag: None,
        }
    }
}
