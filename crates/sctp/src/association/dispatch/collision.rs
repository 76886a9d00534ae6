//! INIT and COOKIE ECHO for an existing association: both sides initiated at once, a packet was
//! delayed, or the peer restarted (RFC 9260 §5.2, table 5.2.4).

use core::net::IpAddr;
use core::time::Duration;

use crate::association::init_params::InitParams;
use crate::association::state::AssociationPhase;
use crate::association::{Association, PacketArrival, addresses};
use crate::counters::EndpointCounters;
use crate::endpoint::cookie::CookieContents;
use crate::event::Event;
use crate::wire::{Chunk, ErrorCause};

/// How to respond to an INIT from a peer with an existing association.
#[derive(Debug)]
pub(crate) enum InitVerdict {
    /// Our own INIT is outstanding: the INIT ACK carries the same parameters (§5.2.1).
    Collision(InitParams),
    /// The peer may have restarted: use a new tag, and store the old tags in the cookie (§5.2.2).
    Restart {
        /// Our tag and the peer's.
        tie_tags: (u32, u32),
    },
    /// The restart lists addresses that the peer did not have: another host may have sent it
    /// (§5.2.2).
    NewAddresses,
    /// The association has to complete its shutdown first; the SHUTDOWN ACK has been queued again
    /// (§9.2).
    Ending,
}

/// The result of a valid COOKIE ECHO for an existing association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CookieVerdict {
    /// Accepted; the rest of the packet is for this association too.
    Accepted,
    /// Discarded as outdated.
    Discarded,
}

impl Association {
    /// Decides how to respond to an INIT from one of the peer's addresses.
    pub(crate) fn classify_init(
        &mut self,
        listed: &[IpAddr],
        source: IpAddr,
        counters: &mut EndpointCounters,
    ) -> InitVerdict {
        match &self.state {
            AssociationPhase::Opening(handshake) => InitVerdict::Collision(handshake.own().clone()),
            AssociationPhase::ShutdownAckSent(shutdown) => {
                let path = shutdown.path();
                self.queues.push(Some(path), Chunk::ShutdownAck, counters);
                InitVerdict::Ending
            }
            _ if !addresses::are_all_known(&self.paths, listed, source) => {
                InitVerdict::NewAddresses
            }
            _ => InitVerdict::Restart { tie_tags: self.identity.tie_tags() },
        }
    }

    /// Handles a COOKIE ECHO whose cookie is valid, by the table of §5.2.4.
    pub(crate) fn handle_cookie(
        &mut self,
        now: Duration,
        cookie: &CookieContents,
        arrival: &PacketArrival,
        counters: &mut EndpointCounters,
    ) -> CookieVerdict {
        let is_own_tag = cookie.own.tag == self.identity.local_tag();
        let is_peer_tag = cookie.peer.tag == self.identity.peer_tag();
        let tie_tags_match = cookie.tie_tags == self.identity.tie_tags();
        match (is_own_tag, is_peer_tag) {
            (false, false) if tie_tags_match => self.restart(now, cookie, arrival, counters),
            (true, false) if self.state.is_opening() => {
                self.identity.set_peer(arrival);
                self.adopt_peer(&cookie.own, &cookie.peer);
                self.add_listed(&cookie.peer.addresses, cookie.remote);
                self.reestablish(now, arrival, counters);
                CookieVerdict::Accepted
            }
            (true, true) => {
                self.reestablish(now, arrival, counters);
                CookieVerdict::Accepted
            }
            _ => {
                counters.unexpected_chunks += 1;
                CookieVerdict::Discarded
            }
        }
    }

    /// Rows B and D: the peer is established, so this side is too.
    fn reestablish(
        &mut self,
        now: Duration,
        arrival: &PacketArrival,
        counters: &mut EndpointCounters,
    ) {
        if matches!(self.state, AssociationPhase::Closed) {
            return;
        }
        if self.state.is_opening() {
            self.queues.discard_standalone();
            self.establish();
        }
        self.queues.acknowledge_cookie(now, arrival, &mut self.paths, counters);
        self.advance_shutdown(now, counters);
    }

    /// Row A: the peer restarted.
    fn restart(
        &mut self,
        now: Duration,
        cookie: &CookieContents,
        arrival: &PacketArrival,
        counters: &mut EndpointCounters,
    ) -> CookieVerdict {
        if let AssociationPhase::ShutdownAckSent(shutdown) = &self.state {
            let path = shutdown.path();
            self.queues.push(Some(path), Chunk::ShutdownAck, counters);
            self.queues.push_error(Some(path), ErrorCause::CookieWhileShuttingDown, counters);
            return CookieVerdict::Discarded;
        }
        let (listed, source) = (&cookie.peer.addresses, arrival.remote.ip());
        if !addresses::are_all_known(&self.paths, listed, source) {
            counters.unexpected_chunks += 1;
            return CookieVerdict::Discarded;
        }
        let ending = !matches!(self.state, AssociationPhase::Established);
        self.identity.set_local_tag(cookie.own.tag);
        self.queues.discard_control();
        self.queues.discard_standalone();
        self.paths.forget_measurements(&self.config);
        self.adopt_peer(&cookie.own, &cookie.peer);
        self.state =
            if ending { AssociationPhase::ShutdownPending } else { AssociationPhase::Established };
        self.events.push(Event::Restarted);
        self.queues.acknowledge_cookie(now, arrival, &mut self.paths, counters);
        CookieVerdict::Accepted
    }
}
