//! Addresses that come and go while the association runs (RFC 5061), as a state of its own: what
//! this side asks of the peer, and what the peer asks.
//!
//! | file | procedure | source |
//! | --- | --- | --- |
//! | `asking` | ASCONF sent, T4, ASCONF-ACK taken in | RFC 5061 §5.1 |
//! | `answering` | ASCONF taken in, ASCONF-ACK sent | RFC 5061 §5.2, §5.3 |
//!
//! Each side numbers its requests from its initial TSN on and has one request under way at most.

mod answering;
mod asking;
#[cfg(test)]
mod tests;

use core::net::IpAddr;

use crate::serial::{AsconfNumber, Tsn};

pub(crate) use answering::{Answer, Answering, PeerAddresses, PeerChange};
pub(crate) use asking::{AsconfRequest, Asking, Settled};

/// The state of both directions.
#[derive(Debug)]
pub(crate) struct DynamicAddress {
    /// What this side asks.
    pub(crate) asking: Asking,
    /// What the peer asks.
    pub(crate) answering: Answering,
    /// The address that the peer wants to be sent to first, once it is verified.
    pub(crate) wanted_primary: Option<IpAddr>,
}

impl DynamicAddress {
    /// `own` are the addresses of ours that the peer knows, as far as this side does.
    pub(crate) fn new(initial_tsn: Tsn, peer_initial_tsn: Tsn, own: &[IpAddr]) -> Self {
        Self {
            asking: Asking::new(AsconfNumber(initial_tsn.0), own),
            answering: Answering::new(AsconfNumber(peer_initial_tsn.0)),
            wanted_primary: None,
        }
    }
}
