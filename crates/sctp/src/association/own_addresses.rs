//! ASCONF between the user, [`super::dynamic_address`] and the peer (RFC 5061 §5).

use alloc::{boxed::Box, vec::Vec};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::dynamic_address::{
    Answer, AsconfRequest, DynamicAddress, PeerAddresses, PeerChange, Settled,
};
use super::init_params::InitParams;
use super::state::State;
use super::{Arrival, Association, addresses};
use crate::auth::Verification;
use crate::counters::Counters;
use crate::endpoint::Agreed;
use crate::error::Error;
use crate::event::{Event, OwnAddressChange, PathChange};
use crate::identifier::PathId;
use crate::path::Path;
use crate::wire::{AsconfAckChunk, AsconfChunk, Cause, CauseCode, Chunk, Chunks};

/// The most chunks of a packet from an unknown address that are looked at.
const MAX_LOOKED_AT: usize = 8;

/// The state of an association in which both sides know ASCONF.
pub(super) fn agree(
    own: &InitParams,
    peer: &InitParams,
    agreed: Agreed,
) -> Option<Box<DynamicAddress>> {
    let (first, peers) = (own.initial_tsn, peer.initial_tsn);
    agreed.dynamic_addresses.then(|| Box::new(DynamicAddress::new(first, peers, &own.addresses)))
}

impl Association {
    /// The user wants the peer to know of a change; [`Event::OwnAddress`] tells how that went.
    pub(crate) fn change_own_address(
        &mut self,
        now: Duration,
        request: AsconfRequest,
        counters: &mut Counters,
    ) -> Result<(), Error> {
        if !matches!(self.state, State::Established) {
            return Err(Error::WrongState);
        }
        if !addresses::is_unicast(request.address()) {
            return Err(Error::BadAddress);
        }
        let dynamic = self.dynamic_address.as_mut().ok_or(Error::NotSupported)?;
        dynamic.asking.request(request)?;
        self.send_asconf(now, counters);
        Ok(())
    }

    /// Tells the peer which addresses of this host have come and gone, if the user wants that
    /// (RFC 6458 §8.1.23). None is taken back unless another one remains.
    pub(super) fn announce_own_addresses(
        &mut self,
        now: Duration,
        present: &[IpAddr],
        counters: &mut Counters,
    ) {
        let is_up = matches!(self.state, State::Established) && self.config.auto_asconf;
        let paths = &self.paths;
        let usable = |address: &&IpAddr| {
            paths.iter().any(|path| addresses::may_be_announced(**address, path.remote.ip()))
        };
        let Some(dynamic) = self.dynamic_address.as_mut().filter(|_| is_up) else { return };
        let usable: Vec<IpAddr> = present.iter().filter(usable).copied().collect();
        if dynamic.asking.follow(&usable) {
            self.send_asconf(now, counters);
        }
    }

    /// ASCONF, found to be authentic.
    pub(super) fn handle_asconf(
        &mut self,
        arrival: &Arrival,
        asconf: &AsconfChunk,
        counters: &mut Counters,
    ) {
        let Some(dynamic) = self.dynamic_address.as_mut().filter(|_| self.state.is_up()) else {
            counters.unexpected_chunks += 1;
            return;
        };
        let source = arrival.remote.ip();
        let known = self.paths.iter().map(|path| path.remote.ip()).collect();
        let peer = PeerAddresses { known, limit: self.config.max_peer_addresses };
        let ack = match dynamic.answering.handle_asconf(asconf, source, peer) {
            Answer::Discard => {
                counters.unexpected_chunks += 1;
                return;
            }
            Answer::Malformed => {
                counters.malformed_chunks += 1;
                return self.abort_for_violation(Cause::violation("malformed ASCONF"));
            }
            Answer::Again(ack) => ack,
            Answer::New(ack, changes) => {
                for change in changes {
                    self.change_peer_address(change, arrival.remote);
                }
                ack
            }
        };
        // To where the request came from (RFC 5061 §5.2, E6).
        let path = self.paths.by_address(source);
        self.waiting.push(path, Chunk::AsconfAck(ack), counters);
    }

    fn change_peer_address(&mut self, change: PeerChange, from: SocketAddr) {
        self.moved = true;
        match change {
            PeerChange::Added(address) => {
                self.paths.add(addresses::beside(address, from), None, &self.config);
            }
            PeerChange::Deleted(address) => {
                let path = self.paths.by_address(address).and_then(|path| self.paths.remove(path));
                if let Some(path) = path {
                    let change = PathChange::Removed;
                    self.notify(Event::Path { path: path.id, remote: path.remote, change });
                }
            }
            PeerChange::MadePrimary(address) => {
                let path = self.paths.by_address(address);
                let done = path.is_some_and(|path| self.paths.set_primary(path));
                if let Some(dynamic) = &mut self.dynamic_address {
                    // Nothing is sent to an address before it is verified (RFC 9260 §5.4).
                    dynamic.wanted_primary = (!done).then_some(address);
                }
            }
        }
    }

    /// An address of the peer's was verified: it may be the one that the peer wants to be primary.
    pub(super) fn prefer_if_wanted(&mut self, path: PathId, address: IpAddr) {
        if let Some(dynamic) = &mut self.dynamic_address
            && dynamic.wanted_primary == Some(address)
            && self.paths.set_primary(path)
        {
            dynamic.wanted_primary = None;
        }
    }

    /// ASCONF-ACK, found to be authentic.
    pub(super) fn handle_asconf_ack(
        &mut self,
        now: Duration,
        ack: &AsconfAckChunk,
        counters: &mut Counters,
    ) {
        let Some(dynamic) = self.dynamic_address.as_mut().filter(|_| self.state.is_up()) else {
            counters.unexpected_chunks += 1;
            return;
        };
        match dynamic.asking.handle_ack(ack) {
            Settled::Nothing => counters.unexpected_chunks += 1,
            Settled::Illegal => self.abort_for_violation(Cause::IllegalAsconfAck),
            Settled::Answered { path, results } => {
                self.paths.on_answer(path);
                for (request, refused) in results {
                    self.report_settled(request, refused);
                }
                self.send_asconf(now, counters);
            }
        }
    }

    /// The peer does not know the chunk (RFC 5061 §5.1, A9).
    pub(super) fn handle_asconf_unknown(&mut self) {
        let requests = self.dynamic_address.as_mut().map(|dynamic| dynamic.asking.give_up());
        for request in requests.into_iter().flatten() {
            self.report_settled(request, Some(CauseCode::UNRECOGNIZED_CHUNK_TYPE));
        }
        self.dynamic_address = None;
        self.agreed.dynamic_addresses = false;
    }

    /// T4-RTO ran out (RFC 5061 §5.1, B1 to B5): the same request again, over another path if there is one.
    pub(super) fn handle_asconf_timer(&mut self, now: Duration, counters: &mut Counters) {
        let expired = self.dynamic_address.as_ref().and_then(|it| it.asking.expired(now));
        let Some(asked_on) = expired else { return };
        if let Some(path) = self.paths.get_mut(asked_on) {
            path.back_off();
        }
        self.paths.on_error(asked_on, &self.config);
        self.give_up_if_unreachable();
        let next = self.paths.for_retransmission(asked_on);
        if let Some(dynamic) = self.dynamic_address.as_mut().filter(|_| self.state.is_up()) {
            counters.retransmissions += 1;
            dynamic.asking.ask_again(now, next, self.config.rto_max);
        }
        self.send_asconf(now, counters);
    }

    /// When the peer must have answered.
    pub(super) fn asconf_timeout(&self) -> Option<Duration> {
        self.dynamic_address.as_ref().and_then(|dynamic| dynamic.asking.next_timeout())
    }

    /// Whether a packet came to an address of ours that the peer was told to forget: an ABORT there ends
    /// nothing (RFC 5061 §5.3, F4).
    pub(super) fn is_leaving(&self, local: Option<IpAddr>) -> bool {
        let asking = self.dynamic_address.as_ref().map(|dynamic| &dynamic.asking);
        asking.zip(local).is_some_and(|(asking, local)| asking.is_leaving(local))
    }

    /// Whether the peer's addresses may change.
    pub(crate) fn has_dynamic_addresses(&self) -> bool {
        self.dynamic_address.is_some() && self.state.is_up()
    }

    /// Whether a packet with our tag from an address that the peer was not known to have is the
    /// peer's all the same: it begins with a signature that is right, and has an ASCONF that names
    /// an address which the peer has (RFC 5061 §4.1.1).
    pub(crate) fn takes_from_elsewhere(&self, chunks: Chunks<'_>) -> bool {
        let Some(authentication) = &self.authentication else { return false };
        let mut chunks = chunks.take(MAX_LOOKED_AT);
        let Some(Chunk::Auth(auth)) = chunks.next() else { return false };
        let known =
            |address: IpAddr| address.is_unspecified() || self.paths.by_address(address).is_some();
        authentication.verify(&auth) == Verification::Authentic
            && chunks.any(|chunk| matches!(chunk, Chunk::Asconf(it) if known(it.address)))
    }

    fn send_asconf(&mut self, now: Duration, counters: &mut Counters) {
        let path = self.path_for_asconf();
        let source = self.paths.get(path).and_then(|path| path.local);
        let rto = self.timeout_of(path);
        if let Some(dynamic) = &mut self.dynamic_address
            && let Some((path, chunk)) = dynamic.asking.poll_chunk(now, path, rto, source)
        {
            self.waiting.push(Some(path), Chunk::Asconf(chunk), counters);
        }
    }

    /// The usual path, unless it may leave from an address that the request takes away: the peer
    /// refuses that (RFC 5061 §5.3, F6 and F8). If all may, the usual one leaves from another address from
    /// now on.
    fn path_for_asconf(&mut self) -> PathId {
        let usual = self.paths.for_data(None).unwrap_or(self.paths.primary());
        let Some(asking) = self.dynamic_address.as_ref().map(|dynamic| &dynamic.asking) else {
            return usual;
        };
        let is_safe = |path: &Path| path.local.is_some_and(|local| !asking.deletes(local));
        if !asking.deletes_any() || self.paths.get(usual).is_some_and(is_safe) {
            return usual;
        }
        if let Some(other) = self.paths.iter().find(|path| is_safe(path)) {
            return other.id;
        }
        let mut stays = asking.own().filter(|address| !asking.deletes(*address));
        if let Some(path) = self.paths.get_mut(usual) {
            stays.any(|address| path.set_local(address));
        }
        usual
    }

    fn report_settled(&mut self, request: AsconfRequest, refused: Option<CauseCode>) {
        let change = match request {
            AsconfRequest::Add(_) => OwnAddressChange::Added,
            AsconfRequest::Delete(_) => OwnAddressChange::Removed,
            AsconfRequest::SetPrimary(_) => OwnAddressChange::MadePrimary,
        };
        let address = request.address();
        if change == OwnAddressChange::Removed && refused.is_none() {
            self.stop_sending_from(address);
        }
        let cause = refused.map(|code| code.0);
        self.notify(Event::OwnAddress { address, change, cause });
    }

    /// Paths that left from `gone` leave the choice to the routing again.
    fn stop_sending_from(&mut self, gone: IpAddr) {
        let used = self.paths.iter().filter_map(|path| path.local);
        let kept: Vec<IpAddr> = used.filter(|local| *local != gone).collect();
        self.paths.set_local_addresses(&kept);
    }
}
