//! INIT: answered without keeping state (RFC 9260 §5.1, §5.2).

use core::{net::IpAddr, time::Duration};

use super::Endpoint;
use super::cookie::CookieContents;
use crate::association::init_params::{InitParams, InitRefusal, ParsedInit};
use crate::association::{InitVerdict, PacketArrival, addresses};
use crate::config::AssociationConfig;
use crate::identifier::VerificationTag;
use crate::wire::{AbortChunk, Chunk, CommonHeader, ErrorCause, InitChunk, Parameter};

/// The longest extension of the cookie lifetime that a peer can request (RFC 9260 §3.3.2.1.3).
const MAX_PRESERVE: Duration = Duration::from_secs(60);

impl Endpoint {
    /// Handles an INIT that was alone in its packet, with a tag of zero.
    pub(super) fn handle_init(
        &mut self,
        arrival: &PacketArrival,
        header: &CommonHeader,
        init: &InitChunk,
    ) {
        if !addresses::is_unicast(arrival.remote.ip()) {
            self.counters.out_of_the_blue += 1;
            return;
        }
        let known = self.find_by_peer(header, arrival);
        let listens = self.config.listen_port == Some(header.destination_port);
        if known.is_none() && !listens {
            self.counters.out_of_the_blue += 1;
            return self.refuse(arrival, header, init.initiate_tag, None);
        }
        let config = self.accepting.clone();
        let counters = &mut self.counters;
        let parsed = match ParsedInit::parse(init, arrival.remote.ip(), &config, counters) {
            Ok(parsed) => parsed,
            Err(InitRefusal::NoTag) => return,
            Err(InitRefusal::Abort(cause)) => {
                return self.refuse(arrival, header, init.initiate_tag, Some(cause));
            }
        };
        let (mut own, tie_tags) = match known {
            None if self.is_full_for(arrival.remote.ip()) => {
                let cause = Some(ErrorCause::OutOfResource);
                return self.refuse(arrival, header, init.initiate_tag, cause);
            }
            None => (self.response_params(arrival.remote.ip(), &parsed, &config), (0, 0)),
            Some(slot) => {
                let Some(response) =
                    self.respond_to_known_peer(slot, arrival, header, &parsed, &config)
                else {
                    return;
                };
                response
            }
        };
        // A peer that sees it listed assumes that it was negotiated (RFC 8260 §2.2.1).
        own.offers.interleaving &= parsed.params.offers.interleaving;
        self.acknowledge(arrival, header, parsed, own, tie_tags);
    }

    /// Handles an INIT of a peer with an existing association (§5.2.1, §5.2.2).
    fn respond_to_known_peer(
        &mut self,
        slot: u32,
        arrival: &PacketArrival,
        header: &CommonHeader,
        parsed: &ParsedInit,
        config: &AssociationConfig,
    ) -> Option<(InitParams, (u32, u32))> {
        let association = &mut self.registry.entry_mut(slot)?.association;
        let listed = &parsed.params.addresses;
        let source = arrival.remote.ip();
        let verdict = association.classify_init(listed, source, &mut self.counters);
        self.mark_pending(slot);
        match verdict {
            InitVerdict::Collision(own) => Some((own, (0, 0))),
            InitVerdict::Restart { tie_tags } => {
                Some((self.response_params(source, parsed, config), tie_tags))
            }
            InitVerdict::NewAddresses => {
                let new = listed.iter().map(|address| Parameter::Address(*address)).collect();
                let cause = Some(ErrorCause::RestartWithNewAddresses(new));
                self.refuse(arrival, header, parsed.params.tag, cause);
                None
            }
            InitVerdict::Ending => None,
        }
    }

    /// Returns our parameters for a new peer: only extensions that the peer offered, and only
    /// addresses of types that it can use (§3.3.2.1).
    fn response_params(
        &mut self,
        to: IpAddr,
        parsed: &ParsedInit,
        config: &AssociationConfig,
    ) -> InitParams {
        let mut own = self.own_params(config, to);
        let peer = &parsed.params;
        own.offers = own.offers.and(peer.offers);
        own.addresses.retain(|address| parsed.types.allows(*address));
        own.outbound = own.outbound.min(peer.inbound);
        if !peer.offers.authentication {
            own.authentication = None;
        }
        own
    }

    /// Sends the INIT ACK. Nothing is stored except the state of the generator.
    fn acknowledge(
        &mut self,
        arrival: &PacketArrival,
        header: &CommonHeader,
        parsed: ParsedInit,
        own: InitParams,
        tie_tags: (u32, u32),
    ) {
        if !self.init_acks.allows(self.now, arrival.remote.ip()) {
            self.counters.answers_withheld += 1;
            return;
        }
        let peer = parsed.params;
        let tag = peer.tag;
        let cookie = CookieContents {
            created: self.now,
            lifetime: self.config.valid_cookie_life + parsed.preserve.min(MAX_PRESERVE),
            remote: arrival.remote,
            local_port: header.destination_port,
            remote_port: header.source_port,
            tie_tags,
            peer,
            own,
        };
        let sealed = self.keys.seal(self.now, &cookie);
        let ack = cookie.own.to_init_ack(sealed, parsed.unrecognized);
        self.answer(arrival, header, tag, &Chunk::InitAck(ack));
    }

    /// Sends an ABORT with the initiate tag of the INIT (§5.1, §8.4 rule 3).
    fn refuse(
        &mut self,
        arrival: &PacketArrival,
        header: &CommonHeader,
        tag: VerificationTag,
        cause: Option<ErrorCause>,
    ) {
        if tag == VerificationTag::ZERO {
            return;
        }
        let abort = AbortChunk { reflected: false, causes: cause.into_iter().collect() };
        self.answer_rate_limited(arrival, header, tag, &Chunk::Abort(abort));
    }
}
