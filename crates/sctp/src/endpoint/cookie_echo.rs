//! COOKIE ECHO: the first packet of a peer that creates state (RFC 9260 §5.1.5, §5.2.4).

use bytes::Bytes;
use core::time::Duration;

use super::Endpoint;
use super::cookie::{BadCookie, CookieContents};
use super::registry::RegistryEntry;
use crate::association::authentication::PacketAuthentication;
use crate::association::{Association, AssociationSeed, CookieVerdict, PacketArrival};
use crate::auth::AuthVerification;
use crate::wire::{
    AuthChunk, Chunk, ChunkType, CommonHeader, ErrorCause, ErrorChunk, PacketChunks,
};

/// A packet with a COOKIE ECHO.
pub(super) struct CookieEcho<'a> {
    /// The AUTH chunk before it.
    auth: Option<AuthChunk>,
    cookie: Bytes,
    /// What follows it.
    rest: PacketChunks<'a>,
}

impl<'a> CookieEcho<'a> {
    /// Returns `None` if neither the first chunk nor the one after an AUTH chunk is a COOKIE ECHO.
    pub(super) fn read(mut chunks: PacketChunks<'a>) -> Option<Self> {
        let (auth, echo) = match chunks.next()? {
            Chunk::Auth(auth) => (Some(auth), chunks.next()?),
            first => (None, first),
        };
        let Chunk::CookieEcho(cookie) = echo else { return None };
        Some(Self { auth, cookie, rest: chunks })
    }
}

impl Endpoint {
    /// Handles a COOKIE ECHO and the rest of its packet. `slot` is the association whose tag the
    /// packet has, if there is one.
    pub(super) fn handle_cookie_echo(
        &mut self,
        arrival: &PacketArrival,
        header: &CommonHeader,
        slot: Option<u32>,
        echo: CookieEcho<'_>,
    ) {
        let (cookie, stale) = match self.keys.open(self.now, &echo.cookie) {
            Ok(cookie) => (cookie, None),
            Err(BadCookie::Stale { by, cookie }) => (*cookie, Some(by)),
            Err(BadCookie::Forged) => {
                self.counters.forged_cookies += 1;
                return;
            }
        };
        if !is_from_its_peer(&cookie, header, arrival) {
            self.counters.bad_tags += 1;
            return;
        }
        let known = slot.or_else(|| self.find_by_peer(header, arrival));
        if let Some(by) = stale
            && !self.was_created_by(&cookie, known)
        {
            self.counters.stale_cookies += 1;
            let causes = ErrorCause::StaleCookie { staleness: microseconds(by) }.into();
            let error = Chunk::Error(ErrorChunk { causes });
            return self.answer_rate_limited(arrival, header, cookie.peer.tag, &error);
        }
        let Some(authenticated) = self.authenticate(&cookie, known, echo.auth.as_ref()) else {
            return;
        };
        let slot = match known {
            None => match self.accept(&cookie, arrival, header) {
                Some(slot) => slot,
                None => return,
            },
            Some(slot) => {
                let Some(entry) = self.registry.entry_mut(slot) else { return };
                let counters = &mut self.counters;
                let verdict = entry.association.handle_cookie(self.now, &cookie, arrival, counters);
                self.registry.index(slot);
                self.mark_pending(slot);
                if verdict == CookieVerdict::Discarded {
                    return;
                }
                slot
            }
        };
        if let Some(entry) = self.registry.entry_mut(slot) {
            let counters = &mut self.counters;
            entry.association.handle_packet(self.now, arrival, echo.rest, authenticated, counters);
            self.mark_pending(slot);
        }
    }

    /// Returns whether an association was created by a cookie, which then stays valid however old
    /// it is: the peer has not received our COOKIE ACK (§5.2.4, step 3).
    fn was_created_by(&self, cookie: &CookieContents, known: Option<u32>) -> bool {
        let entry = known.and_then(|slot| self.registry.entry(slot));
        entry.is_some_and(|entry| entry.association.identity().has_tags_of(cookie))
    }

    /// Returns whether AUTH authenticates a cookie and the rest of its packet; `None` if the packet
    /// has to be dropped. The keys come from the cookie and, if there is an association, from its
    /// shared keys (RFC 4895 §6.3).
    fn authenticate(
        &mut self,
        cookie: &CookieContents,
        known: Option<u32>,
        auth: Option<&AuthChunk>,
    ) -> Option<bool> {
        let known = known.and_then(|slot| self.registry.entry(slot));
        let keys = match known {
            Some(RegistryEntry { association, .. }) => {
                association.authentication().of_cookie(cookie, association.config())
            }
            None => PacketAuthentication::default().of_cookie(cookie, &self.accepting),
        };
        let Some(keys) = keys else { return Some(false) };
        match auth {
            Some(auth) if keys.verify(auth) == AuthVerification::Authentic => Some(true),
            Some(_) => {
                self.counters.forged_authentications += 1;
                None
            }
            None if keys.expects(ChunkType::COOKIE_ECHO) => {
                self.counters.unauthenticated_chunks += 1;
                None
            }
            None => Some(false),
        }
    }

    /// Creates an association from a valid cookie.
    fn accept(
        &mut self,
        cookie: &CookieContents,
        arrival: &PacketArrival,
        header: &CommonHeader,
    ) -> Option<u32> {
        if self.config.listen_port != Some(cookie.local_port)
            || self.registry.has_tag(cookie.own.tag.0)
        {
            self.counters.out_of_the_blue += 1;
            return None;
        }
        if self.is_full_for(cookie.remote.ip()) {
            let causes = ErrorCause::OutOfResource.into();
            let abort = crate::wire::AbortChunk { reflected: false, causes };
            self.answer_rate_limited(arrival, header, cookie.peer.tag, &Chunk::Abort(abort));
            return None;
        }
        // The peer did request the INIT ACK.
        self.init_acks.refund(cookie.remote.ip());
        let seed = self.next_seed();
        let (now, config) = (self.now, self.accepting.clone());
        let (local_port, remote_port) = (cookie.local_port, cookie.remote_port);
        let counters = &mut self.counters;
        let (slot, _) = self.registry.insert(|id| {
            let base = AssociationSeed { id, config, local_port, remote_port, seed };
            Association::accept(now, base, cookie, arrival, counters)
        });
        self.update_allowance(slot);
        self.mark_pending(slot);
        Some(slot)
    }
}

/// Returns whether a valid cookie was returned by the peer that it was created for (§5.1.5, step
/// 3): the ports, our tag, and one of its addresses must match.
fn is_from_its_peer(
    cookie: &CookieContents,
    header: &CommonHeader,
    arrival: &PacketArrival,
) -> bool {
    let source = arrival.remote.ip();
    cookie.local_port == header.destination_port
        && cookie.remote_port == header.source_port
        && cookie.own.tag == header.tag
        && (cookie.remote.ip() == source || cookie.peer.addresses.contains(&source))
}

fn microseconds(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
