//! Addresses that are added and removed while the association exists (RFC 5061): the requests of
//! this side and those of the peer.
//!
//! | file | procedure | source |
//! | --- | --- | --- |
//! | `requests` | ASCONF sent, T4, ASCONF-ACK received | RFC 5061 §5.1 |
//! | `responses` | ASCONF received, ASCONF-ACK sent | RFC 5061 §5.2, §5.3 |
//!
//! Each side numbers its requests from its initial TSN on, with at most one request outstanding.

mod requests;
mod responses;
#[cfg(test)]
mod tests;

use core::net::IpAddr;

use crate::serial::{AsconfNumber, Tsn};

pub(crate) use requests::{AckOutcome, AsconfRequest, OutgoingRequests};
pub(crate) use responses::{AsconfAnswer, IncomingRequests, PeerAddresses, PeerChange};

/// The state of both directions.
#[derive(Debug)]
pub(crate) struct DynamicAddress {
    /// Our requests.
    pub(crate) outgoing: OutgoingRequests,
    /// The peer's requests.
    pub(crate) incoming: IncomingRequests,
    /// The address that the peer wants to be primary, until it is confirmed.
    pub(crate) wanted_primary: Option<IpAddr>,
}

impl DynamicAddress {
    /// `own` are the addresses of ours that the peer is known to have.
    pub(crate) fn new(initial_tsn: Tsn, peer_initial_tsn: Tsn, own: &[IpAddr]) -> Self {
        Self {
            outgoing: OutgoingRequests::new(AsconfNumber(initial_tsn.0), own),
            incoming: IncomingRequests::new(AsconfNumber(peer_initial_tsn.0)),
            wanted_primary: None,
        }
    }
}
