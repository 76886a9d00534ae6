//! The DTLS sessions of one socket, bounded, with their timers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::Config;
use eyas_sctp::io::Unreachable;

use super::doorkeeper::{Cookie, Doorkeeper, Guest, Verdict};
use super::identity::Identity;
use super::session::{Ending, Outcome, Session, Stage, Trust, config};
use super::shares::Shares;

/// A session on which nothing comes for this long is given up; an association sends heartbeats
/// more often.
const IDLE: Duration = Duration::from_secs(120);
/// The shortest time between two looks at a timer.
const TICK: Duration = Duration::from_millis(1);
/// When a flight is sent again where no round trip is known (RFC 9147 §5.8.2).
const INITIAL_RTO: Duration = Duration::from_secs(1);

/// Whether the sessions of others are taken in.
#[derive(Debug)]
pub(crate) enum Acceptance {
    /// No: only those that are opened here.
    Nobody,
    /// Yes, under this certificate.
    Anyone(Identity),
}

/// Where a session stands, as far as its user is concerned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// The handshake is under way.
    Handshake,
    /// Packets can pass. `DTLSv1.2` or `DTLSv1.3`.
    Up(&'static str),
    /// There is none, or none any more.
    Over(Ending),
}

/// All sessions of one socket, by the address of the peer.
#[derive(Debug)]
pub(crate) struct Sessions {
    acceptance: Acceptance,
    config: Arc<Config>,
    all: BTreeMap<SocketAddr, Entry>,
    /// When each session wants to be called.
    timers: BTreeSet<(Instant, SocketAddr)>,
    /// Who asks those for cookies that come without a session, where they may come.
    doorkeeper: Option<Doorkeeper>,
    /// What each peer has of the sessions that others opened.
    shares: Shares,
}

#[derive(Debug)]
struct Entry {
    session: Session,
    timer: Option<Instant>,
    /// When something came that nobody but the peer can have sent.
    last_heard: Instant,
    /// The cookie of the peer, if the peer opened it.
    let_in_with: Option<Cookie>,
}

impl Entry {
    /// Returns whether it is over, and its end will not be queried: the peer opened it.
    fn is_forgotten(&self) -> bool {
        self.session.is_over() && self.let_in_with.is_some()
    }
}

impl Sessions {
    pub(crate) fn new(acceptance: Acceptance) -> Self {
        let takes_in = matches!(acceptance, Acceptance::Anyone(_));
        Self {
            acceptance,
            config: config(INITIAL_RTO),
            all: BTreeMap::new(),
            timers: BTreeSet::new(),
            doorkeeper: takes_in.then(Doorkeeper::new).flatten(),
            shares: Shares::default(),
        }
    }

    /// Opens a session with this server, in place of one that was there.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        own: &Identity,
        trust: Trust,
        initial_rto: Option<Duration>,
    ) -> Outcome {
        self.remove(remote);
        let config = initial_rto.map_or_else(|| Arc::clone(&self.config), config);
        let session = Session::client(config, own, trust, now);
        let entry = Entry { session, timer: None, last_heard: now, let_in_with: None };
        self.all.insert(remote, entry);
        self.call(now, remote, |session, out| session.handle_timeout(now, out))
    }

    /// Returns the state of the session with this peer.
    pub(crate) fn state(&self, remote: SocketAddr) -> State {
        let Some(entry) = self.all.get(&remote) else { return State::Over(Ending::Closed) };
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

    /// Takes in a datagram: of a session, or of somebody who may open one if `may_open` says so.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        datagram: &[u8],
        may_open: impl FnOnce() -> bool,
    ) -> Outcome {
        match self.judge(now, remote, datagram) {
            Verdict::Ask(answer) => {
                Outcome { datagrams: vec![Bytes::from(answer)], packets: Vec::new() }
            }
            Verdict::Admit(guest) if may_open() => self.accept(now, remote, &guest, datagram),
            Verdict::Admit(_) => Outcome::default(),
            Verdict::Ignore => self.call(now, remote, |session, out| {
                session.handle_datagram(now, datagram, out);
            }),
        }
    }

    /// Returns whether a datagram requests a session. A peer that has one may request another,
    /// because a client that was restarted can have the same port. The old session is kept until a
    /// cookie has been returned (RFC 6347 §4.2.8, RFC 9147 §5.11).
    fn judge(&self, now: Instant, remote: SocketAddr, datagram: &[u8]) -> Verdict {
        let entry = self.all.get(&remote);
        let may_ask = entry.is_none_or(|entry| entry.let_in_with.is_some());
        let (Some(doorkeeper), true) = (&self.doorkeeper, may_ask) else { return Verdict::Ignore };
        match doorkeeper.judge(now, remote, datagram, &self.config) {
            // It is the one that opened this session, again.
            Verdict::Admit(guest)
                if entry.is_some_and(|entry| entry.let_in_with == Some(guest.cookie)) =>
            {
                Verdict::Ignore
            }
            verdict => verdict,
        }
    }

    /// Protects packets for this peer, each in a datagram of its own.
    pub(crate) fn send<'a>(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        packets: impl Iterator<Item = &'a [u8]>,
    ) -> Outcome {
        self.call(now, remote, |session, out| packets.for_each(|one| session.send(now, one, out)))
    }

    /// Ends a session in order.
    pub(crate) fn close(&mut self, remote: SocketAddr) -> Outcome {
        let mut out = Outcome::default();
        if let Some(entry) = self.all.get_mut(&remote) {
            entry.session.close(&mut out);
        }
        self.remove(remote);
        out
    }

    /// Ends every session in order.
    pub(crate) fn close_all(&mut self) -> Vec<(SocketAddr, Outcome)> {
        let remotes: Vec<SocketAddr> = self.all.keys().copied().collect();
        remotes.into_iter().map(|remote| (remote, self.close(remote))).collect()
    }

    /// Handles a report that nothing reaches this peer: that ends a handshake, but not an
    /// established session, because anyone can send such reports. A flight that was too big for a
    /// path is lost like any other, because none is larger than what every path carries. Returns
    /// whether there is such a session.
    pub(crate) fn report(&mut self, remote: SocketAddr, reason: Unreachable) -> bool {
        let Some(entry) = self.all.get_mut(&remote) else { return false };
        if !matches!(reason, Unreachable::TooBig(_)) {
            entry.session.refuse();
        }
        if entry.is_forgotten() {
            self.remove(remote);
        }
        true
    }

    /// Returns when to call `handle_timeout` again.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Handles the passing of time, and returns what is to be retransmitted, and to whom.
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
                false => self.call(now, remote, |session, out| session.handle_timeout(now, out)),
            };
            all.push((remote, out));
        }
        all
    }

    /// Begins a session with a client, if it may have another, in place of one that was there.
    fn accept(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        guest: &Guest,
        second: &[u8],
    ) -> Outcome {
        self.remove(remote);
        let Acceptance::Anyone(own) = &self.acceptance else { return Outcome::default() };
        let mut out = Outcome::default();
        let Some(gone) = self.shares.begin(remote) else { return out };
        let config = Arc::clone(&self.config);
        let session = Session::server(config, own, now, guest, second, &mut out);
        let let_in_with = Some(guest.cookie);
        self.all.insert(remote, Entry { session, timer: None, last_heard: now, let_in_with });
        gone.into_iter().for_each(|oldest| self.remove(oldest));
        self.settle(now, remote);
        out
    }

    fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        act: impl FnOnce(&mut Session, &mut Outcome),
    ) -> Outcome {
        let mut out = Outcome::default();
        if let Some(entry) = self.all.get_mut(&remote) {
            let was_up = *entry.session.stage() == Stage::Up;
            act(&mut entry.session, &mut out);
            let is_up = *entry.session.stage() == Stage::Up;
            // A datagram alone proves nothing: anybody can send one from this address.
            if !out.packets.is_empty() || (is_up && !was_up) {
                entry.last_heard = now;
            }
            self.settle(now, remote);
        }
        out
    }

    /// Updates a session's share and timer after an event.
    fn settle(&mut self, now: Instant, remote: SocketAddr) {
        let Some(entry) = self.all.get(&remote) else { return };
        if entry.is_forgotten() {
            return self.remove(remote);
        }
        if *entry.session.stage() == Stage::Up && entry.let_in_with.is_some() {
            self.shares.finish(remote);
        }
        self.schedule(now, remote);
    }

    /// Puts the session's timer where it belongs; at the latest it is looked at when it has been
    /// idle for too long.
    fn schedule(&mut self, now: Instant, remote: SocketAddr) {
        let Some(entry) = self.all.get_mut(&remote) else { return };
        let idle = entry.last_heard + IDLE;
        let due = entry.session.next_timeout().map_or(idle, |time| time.min(idle));
        // Never at once again, whatever the library says.
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
        if entry.let_in_with.is_some() {
            self.shares.end(remote);
        }
    }
}
