//! The four packets that open an association, from the side that begins (RFC 9260 §5.1), with
//! T1-init and T1-cookie.

use alloc::{boxed::Box, vec::Vec};
use bytes::Bytes;
use core::{net::IpAddr, time::Duration};

use super::init_params::{InitParams, Reading, Refusal};
use super::state::{CookieEchoed, CookieWait, Held, Retry, State};
use super::{Arrival, Association, Ending};
use crate::counters::Counters;
use crate::event::{Event, LossReason};
use crate::identifier::{PathId, VerificationTag};
use crate::io::Unreachable;
use crate::path::{HEARTBEAT_CHUNK, Path, PathState};
use crate::wire::{
    AbortChunk, Cause, Chunk, ChunkType, EncodeChunk, ErrorChunk, InitChunk, PACKET_HEADER,
    Parameters, padded,
};

/// How often a handshake is begun anew because the cookie was stale (RFC 9260 §5.2.6).
const MAX_STALE_COOKIES: u32 = 3;

/// The most that a peer is asked to add to the life of its cookies.
const MAX_PRESERVE: Duration = Duration::from_secs(60);

impl Association {
    /// The INIT, where T1-init says.
    pub(super) fn send_init(&mut self) {
        let State::CookieWait(wait) = &self.state else { return };
        let family = self.paths.get(wait.t1.path).map(|path| path.remote.is_ipv4());
        let init = wait.own.to_init(wait.preserve, family.unwrap_or(true));
        self.waiting.push_alone(wait.t1.path, VerificationTag::ZERO, Chunk::Init(init));
    }

    /// INIT ACK: the peer is there (§5.1, C).
    pub(super) fn handle_init_ack(
        &mut self,
        now: Duration,
        arrival: &Arrival,
        init: &InitChunk,
        counters: &mut Counters,
    ) {
        if !matches!(self.state, State::CookieWait(_)) {
            // An old one, or a second one (§5.2.3).
            counters.unexpected_chunks += 1;
            return;
        }
        let reading = match Reading::of(init, arrival.remote.ip(), &self.config, counters) {
            Ok(reading) => reading,
            Err(refusal) => return self.refuse_init_ack(init, refusal),
        };
        let Some(cookie) = reading.cookie.clone() else {
            return self.refuse_init_ack(init, Refusal::missing_cookie());
        };
        if reading.lacks_skipping && self.takes_interleaving_back(now) {
            return;
        }
        let State::CookieWait(wait) = &self.state else { return };
        let (own, t1) = (wait.own.clone(), wait.t1.clone());
        let (hold, stale, shutdown) = (wait.hold, wait.stale, wait.shutdown);
        let listed = self.usable(&reading.params.addresses, &own.addresses, counters);
        self.settle_paths(now, arrival, &t1, &listed);
        self.adopt_peer(&own, &reading.params);
        for whole in reading.unrecognized {
            let causes = [Cause::UnrecognizedParameters(Parameters::from_bytes(whole))]
                .into_iter()
                .collect();
            self.waiting.push(None, Chunk::Error(ErrorChunk { causes }), counters);
        }
        self.notify(Event::Answered);
        if hold {
            self.state = State::Held(Box::new(Held { own, cookie, stale }));
        } else {
            self.echo_cookie(now, own, cookie, stale, shutdown);
        }
    }

    /// The peer takes it as agreed on that I-DATA is used, and with it that cannot be: the handshake
    /// begins anew without the offer, which costs a round trip, as the peer holds nothing yet. Says
    /// whether the INIT ACK is of no use.
    fn takes_interleaving_back(&mut self, now: Duration) -> bool {
        let State::CookieWait(wait) = &mut self.state else { return false };
        if !core::mem::take(&mut wait.own.offers.interleaving) {
            // Another answer to the INIT with the offer, unless the peer lists I-DATA in any case.
            return self.config.extensions.interleaving && wait.t1.retransmissions == 0;
        }
        wait.t1 = Retry::new(now, self.config.rto_initial, wait.t1.path);
        self.send_init();
        true
    }

    /// The user says to go on (`hold_at_init_ack`), at once or as soon as the INIT ACK comes.
    pub(crate) fn proceed(&mut self, now: Duration) {
        match &mut self.state {
            State::CookieWait(wait) => wait.hold = false,
            State::Held(held) => {
                let (own, cookie, stale) = (held.own.clone(), held.cookie.clone(), held.stale);
                self.echo_cookie(now, own, cookie, stale, false);
            }
            _ => {}
        }
    }

    /// COOKIE ACK: it is up (§5.1, E).
    pub(super) fn handle_cookie_ack(&mut self, now: Duration, counters: &mut Counters) {
        let State::CookieEchoed(echoed) = &self.state else {
            counters.unexpected_chunks += 1;
            return;
        };
        let (path, round_trip) = (echoed.t1.path, echoed.t1.round_trip(now));
        let shutdown = echoed.shutdown;
        self.note_round_trip(now, path, round_trip);
        self.state = State::Established;
        self.announce_up(false);
        if shutdown {
            self.state = State::ShutdownPending;
            self.advance_shutdown(now, counters);
        }
    }

    /// The peer found its cookie too old, by this much: once more, and ask it for more time
    /// (§5.2.6).
    pub(super) fn handle_stale_cookie(&mut self, now: Duration, staleness: Duration) {
        let State::CookieEchoed(echoed) = &self.state else { return };
        let stale = echoed.stale + 1;
        if stale > MAX_STALE_COOKIES {
            return self.end(Ending::Quiet, Event::Lost(LossReason::NoAnswer));
        }
        // Half as much again, as the clocks of both sides need not run alike.
        let preserve = (staleness + staleness / 2).min(MAX_PRESERVE);
        let path = Some(echoed.t1.path).filter(|path| self.is_verified(*path));
        let path = path.unwrap_or(self.paths.primary());
        let t1 = Retry::new(now, self.timeout_of(path), path);
        let (own, shutdown) = (echoed.own.clone(), echoed.shutdown);
        let wait = CookieWait { own, t1, hold: false, preserve, stale, shutdown };
        self.state = State::CookieWait(Box::new(wait));
        self.sender.take_all_back(now, &mut self.paths);
        self.send_init();
    }

    /// T1-init or T1-cookie ran out (§4, note 3; §5.1): once more, on the next path.
    pub(super) fn handle_t1(&mut self, now: Duration, counters: &mut Counters) {
        let t1 = match &self.state {
            State::CookieWait(wait) => &wait.t1,
            State::CookieEchoed(echoed) => &echoed.t1,
            _ => return,
        };
        if t1.retransmissions >= self.config.max_init_retransmits {
            return self.end(Ending::Quiet, Event::Lost(LossReason::NoAnswer));
        }
        counters.retransmissions += 1;
        let path = match &self.state {
            State::CookieEchoed(echoed) => self.next_for_cookie(t1.path, &echoed.cookie),
            _ => self.next_after(t1.path, |path| path.state() != PathState::Unconfirmed),
        };
        let largest = self.config.max_init_timeout.unwrap_or(self.config.rto_max);
        match &mut self.state {
            State::CookieWait(wait) => {
                wait.t1.again(now, path, largest);
                self.send_init();
            }
            State::CookieEchoed(echoed) => {
                echoed.t1.again(now, path, largest);
                echoed.wanted = true;
            }
            _ => {}
        }
    }

    /// The network says that the peer cannot be had at an address (§10 of RFC 9260, ICMP). Only
    /// while nothing has been heard of the peer is that believed; other addresses are tried first.
    pub(super) fn give_up_address(&mut self, now: Duration, path: PathId, reason: Unreachable) {
        let State::CookieWait(wait) = &mut self.state else { return };
        if self.paths.len() == 1 {
            return self.end(Ending::Quiet, Event::Lost(LossReason::Refused(reason)));
        }
        self.paths.remove(path);
        self.moved = true;
        if wait.t1.path == path {
            let next = self.paths.primary();
            wait.t1 = Retry::new(now, self.config.rto_initial, next);
            self.send_init();
        }
    }

    fn echo_cookie(
        &mut self,
        now: Duration,
        own: InitParams,
        cookie: Bytes,
        stale: u32,
        shutdown: bool,
    ) {
        let path = self.paths.for_data(None).unwrap_or(self.paths.primary());
        let t1 = Retry::new(now, self.timeout_of(path), path);
        let echoed = CookieEchoed { own, cookie, t1, stale, shutdown, wanted: true };
        self.state = State::CookieEchoed(Box::new(echoed));
    }

    /// An INIT ACK that no association can be built from.
    fn refuse_init_ack(&mut self, init: &InitChunk, refusal: Refusal) {
        // The peer holds nothing, but it is told what is wrong (§3.3.3, §5.1).
        let (tag, cause) = match refusal {
            // The tag of its own packet, with the T bit.
            Refusal::NoTag => (self.local_tag, Cause::InvalidMandatoryParameter),
            Refusal::Abort(cause) => (init.initiate_tag, cause),
        };
        let code = cause.code().0;
        let reflected = init.initiate_tag == VerificationTag::ZERO;
        let abort = AbortChunk { reflected, causes: [cause].into_iter().collect() };
        self.waiting.push_alone(self.paths.primary(), tag, Chunk::Abort(abort));
        let reason = LossReason::ProtocolViolation { cause: code };
        self.end(Ending::Last, Event::Lost(reason));
    }

    /// Of the addresses that the peer listed those of the families that are used here: an INIT
    /// without a list does not say which these are.
    fn usable(&self, listed: &[IpAddr], own: &[IpAddr], counters: &mut Counters) -> Vec<IpAddr> {
        let used = |address: &&IpAddr| {
            let v4 = address.is_ipv4();
            self.paths.iter().any(|path| path.remote.is_ipv4() == v4)
                || own.iter().any(|own| own.is_ipv4() == v4)
        };
        let usable: Vec<IpAddr> = listed.iter().filter(used).copied().collect();
        counters.addresses_ignored += (listed.len() - usable.len()) as u64;
        usable
    }

    /// From now on the peer's addresses are those that it listed, and the one that it answered from
    /// (§5.1.2).
    fn settle_paths(&mut self, now: Duration, arrival: &Arrival, t1: &Retry, listed: &[IpAddr]) {
        let answered = match self.paths.by_address(arrival.remote.ip()) {
            Some(known) => Some(known),
            // It answered an INIT that went to another address. Which address of ours is on the
            // way to this one, the packet does not say: that one was the peer's choice.
            None => self.paths.add(arrival.remote, None, &self.config),
        };
        if let Some(path) = answered {
            self.paths.confirm(path);
        }
        let keeps = |path: &Path| Some(path.id) == answered || listed.contains(&path.remote.ip());
        let gone: Vec<PathId> =
            self.paths.iter().filter(|path| !keeps(path)).map(|path| path.id).collect();
        for path in gone {
            self.paths.remove(path);
        }
        self.add_listed(listed, arrival.remote);
        if answered == Some(t1.path) {
            self.note_round_trip(now, t1.path, t1.round_trip(now));
        }
    }

    /// The path after `last`, round and round, of those that will do.
    fn next_after(&self, last: PathId, will_do: impl Fn(&Path) -> bool) -> PathId {
        let others = || self.paths.iter().filter(|path| will_do(path));
        let later = others().find(|path| path.id > last);
        later.or_else(|| others().next()).map_or(last, |path| path.id)
    }

    /// Whether more than a COOKIE ECHO may go on a path (§5.4).
    fn is_verified(&self, path: PathId) -> bool {
        self.paths.get(path).is_some_and(|path| path.state() != PathState::Unconfirmed)
    }

    /// Where to send the COOKIE ECHO after `last`: to an address that is not verified, too, if it
    /// fits a packet there together with the heartbeat that it needs (§5.4).
    fn next_for_cookie(&self, last: PathId, cookie: &Bytes) -> PathId {
        let auth = self.auth_len(ChunkType::COOKIE_ECHO).max(self.auth_len(ChunkType::HEARTBEAT));
        let echo = padded(Chunk::CookieEcho(cookie.clone()).encoded_len());
        let size = PACKET_HEADER + auth + echo + HEARTBEAT_CHUNK;
        self.next_after(last, |path| path.state() != PathState::Unconfirmed || size <= path.mtu())
    }

    /// It is up: tells the user.
    pub(super) fn announce_up(&mut self, by_peer: bool) {
        self.paths.start();
        let (outbound, inbound) = (self.outbound(), self.receiver.inbound_streams());
        self.notify(Event::Up { outbound, inbound, by_peer });
    }

    /// A round trip of the handshake counts as a measurement, unless something in it may have been
    /// sent twice.
    pub(super) fn note_round_trip(
        &mut self,
        now: Duration,
        path: PathId,
        round_trip: Option<Duration>,
    ) {
        if let Some(rtt) = round_trip.filter(|rtt| *rtt < self.config.rto_initial)
            && let Some(path) = self.paths.get_mut(path)
        {
            path.on_round_trip(now, rtt);
        }
    }
}
