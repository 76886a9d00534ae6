//! INIT: answered without keeping any state (RFC 9260 §5.1, §5.2).

use core::{net::IpAddr, time::Duration};

use super::Endpoint;
use super::cookie::Cookie;
use crate::association::init_params::{InitParams, Reading, Refusal};
use crate::association::{Arrival, InitVerdict, addresses};
use crate::config::AssociationConfig;
use crate::identifier::VerificationTag;
use crate::wire::{AbortChunk, Cause, Chunk, Header, InitChunk, Parameter};

/// The most that a peer can ask to be added to the life of its cookie (RFC 9260 §3.3.2.1.3).
const MAX_PRESERVE: Duration = Duration::from_secs(60);

impl Endpoint {
    /// An INIT that was alone in its packet, with a tag of zero.
    pub(super) fn handle_init(&mut self, arrival: &Arrival, header: &Header, init: &InitChunk) {
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
        let reading = match Reading::of(init, arrival.remote.ip(), &config, counters) {
            Ok(reading) => reading,
            Err(Refusal::NoTag) => return,
            Err(Refusal::Abort(cause)) => {
                return self.refuse(arrival, header, init.initiate_tag, Some(cause));
            }
        };
        let (mut own, tie_tags) = match known {
            None if self.registry.len() >= self.config.max_associations => {
                let cause = Some(Cause::OutOfResource);
                return self.refuse(arrival, header, init.initiate_tag, cause);
            }
            None => (self.answer_to(arrival.remote.ip(), &reading, &config), (0, 0)),
            Some(slot) => {
                let Some(judged) = self.judge(slot, arrival, header, &reading, &config) else {
                    return;
                };
                judged
            }
        };
        // Who sees it listed takes it as agreed on (RFC 8260 §2.2.1).
        own.offers.interleaving &= reading.params.offers.interleaving;
        self.acknowledge(arrival, header, reading, own, tie_tags);
    }

    /// An INIT of a peer that there is an association with (§5.2.1, §5.2.2).
    fn judge(
        &mut self,
        slot: u32,
        arrival: &Arrival,
        header: &Header,
        reading: &Reading,
        config: &AssociationConfig,
    ) -> Option<(InitParams, (u32, u32))> {
        let association = &mut self.registry.entry_mut(slot)?.association;
        let listed = &reading.params.addresses;
        let source = arrival.remote.ip();
        let verdict = association.judge_init(listed, source, &mut self.counters);
        self.touch(slot);
        match verdict {
            InitVerdict::Collision(own) => Some((own, (0, 0))),
            InitVerdict::Restart { tie_tags } => {
                Some((self.answer_to(source, reading, config), tie_tags))
            }
            InitVerdict::NewAddresses => {
                let new = listed.iter().map(|address| Parameter::Address(*address)).collect();
                let cause = Some(Cause::RestartWithNewAddresses(new));
                self.refuse(arrival, header, reading.params.tag, cause);
                None
            }
            InitVerdict::Ending => None,
        }
    }

    /// What this side says to a new peer: nothing that the peer did not offer itself, and no address
    /// of a kind that it cannot use (§3.3.2.1).
    fn answer_to(
        &mut self,
        to: IpAddr,
        reading: &Reading,
        config: &AssociationConfig,
    ) -> InitParams {
        let mut own = self.introduce(config, to);
        let peer = &reading.params;
        own.offers = own.offers.and(peer.offers);
        own.addresses.retain(|address| reading.types.allows(*address));
        own.outbound = own.outbound.min(peer.inbound);
        if !peer.offers.authentication {
            own.authentication = None;
        }
        own
    }

    /// The INIT ACK. Nothing stays here but a number drawn.
    fn acknowledge(
        &mut self,
        arrival: &Arrival,
        header: &Header,
        reading: Reading,
        own: InitParams,
        tie_tags: (u32, u32),
    ) {
        if !self.init_acks.allows(self.now, arrival.remote.ip()) {
            self.counters.answers_withheld += 1;
            return;
        }
        let peer = reading.params;
        let tag = peer.tag;
        let cookie = Cookie {
            created: self.now,
            lifetime: self.config.valid_cookie_life + reading.preserve.min(MAX_PRESERVE),
            remote: arrival.remote,
            local_port: header.destination_port,
            remote_port: header.source_port,
            tie_tags,
            peer,
            own,
        };
        let sealed = self.keys.seal(self.now, &cookie);
        let ack = cookie.own.to_init_ack(sealed, reading.unrecognized);
        self.answer(arrival, header, tag, &Chunk::InitAck(ack));
    }

    /// An ABORT with the tag that the INIT asked for (§5.1, §8.4 rule 3).
    fn refuse(
        &mut self,
        arrival: &Arrival,
        header: &Header,
        tag: VerificationTag,
        cause: Option<Cause>,
    ) {
        if tag == VerificationTag::ZERO {
            return;
        }
        let abort = AbortChunk { reflected: false, causes: cause.into_iter().collect() };
        self.answer_stranger(arrival, header, tag, &Chunk::Abort(abort));
    }
}
