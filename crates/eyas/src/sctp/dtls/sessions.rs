//! The DTLS sessions of one socket, bounded, with their timers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dimpl::Config;
use eyas_sctp::io::Unreachable;

use super::identity::Identity;
use super::opens_session;
use super::session::{Ending, Outcome, Session, Stage, Trust, config};

/// Sessions of one socket.
const MAX_SESSIONS: usize = 16_384;
/// Handshakes that clients have begun and not finished; the oldest goes when another comes.
pub(super) const MAX_HANDSHAKES: usize = 256;
/// A session on which nothing comes for this long is given up; an association sends heartbeats
/// more often.
const IDLE: Duration = Duration::from_secs(120);
/// The shortest time between two looks at a timer.
const TICK: Duration = Duration::from_millis(1);
/// When a flight is sent again where no round trip is known (RFC 9147 §5.8.2).
const INITIAL_RTO: Duration = Duration::from_secs(1);

/// Whether the sessions of others are taken in.
#[derive(Clone, Debug)]
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
    /// Handshakes begun by others, oldest first; some are finished or gone.
    begun: VecDeque<SocketAddr>,
}

#[derive(Debug)]
struct Entry {
    session: Session,
    timer: Option<Instant>,
    last_heard: Instant,
}

impl Sessions {
    pub(crate) fn new(acceptance: Acceptance) -> Self {
        Self {
            acceptance,
            config: config(INITIAL_RTO),
            all: BTreeMap::new(),
            timers: BTreeSet::new(),
            begun: VecDeque::new(),
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
        self.all.insert(remote, Entry { session, timer: None, last_heard: now });
        self.call(now, remote, |session, out| session.handle_timeout(now, out))
    }

    /// Where the session with this peer stands.
    pub(crate) fn state(&self, remote: SocketAddr) -> State {
        let Some(entry) = self.all.get(&remote) else { return State::Over(Ending::Closed) };
        match entry.session.stage() {
            Stage::Handshake { .. } => State::Handshake,
            Stage::Up => State::Up(entry.session.version().unwrap_or("DTLS")),
            Stage::Over(why) => State::Over(why.clone()),
        }
    }

    /// Whether a datagram is one for here: of a session, or opening one.
    pub(crate) fn takes(&self, remote: SocketAddr, datagram: &[u8]) -> bool {
        self.all.contains_key(&remote)
            || (matches!(self.acceptance, Acceptance::Anyone(_)) && opens_session(datagram))
    }

    /// Takes in a datagram.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        datagram: &[u8],
    ) -> Outcome {
        if !self.all.contains_key(&remote) && !self.accept(now, remote, datagram) {
            return Outcome::default();
        }
        if let Some(entry) = self.all.get_mut(&remote) {
            entry.last_heard = now;
        }
        self.call(now, remote, |session, out| session.handle_datagram(now, datagram, out))
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

    /// The network said that nothing comes through to there: that ends a handshake, and says nothing
    /// of a session that is up, for anybody can say it. A flight that was too big for a path is lost
    /// like any other, for none is larger than what every path carries. Gives whether there is such a
    /// session.
    pub(crate) fn report(&mut self, remote: SocketAddr, reason: Unreachable) -> bool {
        let Some(entry) = self.all.get_mut(&remote) else { return false };
        if !matches!(reason, Unreachable::TooBig(_)) {
            entry.session.refuse();
        }
        true
    }

    /// When to call `handle_timeout` again.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Time has passed: what is to be sent again, and to whom.
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

    /// Begins a session with a client, if there may be another.
    fn accept(&mut self, now: Instant, remote: SocketAddr, datagram: &[u8]) -> bool {
        let Acceptance::Anyone(own) = &self.acceptance else { return false };
        if !opens_session(datagram) || self.all.len() >= MAX_SESSIONS {
            return false;
        }
        let session = Session::server(Arc::clone(&self.config), own, now);
        self.all.insert(remote, Entry { session, timer: None, last_heard: now });
        self.begun.push_back(remote);
        while self.begun.len() > MAX_HANDSHAKES {
            if let Some(oldest) = self.begun.pop_front()
                && self.state(oldest) == State::Handshake
            {
                self.remove(oldest);
            }
        }
        true
    }

    fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        act: impl FnOnce(&mut Session, &mut Outcome),
    ) -> Outcome {
        let mut out = Outcome::default();
        if let Some(entry) = self.all.get_mut(&remote) {
            act(&mut entry.session, &mut out);
            self.schedule(now, remote);
        }
        out
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
        if let Some(entry) = self.all.remove(&remote)
            && let Some(time) = entry.timer
        {
            self.timers.remove(&(time, remote));
        }
    }
}
