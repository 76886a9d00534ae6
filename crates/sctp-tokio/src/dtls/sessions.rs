//! The DTLS sessions of one socket, bounded, with their timers.

mod sending;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use dimpl::Config;
use eyas_sctp::io::{PeerIdentity, Unreachable};
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::CertificateDer;

use super::cookie_exchange::{Action, Cookie, CookieExchange, VerifiedClient};
use super::identity::DtlsIdentity;
use super::on_demand::{OnDemand, Opening};
use super::quotas::Quotas;
use super::session::{Authentication, DtlsEndReason, DtlsTrust, Outcome, Session, Stage, config};
use super::session_path::SessionPath;

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
    /// No: this side opens a session for each path that it sends on, and both show certificates.
    ClientOfPaths(Opening),
    /// Yes, with this certificate.
    Server(DtlsIdentity),
    /// Yes, on several paths, from clients whose certificates this verifier accepts.
    ServerOfPaths(DtlsIdentity, Arc<dyn ClientCertVerifier>),
}

impl Role {
    /// Returns whether there is a session for each path.
    pub(crate) fn has_paths(&self) -> bool {
        self.authentication() == Authentication::Mutual
    }

    fn is_server(&self) -> bool {
        matches!(self, Self::Server(_) | Self::ServerOfPaths(..))
    }

    fn authentication(&self) -> Authentication {
        match self {
            Self::Client | Self::Server(_) => Authentication::OneSided,
            Self::ClientOfPaths(_) | Self::ServerOfPaths(..) => Authentication::Mutual,
        }
    }
}

/// The state of a session, as its user sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// The handshake is under way.
    Handshake,
    /// Packets can pass. `DTLSv1.2` or `DTLSv1.3`.
    Up(&'static str),
    /// There is no session, or it has ended.
    Over(DtlsEndReason),
}

/// All sessions of one socket, by their addresses.
#[derive(Debug)]
pub(crate) struct Sessions {
    role: Role,
    config: Arc<Config>,
    all: BTreeMap<SessionPath, Entry>,
    /// When `handle_timeout` of each session is due.
    timers: BTreeSet<(Instant, SessionPath)>,
    /// Checks the addresses of clients without a session, if sessions are accepted.
    cookie_exchange: Option<CookieExchange>,
    /// Counts, for each peer, the sessions that it opened.
    quotas: Quotas,
    /// The paths that this side opens sessions for by itself, if it does.
    on_demand: Option<OnDemand>,
    /// The number of packets that were not sent because there is no session with their receiver.
    unsendable: u64,
    /// Memory that datagrams and packets are written to, one behind the other.
    room: BytesMut,
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
        let (is_server, authentication) = (role.is_server(), role.authentication());
        let on_demand = match &role {
            Role::ClientOfPaths(opening) => Some(OnDemand::new(opening.clone())),
            _ => None,
        };
        Self {
            role,
            config: config(INITIAL_RTO, authentication),
            all: BTreeMap::new(),
            timers: BTreeSet::new(),
            cookie_exchange: is_server.then(CookieExchange::new).flatten(),
            quotas: Quotas::default(),
            on_demand,
            unsendable: 0,
            room: BytesMut::new(),
        }
    }

    /// Uses another certificate for the sessions that peers open from now on.
    pub(crate) fn replace_identity(&mut self, new: DtlsIdentity) {
        match &mut self.role {
            Role::Server(identity) | Role::ServerOfPaths(identity, _) => *identity = new,
            Role::Client | Role::ClientOfPaths(_) => {}
        }
    }

    /// Returns the key under which the session of these addresses is stored.
    pub(crate) fn path(&self, local: Option<IpAddr>, remote: SocketAddr) -> SessionPath {
        SessionPath { remote, local: local.filter(|_| self.role.has_paths()) }
    }

    /// Opens a session with this server; replaces an earlier one.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        path: impl Into<SessionPath>,
        identity: &DtlsIdentity,
        trust: DtlsTrust,
        initial_rto: Option<Duration>,
    ) -> Outcome {
        let path = path.into();
        self.remove(path);
        let authentication = self.role.authentication();
        let config = match initial_rto {
            Some(rto) => config(rto, authentication),
            None => Arc::clone(&self.config),
        };
        let session = Session::client(config, identity, trust, authentication, now);
        let entry = Entry { session, timer: None, last_heard: now, client_cookie: None };
        self.all.insert(path, entry);
        self.with_session(now, path, |session, out| session.handle_timeout(now, out))
    }

    /// Sets the size of the memory that is allocated for the results of the next calls together.
    /// Those of equal sizes can then be joined without being copied.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.room = BytesMut::with_capacity(bytes);
    }

    /// Returns the state of the session with this peer.
    pub(crate) fn state(&self, path: impl Into<SessionPath>) -> State {
        let entry = self.all.get(&path.into());
        let Some(entry) = entry else { return State::Over(DtlsEndReason::Closed) };
        match entry.session.stage() {
            Stage::Handshake { .. } => State::Handshake,
            Stage::Up => State::Up(entry.session.version().unwrap_or("DTLS")),
            Stage::Over(why) => State::Over(why.clone()),
        }
    }

    /// Returns the certificate of the peer at the other end of a path.
    pub(crate) fn certificate_on(&self, path: SessionPath) -> Option<&CertificateDer<'static>> {
        self.all.get(&path)?.session.certificate()
    }

    /// Returns the certificate of a peer that has a session.
    pub(crate) fn certificate_of(&self, peer: PeerIdentity) -> Option<&CertificateDer<'static>> {
        let mut sessions = self.all.values().map(|entry| &entry.session);
        sessions.find(|session| session.identity() == Some(peer))?.certificate()
    }

    /// Returns the number of packets that were not sent because there is no session with their
    /// receiver.
    #[cfg(test)]
    pub(crate) fn unsendable(&self) -> u64 {
        self.unsendable
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there is a session with this peer.
    #[cfg(test)]
    pub(crate) fn contains(&self, path: impl Into<SessionPath>) -> bool {
        self.all.contains_key(&path.into())
    }

    /// Handles a datagram of a session, or of a client that requests one, which is accepted if
    /// `may_open` returns true.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        path: impl Into<SessionPath>,
        datagram: &[u8],
        may_open: impl FnOnce() -> bool,
    ) -> Outcome {
        let path = path.into();
        match self.decide(now, path, datagram) {
            Action::RequestCookie(response) => {
                Outcome { datagrams: vec![BytesMut::from(&response[..])], ..Outcome::default() }
            }
            Action::Admit(client) if may_open() => self.accept(now, path, &client, datagram),
            Action::Admit(_) => Outcome::default(),
            Action::Ignore => self.with_session(now, path, |session, out| {
                session.handle_datagram(now, datagram, out);
            }),
        }
    }

    /// Decides whether a datagram requests a session. A peer that has one may request another,
    /// because a restarted client can have the same port. The old session is kept until a cookie
    /// has been returned (RFC 6347 §4.2.8, RFC 9147 §5.11).
    fn decide(&self, now: Instant, path: SessionPath, datagram: &[u8]) -> Action {
        let entry = self.all.get(&path);
        let may_request = entry.is_none_or(|entry| entry.client_cookie.is_some());
        let (Some(cookie_exchange), true) = (&self.cookie_exchange, may_request) else {
            return Action::Ignore;
        };
        match cookie_exchange.decide(now, path.remote, datagram, &self.config) {
            // A repetition of the ClientHello that opened this session.
            Action::Admit(client)
                if entry.is_some_and(|entry| entry.client_cookie == Some(client.cookie)) =>
            {
                Action::Ignore
            }
            verdict => verdict,
        }
    }

    /// Returns the sessions with this address.
    fn sessions_to(&self, remote: SocketAddr) -> impl Iterator<Item = (&SessionPath, &Entry)> {
        let path = |local| SessionPath { remote, local };
        self.all.range(path(None)..=path(Some(IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)))))
    }

    fn paths_to(&self, remote: SocketAddr) -> Vec<SessionPath> {
        self.sessions_to(remote).map(|(path, _)| *path).collect()
    }

    /// Closes the sessions with an address that the peer no longer has.
    pub(crate) fn close_to(&mut self, remote: SocketAddr) -> Vec<(SessionPath, Outcome)> {
        self.paths_to(remote)
            .into_iter()
            .map(|path| {
                let out = self.close(path);
                self.on_demand.iter_mut().for_each(|on_demand| on_demand.forget(path));
                (path, out)
            })
            .collect()
    }

    /// Closes a session with close_notify.
    pub(crate) fn close(&mut self, path: impl Into<SessionPath>) -> Outcome {
        let (path, mut out) = (path.into(), Outcome::default());
        if let Some(entry) = self.all.get_mut(&path) {
            entry.session.close(&mut out);
        }
        self.remove(path);
        out
    }

    /// Closes every session with close_notify.
    pub(crate) fn close_all(&mut self) -> Vec<(SessionPath, Outcome)> {
        let paths: Vec<SessionPath> = self.all.keys().copied().collect();
        paths.into_iter().map(|path| (path, self.close(path))).collect()
    }

    /// Handles a report that nothing reaches this peer: that ends a handshake, but not an
    /// established session, because anyone can send such reports. A flight that was too big for a
    /// path counts as lost, because none is larger than what every path carries. Returns whether
    /// there is such a session.
    pub(crate) fn report(&mut self, now: Instant, remote: SocketAddr, reason: Unreachable) -> bool {
        let concerned = self.paths_to(remote);
        let ending = match reason {
            Unreachable::TooBig(_) => return !concerned.is_empty(),
            Unreachable::Local => DtlsEndReason::NotSent,
            _ => DtlsEndReason::Refused,
        };
        for path in &concerned {
            drop(self.with_session(now, *path, |session, _| session.refuse(ending.clone())));
        }
        !concerned.is_empty()
    }

    /// Returns when to call `handle_timeout` again.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Handles the passing of time, and returns what to retransmit to which peer.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<(SessionPath, Outcome)> {
        let mut all = Vec::new();
        while let Some((time, path)) = self.timers.first().copied()
            && time <= now
        {
            let idle = self.all.get(&path).is_none_or(|entry| {
                entry.session.is_over() || now.saturating_duration_since(entry.last_heard) >= IDLE
            });
            let out = match idle {
                true => self.close(path),
                false => {
                    self.with_session(now, path, |session, out| session.handle_timeout(now, out))
                }
            };
            all.push((path, out));
        }
        all
    }

    /// Begins a session with a client, if its quota permits; replaces an earlier one.
    fn accept(
        &mut self,
        now: Instant,
        path: SessionPath,
        client: &VerifiedClient,
        second: &[u8],
    ) -> Outcome {
        self.remove(path);
        let (identity, verifier) = match &self.role {
            Role::Server(identity) => (identity, None),
            Role::ServerOfPaths(identity, verifier) => (identity, Some(Arc::clone(verifier))),
            Role::Client | Role::ClientOfPaths(_) => return Outcome::default(),
        };
        let mut out = Outcome::default();
        let Some(evicted) = self.quotas.begin(path) else { return out };
        let config = Arc::clone(&self.config);
        let session = Session::server(config, identity, verifier, now, client, second, &mut out);
        let client_cookie = Some(client.cookie);
        self.all.insert(path, Entry { session, timer: None, last_heard: now, client_cookie });
        evicted.into_iter().for_each(|oldest| self.remove(oldest));
        self.update(now, path);
        out
    }

    fn with_session(
        &mut self,
        now: Instant,
        path: SessionPath,
        action: impl FnOnce(&mut Session, &mut Outcome),
    ) -> Outcome {
        let mut out = Outcome { room: std::mem::take(&mut self.room), ..Outcome::default() };
        if let Some(entry) = self.all.get_mut(&path) {
            let was_up = *entry.session.stage() == Stage::Up;
            action(&mut entry.session, &mut out);
            let is_up = *entry.session.stage() == Stage::Up;
            // A datagram alone proves nothing, because its source address can be forged.
            if !out.packets.is_empty() || (is_up && !was_up) {
                entry.last_heard = now;
                out.peer = entry.session.identity();
            }
            let is_over = entry.session.is_over();
            if is_up != was_up || is_over || !out.packets.is_empty() {
                self.meet_demand(now, path, is_up && !was_up, &mut out);
            }
            self.update(now, path);
        }
        self.room = std::mem::take(&mut out.room);
        out
    }

    /// Updates a session's quota and timer after an event.
    fn update(&mut self, now: Instant, path: SessionPath) {
        let Some(entry) = self.all.get(&path) else { return };
        if entry.can_be_removed() {
            return self.remove(path);
        }
        if *entry.session.stage() == Stage::Up && entry.client_cookie.is_some() {
            self.quotas.finish(path);
        }
        self.schedule(now, path);
    }

    /// Schedules the session's timer. It fires no later than when the session has been idle for too
    /// long.
    fn schedule(&mut self, now: Instant, path: SessionPath) {
        let Some(entry) = self.all.get_mut(&path) else { return };
        let idle = entry.last_heard + IDLE;
        let due = entry.session.next_timeout().map_or(idle, |time| time.min(idle));
        // Never immediately, whatever the library returns.
        let due = due.max(now + TICK);
        if let Some(old) = entry.timer.replace(due) {
            self.timers.remove(&(old, path));
        }
        self.timers.insert((due, path));
    }

    fn remove(&mut self, path: SessionPath) {
        let Some(entry) = self.all.remove(&path) else { return };
        if let Some(time) = entry.timer {
            self.timers.remove(&(time, path));
        }
        if entry.client_cookie.is_some() {
            self.quotas.end(path);
        }
    }
}
