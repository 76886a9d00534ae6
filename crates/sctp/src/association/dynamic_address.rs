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

use alloc::{boxed::Box, vec::Vec};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::addresses;
use super::control::ChunkQueues;
use super::identity::AssociationIdentity;
use super::init_params::InitParams;
use super::notifications::NotificationQueue;
use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::endpoint::AgreedExtensions;
use crate::error::Error;
use crate::event::{Event, OwnAddressChange, PathChange};
use crate::identifier::PathId;
use crate::path::{AssociationPaths, Path};
use crate::serial::{AsconfNumber, Tsn};
use crate::wire::{AsconfAckChunk, AsconfChunk, CauseCode, Chunk, ErrorCause};

use requests::{AckOutcome, OutgoingRequests};
use responses::{AsconfAnswer, IncomingRequests, PeerAddresses, PeerChange};

pub(crate) use requests::AsconfRequest;

/// The state of both directions.
#[derive(Debug)]
pub(super) struct DynamicAddress {
    /// Our requests.
    outgoing: OutgoingRequests,
    /// The peer's requests.
    incoming: IncomingRequests,
    /// The address that the peer wants to be primary, until it is confirmed.
    wanted_primary: Option<IpAddr>,
}

/// The other parts of the association that requests and their answers concern.
#[derive(Debug)]
pub(super) struct AddressContext<'a> {
    pub(super) now: Duration,
    pub(super) config: &'a AssociationConfig,
    pub(super) identity: &'a mut AssociationIdentity,
    pub(super) paths: &'a mut AssociationPaths,
    pub(super) queues: &'a mut ChunkQueues,
    pub(super) events: &'a mut NotificationQueue,
}

/// Creates the state if both sides support ASCONF.
pub(super) fn agree(
    own: &InitParams,
    peer: &InitParams,
    agreed: AgreedExtensions,
) -> Option<Box<DynamicAddress>> {
    let (first, peers) = (own.initial_tsn, peer.initial_tsn);
    agreed.dynamic_addresses.then(|| Box::new(DynamicAddress::new(first, peers, &own.addresses)))
}

impl DynamicAddress {
    /// `own` are the addresses of ours that the peer is known to have.
    fn new(initial_tsn: Tsn, peer_initial_tsn: Tsn, own: &[IpAddr]) -> Self {
        Self {
            outgoing: OutgoingRequests::new(AsconfNumber(initial_tsn.0), own),
            incoming: IncomingRequests::new(AsconfNumber(peer_initial_tsn.0)),
            wanted_primary: None,
        }
    }

    /// Requests a change from the peer for the user; [`Event::OwnAddress`] reports the outcome.
    pub(super) fn request(
        &mut self,
        request: AsconfRequest,
        context: &mut AddressContext<'_>,
        counters: &mut EndpointCounters,
    ) -> Result<(), Error> {
        self.outgoing.request(request)?;
        self.send(context, counters);
        Ok(())
    }

    /// Requests that the peer add and delete addresses as this host's addresses change. The last
    /// address is never deleted.
    pub(super) fn announce(
        &mut self,
        present: &[IpAddr],
        context: &mut AddressContext<'_>,
        counters: &mut EndpointCounters,
    ) {
        let usable = |address: &&IpAddr| {
            let mut paths = context.paths.iter();
            paths.any(|path| addresses::may_be_announced(**address, path.remote.ip()))
        };
        let usable: Vec<IpAddr> = present.iter().filter(usable).copied().collect();
        if self.outgoing.request_addresses(&usable) {
            self.send(context, counters);
        }
    }

    /// Handles an authenticated ASCONF from `source`. Returns the cause if the association has to be
    /// aborted.
    pub(super) fn handle_asconf(
        &mut self,
        source: SocketAddr,
        asconf: &AsconfChunk,
        context: &mut AddressContext<'_>,
        counters: &mut EndpointCounters,
    ) -> Result<(), ErrorCause> {
        let known = context.paths.iter().map(|path| path.remote.ip()).collect();
        let peer = PeerAddresses { known, limit: context.config.max_peer_addresses };
        let ack = match self.incoming.handle_asconf(asconf, source.ip(), peer) {
            AsconfAnswer::Discard => {
                counters.unexpected_chunks += 1;
                return Ok(());
            }
            AsconfAnswer::Malformed => {
                counters.malformed_chunks += 1;
                return Err(ErrorCause::violation("malformed ASCONF"));
            }
            AsconfAnswer::Repeat(ack) => ack,
            AsconfAnswer::New(ack, changes) => {
                for change in changes {
                    self.change_peer_address(change, source, context);
                }
                ack
            }
        };
        // The response goes to the source of the request (RFC 5061 §5.2, E6).
        let path = context.paths.by_address(source.ip());
        context.queues.push(path, Chunk::AsconfAck(ack), counters);
        Ok(())
    }

    fn change_peer_address(
        &mut self,
        change: PeerChange,
        from: SocketAddr,
        context: &mut AddressContext<'_>,
    ) {
        let AddressContext { config, identity, paths, events, .. } = context;
        identity.addresses_changed();
        match change {
            PeerChange::Added(address) => {
                paths.add(addresses::socket_address_like(address, from), None, config);
            }
            PeerChange::Deleted(address) => {
                let path = paths.by_address(address).and_then(|path| paths.remove(path));
                if let Some(path) = path {
                    let change = PathChange::Removed;
                    events.push(Event::Path { path: path.id, remote: path.remote, change });
                }
            }
            PeerChange::MadePrimary(address) => {
                let path = paths.by_address(address);
                let done = path.is_some_and(|path| paths.set_primary(path));
                // An address cannot be primary before it is confirmed (RFC 9260 §5.4).
                self.wanted_primary = (!done).then_some(address);
            }
        }
    }

    /// Makes a confirmed address primary if the peer has requested that.
    pub(super) fn set_primary_if_wanted(
        &mut self,
        path: PathId,
        address: IpAddr,
        paths: &mut AssociationPaths,
    ) {
        if self.wanted_primary == Some(address) && paths.set_primary(path) {
            self.wanted_primary = None;
        }
    }

    /// Handles an authenticated ASCONF-ACK. Returns the cause if the association has to be aborted.
    pub(super) fn handle_ack(
        &mut self,
        ack: &AsconfAckChunk,
        context: &mut AddressContext<'_>,
        counters: &mut EndpointCounters,
    ) -> Result<(), ErrorCause> {
        match self.outgoing.handle_ack(ack) {
            AckOutcome::Unrelated => counters.unexpected_chunks += 1,
            AckOutcome::Illegal => return Err(ErrorCause::IllegalAsconfAck),
            AckOutcome::Answered { path, results } => {
                context.paths.on_answer(path);
                for (request, refused) in results {
                    report(request, refused, context.paths, context.events);
                }
                self.send(context, counters);
            }
        }
        Ok(())
    }

    /// Cancels all requests, as the peer does not support ASCONF (RFC 5061 §5.1, A9).
    pub(super) fn cancel(mut self, paths: &mut AssociationPaths, events: &mut NotificationQueue) {
        for request in self.outgoing.cancel_all() {
            report(request, Some(CauseCode::UNRECOGNIZED_CHUNK_TYPE), paths, events);
        }
    }

    /// Returns the path whose T4-RTO has expired, if any.
    pub(super) fn expired(&self, now: Duration) -> Option<PathId> {
        self.outgoing.expired(now)
    }

    /// Retransmits the request after T4-RTO expired on `last`, over another path if there is one
    /// (RFC 5061 §5.1, B4).
    pub(super) fn retransmit(
        &mut self,
        last: PathId,
        context: &mut AddressContext<'_>,
        counters: &mut EndpointCounters,
    ) {
        let next = context.paths.for_retransmission(last);
        counters.retransmissions += 1;
        self.outgoing.retransmit(context.now, next, context.config.rto_max);
        self.send(context, counters);
    }

    /// Returns when T4-RTO expires.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.outgoing.next_timeout()
    }

    /// Returns whether an address of ours is being deleted: an ABORT that arrives there has no
    /// effect (RFC 5061 §5.3, F4).
    pub(super) fn is_being_deleted(&self, local: IpAddr) -> bool {
        self.outgoing.is_being_deleted(local)
    }

    fn send(&mut self, context: &mut AddressContext<'_>, counters: &mut EndpointCounters) {
        let path = self.path_for_request(context.paths);
        let source = context.paths.get(path).and_then(|path| path.local);
        let rto = context.paths.timeout_of(path, context.config);
        if let Some((path, chunk)) = self.outgoing.poll_chunk(context.now, path, rto, source) {
            context.queues.push(Some(path), Chunk::Asconf(chunk), counters);
        }
    }

    /// Returns the default path, unless it may use a source address that the request deletes: the
    /// peer refuses that (RFC 5061 §5.3, F6 and F8). If that is true of all paths, changes the
    /// source address of the default path.
    fn path_for_request(&self, paths: &mut AssociationPaths) -> PathId {
        let default_path = paths.default_path();
        let requests = &self.outgoing;
        let is_safe = |path: &Path| path.local.is_some_and(|local| !requests.deletes(local));
        if !requests.deletes_any() || paths.get(default_path).is_some_and(is_safe) {
            return default_path;
        }
        if let Some(other) = paths.iter().find(|path| is_safe(path)) {
            return other.id;
        }
        let mut remaining = requests.own().filter(|address| !requests.deletes(*address));
        if let Some(path) = paths.get_mut(default_path) {
            remaining.any(|address| path.set_local(address));
        }
        default_path
    }
}

/// Reports the outcome of a request to the user, and sends from our addresses accordingly.
fn report(
    request: AsconfRequest,
    refused: Option<CauseCode>,
    paths: &mut AssociationPaths,
    events: &mut NotificationQueue,
) {
    let change = match request {
        AsconfRequest::Add(_) => OwnAddressChange::Added,
        AsconfRequest::Delete(_) => OwnAddressChange::Removed,
        AsconfRequest::SetPrimary(_) => OwnAddressChange::MadePrimary,
    };
    let address = request.address();
    if change == OwnAddressChange::Removed && refused.is_none() {
        paths.stop_sending_from(address);
    }
    if change == OwnAddressChange::Added && refused.is_none() {
        paths.verify_again_from(address);
    }
    let cause = refused.map(|code| code.0);
    events.push(Event::OwnAddress { address, change, cause });
}
