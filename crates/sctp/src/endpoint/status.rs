//! Status queries: `SCTP_STATUS` and `SCTP_GET_PEER_ADDR_INFO` of RFC 6458 §8.2.

use alloc::vec::Vec;
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::identifier::PathId;
use crate::io::PeerIdentity;
use crate::path::PathState;

/// The state of an association (RFC 9260 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AssociationState {
    /// The INIT was sent.
    CookieWait,
    /// The peer has answered, and this side waits for [`crate::endpoint::Endpoint::proceed`]; the
    /// peer keeps no state.
    Held,
    /// The COOKIE ECHO was sent.
    CookieEchoed,
    /// Established.
    Established,
    /// This side is shutting down; data is still being delivered.
    ShutdownPending,
    /// The SHUTDOWN was sent.
    ShutdownSent,
    /// The peer is shutting down; our data is still being delivered.
    ShutdownReceived,
    /// The SHUTDOWN ACK was sent.
    ShutdownAckSent,
    /// Ended; kept until the data that has arrived is received.
    Closed,
}

impl AssociationState {
    /// Returns the name used in JSON: the states of RFC 9260 §4, which do not include
    /// [`Self::Held`].
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

/// A snapshot of an association (`SCTP_STATUS`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// The state.
    pub state: AssociationState,
    /// The local SCTP port.
    pub local_port: u16,
    /// The peer's SCTP port.
    pub remote_port: u16,
    /// The number of outbound streams (`sstat_outstrms`).
    pub outbound_streams: u16,
    /// The number of inbound streams (`sstat_instrms`).
    pub inbound_streams: u16,
    /// The peer's receiver window, in bytes of user data (`sstat_rwnd`).
    pub peer_window: u32,
    /// Our receiver window, in bytes of user data.
    pub window: u32,
    /// The number of bytes of user data that are not acknowledged yet.
    pub queued: usize,
    /// The negotiated extensions.
    pub agreed: AgreedExtensions,
    /// The primary path, which new data is sent on (`sstat_primary`).
    pub primary: PathId,
    /// All paths, ordered by number.
    pub paths: Vec<PathStatus>,
    /// Who the peer is according to the layer below ([`crate::io::Received::peer`]).
    pub peer: Option<PeerIdentity>,
}

impl Status {
    /// Returns the size of the largest message that one packet carries whole on every active path, or
    /// on every path if none is active, in bytes of user data (`sstat_fragmentation_point`).
    #[must_use]
    pub fn largest_message(&self) -> usize {
        let least = |paths: &mut dyn Iterator<Item = &PathStatus>| {
            paths.map(|path| path.largest_message).min()
        };
        let mut active = self.paths.iter().filter(|path| path.state == PathState::Active);
        least(&mut active).or_else(|| least(&mut self.paths.iter())).unwrap_or(0)
    }

    /// Creates a status of which only the state and one path are known, for SCTP implementations
    /// other than this one, such as a kernel's.
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
            agreed: AgreedExtensions::default(),
            primary: path.id,
            paths: alloc::vec![path],
            peer: None,
        }
    }
}

/// The extensions supported by both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgreedExtensions {
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
    /// The peer accepts packets without a checksum (RFC 9653).
    pub zero_checksum: bool,
}

/// A snapshot of a path (`SCTP_GET_PEER_ADDR_INFO`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathStatus {
    /// The identifier of the path.
    pub id: PathId,
    /// The peer's address; the port is that of the UDP encapsulation, 0 without.
    pub remote: SocketAddr,
    /// The local address, unless it is left to the routing table.
    pub local: Option<IpAddr>,
    /// Whether it is verified and working (`spinfo_state`).
    pub state: PathState,
    /// The congestion window, in bytes of user data (`spinfo_cwnd`).
    pub congestion_window: usize,
    /// The number of bytes of user data in flight.
    pub outstanding: usize,
    /// The smoothed round-trip time, once measured (`spinfo_srtt`).
    pub smoothed_rtt: Option<Duration>,
    /// The minimum round-trip time, an estimate of the path's delay without queues.
    pub min_rtt: Option<Duration>,
    /// How much later than on the quickest path data arrives, without queueing delays.
    pub forward_lag: Option<Duration>,
    /// The recent maximum of the delivery rate, in bytes of user data per second.
    pub delivery_rate: Option<u64>,
    /// The number of bytes of user data acknowledged, each counted once.
    pub delivered: u64,
    /// The number of bytes of user data considered lost, retransmitted on this path or on another.
    pub lost: u64,
    /// The retransmission timeout (`spinfo_rto`).
    pub rto: Duration,
    /// The size of the largest SCTP packet on this path, in bytes (`spinfo_mtu`).
    pub mtu: usize,
    /// The size of the largest message that one packet on this path carries whole, in bytes of user
    /// data. It grows with the MTU, and depends on what was negotiated and on
    /// [`crate::config::AssociationConfig::max_segment`].
    pub largest_message: usize,
}

impl PathStatus {
    /// Creates the status of a path without measurements.
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
            largest_message: 0,
            delivery_rate: None,
            delivered: 0,
            lost: 0,
            min_rtt: None,
            forward_lag: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_path_in_use_decides_which_messages_fit_one_packet() {
        use PathState::{Active, Inactive, Unconfirmed};
        for (paths, largest) in [
            (&[(Active, 1440), (Active, 1252)][..], 1252),
            (&[(Active, 1440), (Inactive, 1252)], 1440),
            (&[(Inactive, 1440), (Unconfirmed, 1252)], 1252),
        ] {
            let path = |&(state, largest_message): &(PathState, usize)| {
                let remote = SocketAddr::from(([192, 0, 2, 1], 0));
                PathStatus { largest_message, ..PathStatus::new(PathId(0), remote, state) }
            };
            let mut status = Status::new(AssociationState::Established, path(&paths[0]));
            status.paths.extend(paths[1..].iter().map(path));
            assert_eq!(status.largest_message(), largest, "{paths:?}");
        }
    }
}
