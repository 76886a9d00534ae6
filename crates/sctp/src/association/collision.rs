//! INIT and COOKIE ECHO where an association is already: both sides began at once, a packet came
//! late, or the peer has restarted (RFC 9260 §5.2, table 5.2.4).

use core::net::IpAddr;
use core::time::Duration;

use super::init_params::InitParams;
use super::state::State;
use super::{Arrival, Association};
use crate::counters::Counters;
use crate::endpoint::cookie::Cookie;
use crate::event::Event;
use crate::path::{Path, PathState};
use crate::wire::{Cause, Chunk, ErrorChunk};

/// What to answer to an INIT of a peer with which there is an association.
#[derive(Debug)]
pub(crate) enum InitVerdict {
    /// Our own INIT is under way: the INIT ACK says the same as that did (§5.2.1).
    Collision(InitParams),
    /// It may have restarted: a new tag, and the cookie remembers the old ones (§5.2.2).
    Restart {
        /// Ours and the peer's.
        tie_tags: (u32, u32),
    },
    /// It restarted with addresses that it did not have: that could be somebody else (§5.2.2).
    NewAddresses,
    /// The association has to end first; that is under way again (§9.2).
    Ending,
}

/// What a good COOKIE ECHO meant for the association that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CookieVerdict {
    /// It was for this association; what follows it in the packet is too.
    Taken,
    /// It is too late.
    Discarded,
}

impl Association {
    /// An INIT from one of the peer's addresses.
    pub(crate) fn judge_init(
        &mut self,
        listed: &[IpAddr],
        source: IpAddr,
        counters: &mut Counters,
    ) -> InitVerdict {
        match &self.state {
            State::CookieWait(wait) => InitVerdict::Collision(wait.own.clone()),
            State::Held(held) => InitVerdict::Collision(held.own.clone()),
            State::CookieEchoed(echoed) => InitVerdict::Collision(echoed.own.clone()),
            State::ShutdownAckSent(farewell) => {
                let path = farewell.t2.path;
                self.waiting.push(Some(path), Chunk::ShutdownAck, counters);
                InitVerdict::Ending
            }
            _ if !self.knows_all(listed, source) => InitVerdict::NewAddresses,
            _ => InitVerdict::Restart { tie_tags: (self.local_tag.0, self.peer_tag.0) },
        }
    }

    /// Whether both tags of a cookie are those of this association.
    pub(crate) fn has_tags_of(&self, cookie: &Cookie) -> bool {
        cookie.own.tag == self.local_tag && cookie.peer.tag == self.peer_tag
    }

    /// A COOKIE ECHO with a cookie of ours that is good, by the table of §5.2.4.
    pub(crate) fn handle_cookie(
        &mut self,
        now: Duration,
        cookie: &Cookie,
        arrival: &Arrival,
        counters: &mut Counters,
    ) -> CookieVerdict {
        let ours = cookie.own.tag == self.local_tag;
        let theirs = cookie.peer.tag == self.peer_tag;
        let tied = cookie.tie_tags == (self.local_tag.0, self.peer_tag.0);
        match (ours, theirs) {
            (false, false) if tied => self.restart(now, cookie, arrival, counters),
            (true, false) if self.state.is_opening() => {
                self.adopt_peer(&cookie.own, &cookie.peer);
                self.add_listed(&cookie.peer.addresses, cookie.remote);
                self.establish_again(now, arrival, counters);
                CookieVerdict::Taken
            }
            (true, true) => {
                self.establish_again(now, arrival, counters);
                CookieVerdict::Taken
            }
            _ => {
                counters.unexpected_chunks += 1;
                CookieVerdict::Discarded
            }
        }
    }

    /// Rows B and D: the peer is up, so this side is.
    fn establish_again(&mut self, now: Duration, arrival: &Arrival, counters: &mut Counters) {
        if matches!(self.state, State::Closed) {
            return;
        }
        if self.state.is_opening() {
            let shutdown = self.state.ends_when_up();
            self.state = State::Established;
            self.waiting.alone.clear();
            self.announce_up(false);
            if shutdown {
                self.state = State::ShutdownPending;
            }
        }
        self.acknowledge_cookie(now, arrival, counters);
        self.advance_shutdown(now, counters);
    }

    /// COOKIE ACK, back to where the COOKIE ECHO came from (§6.4). An address that is not verified
    /// gets a heartbeat along (§5.4).
    pub(super) fn acknowledge_cookie(
        &mut self,
        now: Duration,
        arrival: &Arrival,
        counters: &mut Counters,
    ) {
        let known = self.paths.by_remote(arrival.remote, arrival.local);
        let path = known.or_else(|| self.paths.by_address(arrival.remote.ip()));
        self.waiting.push(path, Chunk::CookieAck, counters);
        if let Some(heartbeat) = path.and_then(|path| self.paths.verify_along(now, path)) {
            self.waiting.push(path, heartbeat.chunk(), counters);
        }
    }

    /// Row A: the peer restarted.
    fn restart(
        &mut self,
        now: Duration,
        cookie: &Cookie,
        arrival: &Arrival,
        counters: &mut Counters,
    ) -> CookieVerdict {
        if let State::ShutdownAckSent(farewell) = &self.state {
            let path = farewell.t2.path;
            let causes = [Cause::CookieWhileShuttingDown].into_iter().collect();
            self.waiting.push(Some(path), Chunk::ShutdownAck, counters);
            self.waiting.push(Some(path), Chunk::Error(ErrorChunk { causes }), counters);
            return CookieVerdict::Discarded;
        }
        if !self.knows_all(&cookie.peer.addresses, arrival.remote.ip()) {
            counters.unexpected_chunks += 1;
            return CookieVerdict::Discarded;
        }
        let ending = !matches!(self.state, State::Established);
        self.local_tag = cookie.own.tag;
        self.moved = true;
        self.waiting.control.clear();
        self.waiting.alone.clear();
        self.renew_paths();
        self.adopt_peer(&cookie.own, &cookie.peer);
        self.state = if ending { State::ShutdownPending } else { State::Established };
        self.notify(Event::Restarted);
        self.acknowledge_cookie(now, arrival, counters);
        CookieVerdict::Taken
    }

    /// All that was learnt of the paths was about the peer that was there before.
    fn renew_paths(&mut self) {
        let config = self.config.clone();
        for path in self.paths.iter_mut() {
            let confirmed = path.state() != PathState::Unconfirmed;
            *path = Path::new(path.id, path.remote, path.local, &config);
            if confirmed {
                path.confirm();
            }
        }
    }

    /// Whether `source` and all `listed` addresses are the peer's already.
    fn knows_all(&self, listed: &[IpAddr], source: IpAddr) -> bool {
        let known = |address: &IpAddr| self.paths.by_address(*address).is_some();
        known(&source) && listed.iter().all(known)
    }

    /// Whether a packet with our tag may come from `source`: one of the peer's addresses, or any
    /// while the peer has not yet said which it has.
    ///
    /// What comes for one that is over is out of the blue: a peer that waits for our SHUTDOWN
    /// COMPLETE gets it however long the user leaves the last messages lying.
    pub(crate) fn takes_from(&self, source: IpAddr) -> bool {
        match self.state {
            State::CookieWait(_) => true,
            State::Closed => false,
            _ => self.paths.by_address(source).is_some(),
        }
    }
}
