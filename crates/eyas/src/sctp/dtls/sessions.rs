//! The DTLS sessions of one socket, bounded, with their timers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::Config;
use eyas_sctp::io::Unreachable;

use super::cookie_exchange::{Action, Cookie, CookieExchange, VerifiedClient};
use super::identity::Identity;
use super::quotas::Quotas;
use super::session::{EndReason, Outcome, Session, Stage, Trust, config};

/// A session on which nothing is received for this long is closed; an association sends heartbeats
/// more often.
const IDLE: Duration = Duration::from_secs(120);
/// The minimum time until a timer fires again.
const TICK: Duration = Duration::from_millis(1);
/// When a flight is retransmitted if no round-trip time is known (RFC 9147 §5.8.2).
const INITIAL_RTO: Duration = Duration::from_secs(1);

/// Whether sessions that peers open are accepted.
#[derive(Debug)]
pub(crate) enum Role {
    /// No: there are only the sessions that this side opens.
    Client,
    /// Yes, with this certificate.
    Server(Identity),
}

/// The state of a session, as its user sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// The handshake is under way.
    Handshake,
    /// Packets can pass. `DTLSv1.2` or `DTLSv1.3`.
    Up(&'static str),
    /// There is no session, or it has ended.
    Over(EndReason),
}

/// All sessions of one socket, by the address of the peer.
#[derive(Debug)]
pub(crate) struct Sessions {
    role: Role,
    config: Arc<Config>,
    all: BTreeMap<SocketAddr, Entry>,
    /// When `handle_timeout` of each session is due.
    timers: BTreeSet<(Instant, SocketAddr)>,
    /// Checks the addresses of clients without a session, if sessions are accepted.
    cookie_exchange: Option<CookieExchange>,
    /// Counts, for each peer, the sessions that it opened.
    quotas: Quotas,
}

#[derive(Debug)]
struct Entry {
    session: Session,
    timer: Option<Instant>,
    /// When something last arrived that only the peer can have sent.
    last_heard: Instant,
    /// The cookie with which the peer opened it; `None` if this side opened it.
    client_cookie: Option<Cookie>,
}

impl Entry {
    /// Returns whether it is over and nothing will query how it ended, because the peer opened it.
    fn can_be_removed(&self) -> bool {
        self.session.is_over() && self.client_cookie.is_some()
    }
}

impl Sessions {
    pub(crate) fn new(role: Role) -> Self {
        let is_server = matches!(role, Role::Server(_));
        Self {
            role,
            config: config(INITIAL_RTO),
            all: BTreeMap::new(),
            timers: BTreeSet::new(),
            cookie_exchange: is_server.then(CookieExchange::new).flatten(),
            quotas: Quotas::default(),
        }
    }

    /// Opens a session with this server; replaces an earlier one.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        identity: &Identity,
        trust: Trust,
        initial_rto: Option<Duration>,
    ) -> Outcome {
        self.remove(remote);
        let config = initial_rto.map_or_else(|| Arc::clone(&self.config), config);
        let session = Session::client(config, identity, trust, now);
        let entry = Entry { session, timer: None, last_heard: now, client_cookie: None };
        self.all.insert(remote, entry);
        self.with_session(now, remote, |session, out| session.handle_timeout(now, out))
    }

    /// Returns the state of the session with this peer.
    pub(crate) fn state(&self, remote: SocketAddr) -> State {
        let Some(entry) = self.all.get(&remote) else { return State::Over(EndReason::Closed) };
        match entry.session.stage() {
            Stage::Handshake { .. } => State::Handshake,
            Stage::Up => State::Up(entry.session.version().unwrap_or("DTLS")),
            Stage::Over(why) => State::Over(why.clone()),
        }
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there is a session with this peer.
    #[cfg(test)]
    pub(crate) fn contains(&self, remote: SocketAddr) -> bool {
        self.all.contains_key(&remote)
    }

    /// Handles a datagram of a session, or of a client that requests one, which is accepted if
    /// `may_open` returns true.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        datagram: &[u8],
        may_open: impl FnOnce() -> bool,
    ) -> Outcome {
        match self.decide(now, remote, datagram) {
            Action::RequestCookie(response) => {
                Outcome { datagrams: vec![Bytes::from(response)], packets: Vec::new() }
            }
            Action::Admit(client) if may_open() => self.accept(now, remote, &client, datagram),
            Action::Admit(_) => Outcome::default(),
            Action::Ignore => self.with_session(now, remote, |session, out| {
                session.handle_datagram(now, datagram, out);
            }),
        }
    }

    /// Decides whether a datagram requests a session. A peer that has one may request another,
    /// because a restarted client can have the same port. The old session is kept until a cookie
    /// has been returned (RFC 6347 §4.2.8, RFC 9147 §5.11).
    fn decide(&self, now: Instant, remote: SocketAddr, datagram: &[u8]) -> Action {
        let entry = self.all.get(&remote);
        let may_request = entry.is_none_or(|entry| entry.client_cookie.is_some());
        let (Some(cookie_exchange), true) = (&self.cookie_exchange, may_request) else {
            return Action::Ignore;
        };
        match cookie_exchange.decide(now, remote, datagram, &self.config) {
            // A repetition of the ClientHello that opened this session.
            Action::Admit(client)
                if entry.is_some_and(|entry| entry.client_cookie == Some(client.cookie)) =>
            {
                Action::Ignore
            }
            verdict => verdict,
        }
    }

    /// Encrypts packets for this peer, each in a separate datagram.
    pub(crate) fn send<'a>(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        packets: impl Iterator<Item = &'a [u8]>,
    ) -> Outcome {
        self.with_session(now, remote, |session, out| {
            packets.for_each(|packet| session.send(now, packet, out))
        })
    }

    /// Closes a session with close_notify.
    pub(crate) fn close(&mut self, remote: SocketAddr) -> Outcome {
        let mut out = Outcome::default();
        if let Some(entry) = self.all.get_mut(&remote) {
            entry.session.close(&mut out);
        }
        self.remove(remote);
        out
    }

    /// Closes every session with close_notify.
    pub(crate) fn close_all(&mut self) -> Vec<(SocketAddr, Outcome)> {
        let remotes: Vec<SocketAddr> = self.all.keys().copied().collect();
        remotes.into_iter().map(|remote| (remote, self.close(remote))).collect()
    }

    /// Handles a report that nothing reaches this peer: that ends a handshake, but not an
    /// established session, because anyone can send such reports. A flight that was too big for a
    /// path counts as lost, because none is larger than what every path carries. Returns whether
    /// there is such a session.
    pub(crate) fn report(&mut self, remote: SocketAddr, reason: Unreachable) -> bool {
        let Some(entry) = self.all.get_mut(&remote) else { return false };
        if !matches!(reason, Unreachable::TooBig(_)) {
            entry.session.refuse();
        }
        if entry.can_be_removed() {
            self.remove(remote);
        }
        true
    }

    /// Returns when to call `handle_timeout` again.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Handles the passing of time, and returns what to retransmit to which peer.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<(SocketAddr, Outcome)> {
        let mut all = Vec::new();
        while let Some((time, remote)) = self.timers.first().copied()
            && time <= now
        {
            let idle = self.all.get(&remote).is_none_or(|entry| {
                entry.session.is_over() || now.saturating_duration_since(entry.last_heard) >= IDLE
            });
            let out = match idle {
                true => self.close(remote),
                false => {
                    self.with_session(now, remote, |session, out| session.handle_timeout(now, out))
                }
            };
            all.push((remote, out));
        }
        all
    }

    /// Begins a session with a client, if its quota permits; replaces an earlier one.
    fn accept(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        client: &VerifiedClient,
        second: &[u8],
    ) -> Outcome {
        self.remove(remote);
        let Role::Server(identity) = &self.role else { return Outcome::default() };
        let mut out = Outcome::default();
        let Some(evicted) = self.quotas.begin(remote) else { return out };
        let config = Arc::clone(&self.config);
        let session = Session::server(config, identity, now, client, second, &mut out);
        let client_cookie = Some(client.cookie);
        self.all.insert(remote, Entry { session, timer: None, last_heard: now, client_cookie });
        evicted.into_iter().for_each(|oldest| self.remove(oldest));
        self.update(now, remote);
        out
    }

    fn with_session(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        action: impl FnOnce(&mut Session, &mut Outcome),
    ) -> Outcome {
        let mut out = Outcome::default();
        if let Some(entry) = self.all.get_mut(&remote) {
            let was_up = *entry.session.stage() == Stage::Up;
            action(&mut entry.session, &mut out);
            let is_up = *entry.session.stage() == Stage::Up;
            // A datagram alone proves nothing, because its source address can be forged.
            if !out.packets.is_empty() || (is_up && !was_up) {
                entry.last_heard = now;
            }
            self.update(now, remote);
        }
        out
    }

    /// Updates a session's quota and timer after an event.
    fn update(&mut self, now: Instant, remote: SocketAddr) {
        let Some(entry) = self.all.get(&remote) else { return };
        if entry.can_be_removed() {
            return self.remove(remote);
        }
        if *entry.session.stage() == Stage::Up && entry.client_cookie.is_some() {
            self.quotas.finish(remote);
        }
        self.schedule(now, remote);
    }

    /// Schedules the session's timer. It fires no later than when the session has been idle for too
    /// long.
    fn schedule(&mut self, now: Instant, remote: SocketAddr) {
        let Some(entry) = self.all.get_mut(&remote) else { return };
        let idle = entry.last_heard + IDLE;
        let due = entry.session.next_timeout().map_or(idle, |time| time.min(idle));
        // Never immediately, whatever the library returns.
        let due = due.max(now + TICK);
        if let Some(old) = entry.timer.replace(due) {
            self.timers.remove(&(old, remote));
        }
        self.timers.insert((due, remote));
    }

    fn remove(&mut self, remote: SocketAddr) {
        let Some(entry) = self.all.remove(&remote) else { return };
        if let Some(time) = entry.timer {
            self.timers.remove(&(time, remote));
        }
        if entry.client_cookie.is_some() {
            self.quotas.end(remote);
        }
    }
}
