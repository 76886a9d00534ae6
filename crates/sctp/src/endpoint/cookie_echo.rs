//! COOKIE ECHO: the first packet of a peer that anything is kept for (RFC 9260 §5.1.5, §5.2.4).

use bytes::Bytes;
use core::time::Duration;

use super::Endpoint;
use super::cookie::{BadCookie, Cookie};
use crate::association::{Arrival, Association, CookieVerdict, Foundation};
use crate::wire::{Cause, Chunk, Chunks, ErrorChunk, Header};

impl Endpoint {
    /// A COOKIE ECHO, with what follows it in its packet. `slot` is the association whose tag the
    /// packet has, if there is one.
    pub(super) fn handle_cookie_echo(
        &mut self,
        arrival: &Arrival,
        header: &Header,
        slot: Option<u32>,
        sealed: &Bytes,
        rest: Chunks<'_>,
    ) {
        let cookie = match self.keys.open(self.now, sealed) {
            Ok(cookie) => cookie,
            Err(BadCookie::Forged) => {
                self.counters.forged_cookies += 1;
                return;
            }
            Err(BadCookie::Stale { by, peer_tag }) => {
                self.counters.stale_cookies += 1;
                // One that is up does not need it any more (RFC 9260 §5.2.4, D).
                if slot.is_none() {
                    let causes = Cause::StaleCookie { staleness: microseconds(by) }.into();
                    let error = Chunk::Error(ErrorChunk { causes });
                    self.answer_stranger(arrival, header, peer_tag, &error);
                }
                return;
            }
        };
        if !is_from_its_owner(&cookie, header, arrival) {
            self.counters.bad_tags += 1;
            return;
        }
        let known = slot.or_else(|| self.find_by_peer(header, arrival));
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
                self.touch(slot);
                if verdict == CookieVerdict::Discarded {
                    return;
                }
                slot
            }
        };
        if let Some(entry) = self.registry.entry_mut(slot) {
            entry.association.handle_packet(self.now, arrival, rest, &mut self.counters);
            self.touch(slot);
        }
    }

    /// A new association, from a good cookie.
    fn accept(&mut self, cookie: &Cookie, arrival: &Arrival, header: &Header) -> Option<u32> {
        if self.config.listen_port != Some(cookie.local_port)
            || self.registry.has_tag(cookie.own.tag.0)
        {
            self.counters.out_of_the_blue += 1;
            return None;
        }
        if self.registry.len() >= self.config.max_associations {
            let causes = Cause::OutOfResource.into();
            let abort = crate::wire::AbortChunk { reflected: false, causes };
            self.answer_stranger(arrival, header, cookie.peer.tag, &Chunk::Abort(abort));
            return None;
        }
        let seed = self.draw_seed();
        let (now, config) = (self.now, self.accepting.clone());
        let (local_port, remote_port) = (cookie.local_port, cookie.remote_port);
        let counters = &mut self.counters;
        let (slot, _) = self.registry.insert(|id| {
            let base = Foundation { id, config, local_port, remote_port, seed };
            Association::accept(now, base, cookie, arrival, counters)
        });
        self.touch(slot);
        Some(slot)
    }
}

/// Whether a good cookie came from the peer that it was made for (§5.1.5, step 3): the ports, our
/// tag, and one of its addresses.
fn is_from_its_owner(cookie: &Cookie, header: &Header, arrival: &Arrival) -> bool {
    let source = arrival.remote.ip();
    cookie.local_port == header.destination_port
        && cookie.remote_port == header.source_port
        && cookie.own.tag == header.tag
        && (cookie.remote.ip() == source || cookie.peer.addresses.contains(&source))
}

fn microseconds(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
