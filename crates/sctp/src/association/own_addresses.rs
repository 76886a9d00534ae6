//! ASCONF between the user, [`super::dynamic_address`] and the peer (RFC 5061 §5).

use alloc::{boxed::Box, vec::Vec};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::dynamic_address::{
    AckOutcome, AsconfAnswer, AsconfRequest, DynamicAddress, PeerAddresses, PeerChange,
};
use super::init_params::InitParams;
use super::state::AssociationPhase;
use super::{Association, PacketArrival, addresses};
use crate::auth::AuthVerification;
use crate::counters::EndpointCounters;
use crate::endpoint::AgreedExtensions;
use crate::error::Error;
use crate::event::{Event, OwnAddressChange, PathChange};
use crate::identifier::PathId;
use crate::path::Path;
use crate::wire::{AsconfAckChunk, AsconfChunk, CauseCode, Chunk, ErrorCause, PacketChunks};

/// The maximum number of chunks of a packet from an unknown address that are looked at.
const MAX_INSPECTED: usize = 8;

/// Creates the ASCONF state if both sides support it.
pub(super) fn agree(
    own: &InitParams,
    peer: &InitParams,
    agreed: AgreedExtensions,
) -> Option<Box<DynamicAddress>> {
    let (first, peers) = (own.initial_tsn, peer.initial_tsn);
    agreed.dynamic_addresses.then(|| Box::new(DynamicAddress::new(first, peers, &own.addresses)))
}

impl Association {
    /// Requests a change from the peer for the user; [`Event::OwnAddress`] reports the outcome.
    pub(crate) fn change_own_address(
        &mut self,
        now: Duration,
        request: AsconfRequest,
        counters: &mut EndpointCounters,
    ) -> Result<(), Error> {
        if !matches!(self.state, AssociationPhase::Established) {
            return Err(Error::WrongState);
        }
        if !addresses::is_unicast(request.address()) {
            return Err(Error::BadAddress);
        }
        let dynamic = self.dynamic_address.as_mut().ok_or(Error::NotSupported)?;
        dynamic.outgoing.request(request)?;
        self.send_asconf(now, counters);
        Ok(())
    }

    /// Requests that the peer add and delete addresses as this host's addresses change, if the user
    /// enabled that (RFC 6458 §8.1.23). The last address is never deleted.
    pub(super) fn announce_own_addresses(
        &mut self,
        now: Duration,
        present: &[IpAddr],
        counters: &mut EndpointCounters,
    ) {
        let is_up = matches!(self.state, AssociationPhase::Established) && self.config.auto_asconf;
        let paths = &self.paths;
        let usable = |address: &&IpAddr| {
            paths.iter().any(|path| addresses::may_be_announced(**address, path.remote.ip()))
        };
        let Some(dynamic) = self.dynamic_address.as_mut().filter(|_| is_up) else { return };
        let usable: Vec<IpAddr> = present.iter().filter(usable).copied().collect();
        if dynamic.outgoing.request_addresses(&usable) {
            self.send_asconf(now, counters);
        }
    }

    /// Handles an authenticated ASCONF.
    pub(super) fn handle_asconf(
        &mut self,
        arrival: &PacketArrival,
        asconf: &AsconfChunk,
        counters: &mut EndpointCounters,
    ) {
        let Some(dynamic) = self.dynamic_address.as_mut().filter(|_| self.state.is_up()) else {
            counters.unexpected_chunks += 1;
            return;
        };
        let source = arrival.remote.ip();
        let known = self.paths.iter().map(|path| path.remote.ip()).collect();
        let peer = PeerAddresses { known, limit: self.config.max_peer_addresses };
        let ack = match dynamic.incoming.handle_asconf(asconf, source, peer) {
            AsconfAnswer::Discard => {
                counters.unexpected_chunks += 1;
                return;
            }
            AsconfAnswer::Malformed => {
                counters.malformed_chunks += 1;
                return self.abort_for_violation(ErrorCause::violation("malformed ASCONF"));
            }
            AsconfAnswer::Repeat(ack) => ack,
            AsconfAnswer::New(ack, changes) => {
                for change in changes {
                    self.change_peer_address(change, arrival.remote);
                }
                ack
            }
        };
        // The response goes to the source of the request (RFC 5061 §5.2, E6).
        let path = self.paths.by_address(source);
        self.queues.push(path, Chunk::AsconfAck(ack), counters);
    }

    fn change_peer_address(&mut self, change: PeerChange, from: SocketAddr) {
        self.identity.addresses_changed();
        match change {
            PeerChange::Added(address) => {
                self.paths.add(addresses::socket_address_like(address, from), None, &self.config);
            }
            PeerChange::Deleted(address) => {
                let path = self.paths.by_address(address).and_then(|path| self.paths.remove(path));
                if let Some(path) = path {
                    let change = PathChange::Removed;
                    self.events.push(Event::Path { path: path.id, remote: path.remote, change });
                }
            }
            PeerChange::MadePrimary(address) => {
                let path = self.paths.by_address(address);
                let done = path.is_some_and(|path| self.paths.set_primary(path));
                if let Some(dynamic) = &mut self.dynamic_address {
                    // An address cannot be primary before it is confirmed (RFC 9260 §5.4).
                    dynamic.wanted_primary = (!done).then_some(address);
                }
            }
        }
    }

    /// Makes a confirmed address primary if the peer has requested that.
    pub(super) fn set_primary_if_wanted(&mut self, path: PathId, address: IpAddr) {
        if let Some(dynamic) = &mut self.dynamic_address
            && dynamic.wanted_primary == Some(address)
            && self.paths.set_primary(path)
        {
            dynamic.wanted_primary = None;
        }
    }

    /// Handles an authenticated ASCONF-ACK.
    pub(super) fn handle_asconf_ack(
        &mut self,
        now: Duration,
        ack: &AsconfAckChunk,
        counters: &mut EndpointCounters,
    ) {
        let Some(dynamic) = self.dynamic_address.as_mut().filter(|_| self.state.is_up()) else {
            counters.unexpected_chunks += 1;
            return;
        };
        match dynamic.outgoing.handle_ack(ack) {
            AckOutcome::Unrelated => counters.unexpected_chunks += 1,
            AckOutcome::Illegal => self.abort_for_violation(ErrorCause::IllegalAsconfAck),
            AckOutcome::Answered { path, results } => {
                self.paths.on_answer(path);
                for (request, refused) in results {
                    self.report_own_address(request, refused);
                }
                self.send_asconf(now, counters);
            }
        }
    }

    /// Cancels all requests, as the peer does not support ASCONF (RFC 5061 §5.1, A9).
    pub(super) fn handle_asconf_unknown(&mut self) {
        let requests = self.dynamic_address.as_mut().map(|dynamic| dynamic.outgoing.cancel_all());
        for request in requests.into_iter().flatten() {
            self.report_own_address(request, Some(CauseCode::UNRECOGNIZED_CHUNK_TYPE));
        }
        self.dynamic_address = None;
        self.agreed.dynamic_addresses = false;
    }

    /// Handles the expiry of T4-RTO (RFC 5061 §5.1, B1 to B5): retransmits the request, over
    /// another path if there is one.
    pub(super) fn handle_asconf_timer(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let expired = self.dynamic_address.as_ref().and_then(|it| it.outgoing.expired(now));
        let Some(request_path) = expired else { return };
        if let Some(path) = self.paths.get_mut(request_path) {
            path.back_off();
        }
        self.paths.on_error(request_path, &self.config);
        self.give_up_if_unreachable();
        let next = self.paths.for_retransmission(request_path);
        if let Some(dynamic) = self.dynamic_address.as_mut().filter(|_| self.state.is_up()) {
            counters.retransmissions += 1;
            dynamic.outgoing.retransmit(now, next, self.config.rto_max);
        }
        self.send_asconf(now, counters);
    }

    /// Returns when T4-RTO expires.
    pub(super) fn asconf_timeout(&self) -> Option<Duration> {
        self.dynamic_address.as_ref().and_then(|dynamic| dynamic.outgoing.next_timeout())
    }

    /// Returns whether a packet arrived at an address of ours that is being deleted: an ABORT there
    /// has no effect (RFC 5061 §5.3, F4).
    pub(super) fn is_being_deleted(&self, local: Option<IpAddr>) -> bool {
        let requests = self.dynamic_address.as_ref().map(|dynamic| &dynamic.outgoing);
        requests.zip(local).is_some_and(|(requests, local)| requests.is_being_deleted(local))
    }

    /// Returns whether the peer may change its addresses.
    pub(crate) fn has_dynamic_addresses(&self) -> bool {
        self.dynamic_address.is_some() && self.state.is_up()
    }

    /// Returns whether to accept a packet with our tag from an unknown address: it must begin with
    /// a valid signature and contain an ASCONF that names an address of the peer (RFC 5061 §4.1.1).
    pub(crate) fn accepts_from_unknown_address(&self, chunks: PacketChunks<'_>) -> bool {
        let Some(authentication) = &self.authentication else { return false };
        let mut chunks = chunks.take(MAX_INSPECTED);
        let Some(Chunk::Auth(auth)) = chunks.next() else { return false };
        let known =
            |address: IpAddr| address.is_unspecified() || self.paths.by_address(address).is_some();
        authentication.verify(&auth) == AuthVerification::Authentic
            && chunks.any(|chunk| matches!(chunk, Chunk::Asconf(it) if known(it.address)))
    }

    fn send_asconf(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let path = self.path_for_asconf();
        let source = self.paths.get(path).and_then(|path| path.local);
        let rto = self.paths.timeout_of(path, &self.config);
        if let Some(dynamic) = &mut self.dynamic_address
            && let Some((path, chunk)) = dynamic.outgoing.poll_chunk(now, path, rto, source)
        {
            self.queues.push(Some(path), Chunk::Asconf(chunk), counters);
        }
    }

    /// Returns the default path, unless it may use a source address that the request deletes: the
    /// peer refuses that (RFC 5061 §5.3, F6 and F8). If that is true of all paths, changes the
    /// source address of the default path.
    fn path_for_asconf(&mut self) -> PathId {
        let default_path = self.paths.default_path();
        let Some(requests) = self.dynamic_address.as_ref().map(|dynamic| &dynamic.outgoing) else {
            return default_path;
        };
        let is_safe = |path: &Path| path.local.is_some_and(|local| !requests.deletes(local));
        if !requests.deletes_any() || self.paths.get(default_path).is_some_and(is_safe) {
            return default_path;
        }
        if let Some(other) = self.paths.iter().find(|path| is_safe(path)) {
            return other.id;
        }
        let mut remaining = requests.own().filter(|address| !requests.deletes(*address));
        if let Some(path) = self.paths.get_mut(default_path) {
            remaining.any(|address| path.set_local(address));
        }
        default_path
    }

    fn report_own_address(&mut self, request: AsconfRequest, refused: Option<CauseCode>) {
        let change = match request {
            AsconfRequest::Add(_) => OwnAddressChange::Added,
            AsconfRequest::Delete(_) => OwnAddressChange::Removed,
            AsconfRequest::SetPrimary(_) => OwnAddressChange::MadePrimary,
        };
        let address = request.address();
        if change == OwnAddressChange::Removed && refused.is_none() {
            self.paths.stop_sending_from(address);
        }
        if change == OwnAddressChange::Added && refused.is_none() {
            self.paths.verify_again_from(address);
        }
        let cause = refused.map(|code| code.0);
        self.events.push(Event::OwnAddress { address, change, cause });
    }
}
