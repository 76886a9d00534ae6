//! Operations on one association besides sending and closing (RFC 9260 §11.1, RFC 6458 §8), through
//! one guard.

use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;

use super::Endpoint;
use crate::association::Association;
use crate::association::authentication::KeyChange;
use crate::association::dynamic_address::AsconfRequest;
use crate::association::reconfiguration::ReconfigurationRequest;
use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::error::Error;
use crate::identifier::{AssociationId, PathId, StreamId};

/// A guard for changing one association of an endpoint: [`Endpoint::association_mut`]. Anything
/// that it has to send becomes available when this is dropped.
#[derive(Debug)]
pub struct AssociationMut<'a> {
    endpoint: &'a mut Endpoint,
    slot: u32,
}

impl Drop for AssociationMut<'_> {
    fn drop(&mut self) {
        self.endpoint.mark_pending(self.slot);
    }
}

impl Endpoint {
    /// Returns a guard for changing an association or sending a request to its peer.
    ///
    /// # Errors
    /// If there is no such association.
    pub fn association_mut(
        &mut self,
        now: Duration,
        id: AssociationId,
    ) -> Result<AssociationMut<'_>, Error> {
        self.advance_time(now);
        let slot = self.registry.slot(id).ok_or(Error::NoAssociation)?;
        Ok(AssociationMut { endpoint: self, slot })
    }
}

impl AssociationMut<'_> {
    pub(super) fn change<T>(
        &mut self,
        act: impl FnOnce(&mut Association, Duration, &mut EndpointCounters) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Endpoint { registry, counters, now, .. } = &mut *self.endpoint;
        let entry = registry.entry_mut(self.slot).ok_or(Error::NoAssociation)?;
        act(&mut entry.association, *now, counters)
    }

    /// Changes the configuration: timeouts, retransmission limits, heartbeats, acknowledgements,
    /// Nagle, the maximum chunk size, the send buffer, the partial delivery point and the stream
    /// scheduler. What was negotiated with the peer does not change, nor do the receive buffer, the
    /// paths with their congestion control, and the keys.
    ///
    /// # Errors
    /// If there is no such association.
    pub fn configure(&mut self, association: &AssociationConfig) -> Result<(), Error> {
        let config = self.endpoint.share(association);
        self.change(|association, _, _| {
            association.configure(config);
            Ok(())
        })
    }

    /// Makes a path the primary one (`SCTP_PRIMARY_ADDR`).
    ///
    /// # Errors
    /// If there is no such path, or it is not yet verified.
    pub fn set_primary(&mut self, path: PathId) -> Result<(), Error> {
        self.change(|association, now, _| association.set_primary(now, path))
    }

    /// Sends a HEARTBEAT on a path as soon as one can go (`SPP_HB_DEMAND`, RFC 6458 §8.1.12).
    ///
    /// # Errors
    /// If there is no such path.
    pub fn request_heartbeat(&mut self, path: PathId) -> Result<(), Error> {
        self.change(|association, _, _| association.request_heartbeat(path))
    }

    /// Requests a stream reset (RFC 6525 §5.1.2), of our outgoing streams or of the peer's; all of
    /// them if `streams` is empty.
    ///
    /// # Errors
    /// If the peer does not support it, or another request is pending.
    pub fn reset_streams(&mut self, outgoing: bool, streams: &[StreamId]) -> Result<(), Error> {
        let streams = streams.to_vec();
        self.reconfigure(match outgoing {
            true => ReconfigurationRequest::ResetOutgoing(streams),
            false => ReconfigurationRequest::ResetIncoming(streams),
        })
    }

    /// Requests more streams (RFC 6525 §5.1.5, §5.1.6).
    ///
    /// # Errors
    /// If the peer does not support it, or another request is pending.
    pub fn add_streams(&mut self, outbound: u16, inbound: u16) -> Result<(), Error> {
        self.reconfigure(ReconfigurationRequest::AddStreams { outbound, inbound })
    }

    /// Requests a reset of both sides' TSNs and of all streams (RFC 6525 §5.1.4).
    ///
    /// # Errors
    /// If the peer does not support it, or another request is pending.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.reconfigure(ReconfigurationRequest::ResetAssociation)
    }

    fn reconfigure(&mut self, request: ReconfigurationRequest) -> Result<(), Error> {
        self.change(|association, now, counters| association.reconfigure(now, request, counters))
    }

    /// Announces another local address to the peer (RFC 5061 §4.2.1). The event
    /// [`crate::event::Event::OwnAddress`] reports the outcome.
    ///
    /// # Errors
    /// If the peer does not support it, the address is not unicast, or too many requests are
    /// pending.
    pub fn add_address(&mut self, address: IpAddr) -> Result<(), Error> {
        self.change_own_address(AsconfRequest::Add(address))
    }

    /// Withdraws a local address (RFC 5061 §4.2.2). The event [`crate::event::Event::OwnAddress`]
    /// reports the outcome.
    ///
    /// # Errors
    /// If the peer does not support it, the address is not unicast, or too many requests are
    /// pending.
    pub fn remove_address(&mut self, address: IpAddr) -> Result<(), Error> {
        self.change_own_address(AsconfRequest::Delete(address))
    }

    /// Asks the peer to use this local address as its primary destination
    /// (`SCTP_SET_PEER_PRIMARY_ADDR`, RFC 5061 §4.2.4). The event
    /// [`crate::event::Event::OwnAddress`] reports the outcome.
    ///
    /// # Errors
    /// If the peer does not support it, the address is not unicast, or too many requests are
    /// pending.
    pub fn set_peer_primary(&mut self, address: IpAddr) -> Result<(), Error> {
        self.change_own_address(AsconfRequest::SetPrimary(address))
    }

    fn change_own_address(&mut self, request: AsconfRequest) -> Result<(), Error> {
        self.change(|association, now, counters| {
            association.change_own_address(now, request, counters)
        })
    }

    /// Adds or replaces a key shared with the peer (`SCTP_AUTH_KEY`).
    ///
    /// # Errors
    /// If AUTH was not negotiated, or there are too many keys ([`Error::Full`]).
    pub fn set_shared_key(&mut self, key_id: u16, key: Bytes) -> Result<(), Error> {
        self.change(|association, _, _| association.change_key(KeyChange::Set(key_id, key)))
    }

    /// Sets the active key, with which chunks are signed (`SCTP_AUTH_ACTIVE_KEY`).
    ///
    /// # Errors
    /// If AUTH was not negotiated, or there is no such key.
    pub fn activate_shared_key(&mut self, key_id: u16) -> Result<(), Error> {
        self.change(|association, _, _| association.change_key(KeyChange::Activate(key_id)))
    }

    /// Removes a shared key (`SCTP_AUTH_DELETE_KEY`): chunks signed with it are no longer accepted.
    ///
    /// # Errors
    /// If AUTH was not negotiated, there is no such key, or it is the active key ([`Error::Busy`]).
    pub fn remove_shared_key(&mut self, key_id: u16) -> Result<(), Error> {
        self.change(|association, _, _| association.change_key(KeyChange::Remove(key_id)))
    }
}
