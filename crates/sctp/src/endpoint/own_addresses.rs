//! Addresses of ours that a peer is told of while an association runs (RFC 5061).

use core::net::IpAddr;
use core::time::Duration;

use super::Endpoint;
use crate::association::dynamic_address::AsconfRequest;
use crate::error::Error;
use crate::identifier::AssociationId;

impl Endpoint {
    /// Tells the peer of another address of this host (RFC 5061 §4.2.1). The event
    /// [`crate::event::Event::OwnAddress`] tells how that went.
    ///
    /// # Errors
    /// If the peer cannot do it, the address is not unicast, or too many requests wait.
    pub fn add_address(
        &mut self,
        now: Duration,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), Error> {
        self.request(now, id, AsconfRequest::Add(address))
    }

    /// Takes back an address of this host (RFC 5061 §4.2.2). The event
    /// [`crate::event::Event::OwnAddress`] tells how that went.
    ///
    /// # Errors
    /// If the peer cannot do it, the address is not unicast, or too many requests wait.
    pub fn remove_address(
        &mut self,
        now: Duration,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), Error> {
        self.request(now, id, AsconfRequest::Delete(address))
    }

    /// Asks the peer to send to this address of ours first (`SCTP_SET_PEER_PRIMARY_ADDR`,
    /// RFC 5061 §4.2.4). The event [`crate::event::Event::OwnAddress`] tells how that went.
    ///
    /// # Errors
    /// If the peer cannot do it, the address is not unicast, or too many requests wait.
    pub fn set_peer_primary(
        &mut self,
        now: Duration,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), Error> {
        self.request(now, id, AsconfRequest::SetPrimary(address))
    }

    fn request(
        &mut self,
        now: Duration,
        id: AssociationId,
        request: AsconfRequest,
    ) -> Result<(), Error> {
        self.with(now, id, |association, now, counters| {
            association.change_own_address(now, request, counters)
        })
    }
}
